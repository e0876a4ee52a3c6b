"""Reading traces: lines of JSON one by one, so that a file of any size takes little memory; and parts of records."""

from __future__ import annotations

import datetime
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from cpubench.errors import UsageError
from cpubench.results.parse import MAX_BYTES, parse, read

MOST_LINE = 32 << 20  # bytes of one line; a screenshot in a tool's result takes some
HEAD = 1 << 16  # bytes from which a format is told that no line tells
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
_decode = msgspec.json.Decoder().decode


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A regular file, open for reading; a pipe would wait for a writer."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError("not_a_file", "is no regular file")
            yield file
    except FileNotFoundError:
        raise UsageError("missing", "there is no such file") from None
    except (OSError, ValueError) as error:
        raise UsageError("unreadable", f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def head(path: Path) -> bytes:
    """The first bytes of a file, with the whole of a long line among them; refused if it is empty."""
    with opened(path) as file:
        raw = file.read(HEAD) + file.readline(MOST_LINE) + file.read(HEAD)
    if not raw.strip():
        raise UsageError("empty", "the file is empty")
    return raw


def first_lines(path: Path, most: int) -> Iterator[bytes]:
    """At most so many lines from the first that holds something, up to one that is too long; refused if packed."""
    with opened(path) as file:
        start = file.read(max(map(len, _PACKED)))
        packed = next((name for magic, name in _PACKED.items() if start.startswith(magic)), None)
        if packed:
            raise UsageError("packed", f"is packed with {packed}: unpack it first")
        file.seek(0)
        while most and (raw := file.readline(MOST_LINE + 1)) and len(raw) <= MOST_LINE:
            if line := raw.strip():
                most -= 1
                yield line


def in_lines(path: Path) -> bool:
    """Whether a file has an object of JSON on each line, told by its first two; one line may be a text as well."""
    first, second = [*first_lines(path, 2), b"", b""][:2]
    return second.startswith(b"{") and isinstance(json_of(first.decode(errors="replace")), dict)


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the object of each line that holds one; what is no JSON is refused, a cut end as such."""
    with opened(path) as file:
        number = 0
        while raw := file.readline(MOST_LINE + 1):
            number += 1
            where = f"line {number}"
            if len(raw) > MOST_LINE:
                raise UsageError("too_large", f"a line of more than {MOST_LINE >> 20} MiB", where)
            if not raw.strip():
                continue
            try:
                value = _decode(raw)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                if not raw.endswith(b"\n"):
                    raise UsageError("cut", "the trace was cut: its last line is not whole", where) from None
                raise UsageError("not_json", "is not JSON", where) from None
            if not isinstance(value, dict):
                raise UsageError("record", f"holds a JSON {type(value).__name__}, not an object", where)
            yield where, value


def document(path: Path) -> dict[str, Any]:
    """The one JSON object of a file; a list is taken for its ``items``."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        text = f"is one JSON text of {size / 1e6:.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read: give it in lines"
        raise UsageError("too_large", text)
    raw = read(path)
    return parse(b'{"items":' + raw + b"}" if raw.lstrip().startswith(b"[") else raw)


def time_s(value: object) -> float | None:
    """Seconds since the epoch of a time as traces write it; one without a zone counts as UTC. None of anything else."""
    if not isinstance(value, str):
        return None
    try:
        made = msgspec.convert(value, datetime.datetime)
    except (msgspec.ValidationError, ValueError):
        return None
    return (made if made.tzinfo else made.replace(tzinfo=datetime.timezone.utc)).timestamp()


def status(value: object) -> int | None:
    """The value if it is the exit status of a program, of whatever system."""
    return value if type(value) is int and abs(value) < 1 << 31 else None


def number(value: object) -> float | None:
    """The value if it is a finite number of at least 0."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if good else None  # type: ignore[arg-type]


def size_of(value: object) -> int | None:
    """Bytes of a text, or of a JSON value as text; None of None, and of numbers and letters that JSON cannot write."""
    if value is None:
        return None
    try:
        return len(value.encode(errors="replace")) if isinstance(value, str) else len(msgspec.json.encode(value))
    except (OverflowError, UnicodeError, RecursionError):
        return None


def field(value: object, *names: str) -> Any:
    """What lies under these keys, one in the other; None where one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def json_of(text: object) -> Any:
    """What a JSON text inside a JSON text holds; None where it is none."""
    if not isinstance(text, str):
        return text
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def command_of(arguments: object) -> str:
    """The command, code or query among a tool's arguments, of words as a shell takes them; "" where there is none."""
    named = (field(arguments, name) for name in ("command", "cmd", "code", "script", "sql", "query", "url", "uri"))
    found = next((one for one in (arguments, *named) if isinstance(one, str | list)), "")
    if isinstance(found, str):
        return found
    words = all(isinstance(one, str | int | float) for one in found)  # else messages, or another tool's list
    return shlex.join(map(str, found)) if words else ""
