"""Strict JSON from files that nobody vouches for: bounded, no duplicate key, no NaN, no number beyond 64 bits.

A fault is a UsageError whose ``where`` is the place inside the file; ``located`` puts the file's name before it.
"""

from __future__ import annotations

import gc
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

from msgspec import DecodeError, Meta
from msgspec.json import Decoder

from cpubench.errors import UsageError
from cpubench.results.packed import is_packed, unpacked

MAX_BYTES = 200_000_000  # four times the largest run that is planned for (256 CPUs, 60 passes: 50 MB)
MAX_CONTAINERS = 5_000_000  # such a run has 1.3 million
# What a character of the text becomes in memory at most, in bytes (CPython 3.11): an object, a list, a value, a key.
# Such a run comes to 0.4 GB, but 200 MB of the worst text would be ten times as much.
_WEIGHTS = {b"{": 240, b"[": 72, b",": 64, b":": 160}
MAX_MEMORY_BYTES = 1_500_000_000
MAX_DEPTH = 20  # of what has no record; facts of a host are nested five deep
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
LINE = 298  # a message stays on one line of a log

# A C callable: a Python function here costs 0.1 us for each of 2.4 million numbers, and this one is faster than int().
_int64 = Decoder(Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]).decode
# An open string ends with the text: a search for the end of each would take hours in a hundred million quotes.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[-+.\w]+', re.DOTALL)


def check_text(text: str, code: str, where: str) -> None:
    """UsageError where a path or a setting has bytes that are no UTF-8: no file of a run could hold it."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise UsageError(code, f"{shown(text, 80)} holds bytes that are no UTF-8: no file of a run can hold it", where)


def shown(text: str, limit: int = LINE) -> str:
    """Foreign text on one line: escaped as in repr() what is no plain character, without the middle if it is long."""
    text = text if len(text) <= 4 * limit else text[: 2 * limit] + text[-2 * limit :]
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return line if len(line) <= limit else f"{line[: limit // 2 - 1]}..{line[1 - limit + limit // 2 :]}"


def located(path: Path, fault: UsageError) -> UsageError:
    """The fault as one line with the file's name before the place inside it."""
    where = shown(str(path), 120) + (f": {shown(fault.where, 80)}" if fault.where else "")
    return UsageError(fault.code, shown(fault.text, LINE - 2 - len(where)), where)


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing; holds back the garbage collector, which takes half of the time of building a million lists."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file of at most ``most``, which are 200 MB; of a ``.gz`` file, what it holds."""
    most = MAX_BYTES if most is None else most
    raw = read_raw(path, most)
    return unpacked(raw, most) if is_packed(path) else raw


def read_raw(path: Path, most: int) -> bytes:
    """The bytes of a regular file as they lie there, at most ``most``."""
    try:
        _check_kind(path.stat())  # before opening, which does things to some devices
        # What became a pipe meanwhile would wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)) as file:
            status = os.fstat(file.fileno())
            _check_kind(status)
            if status.st_size > most:
                raise UsageError("too_large", f"{status.st_size} bytes; at most {most} are read")
            return file.read(most)
    except FileNotFoundError:
        raise UsageError("missing", "there is no such file") from None
    except (OSError, ValueError) as error:
        raise UsageError("unreadable", getattr(error, "strerror", None) or str(error)) from None


def _check_kind(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError("not_a_file", "is no regular file")


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object that ``raw`` holds."""
    if not raw.strip(b" \t\r\n"):
        raise UsageError("empty", "the file is empty")
    packed = next((name for magic, name in _PACKED.items() if raw.startswith(magic)), None)
    if packed:
        raise UsageError("packed", f"is packed with {packed}: unpack it first")
    check_size(raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError("not_json", "is not UTF-8 text", f"byte {error.start}") from None
    try:
        with uncollected():
            document = json.loads(
                text, object_pairs_hook=_object, parse_int=_int64, parse_float=_finite, parse_constant=_constant
            )
    except json.JSONDecodeError as error:
        _refuse_syntax(text, error)
    except DecodeError:
        raise UsageError("number", "a number beyond 64 bits", _place(text, _is_huge)) from None
    except RecursionError:
        raise UsageError("nested", "is nested too deeply") from None
    except UsageError as fault:
        bad = fault.where  # the literal, from the hooks below
        raise UsageError(fault.code, fault.text, _place(text, bad.__eq__) if bad else "") from None
    if not isinstance(document, dict):
        raise UsageError("not_an_object", f"holds a JSON {type(document).__name__}, not an object")
    return document


def check_size(raw: bytes) -> None:
    """None if what the text of a document could become in memory is bounded."""
    if len(raw) <= min(MAX_CONTAINERS, MAX_MEMORY_BYTES // max(_WEIGHTS.values())):
        return  # of the worst characters alone it would be: counting them takes as long as reading a run briefly
    if raw.count(b"[") + raw.count(b"{") > MAX_CONTAINERS:
        raise UsageError("too_large", f"more than {MAX_CONTAINERS} lists and objects")
    if sum(weight * raw.count(character) for character, weight in _WEIGHTS.items()) > MAX_MEMORY_BYTES:
        raise UsageError("too_large", f"its values could take more than {MAX_MEMORY_BYTES / 1e9:g} GB of memory")


def check_depth(value: Any, place: str) -> None:
    """None if no list or object in ``value`` is nested more than 20 deep: what prints it calls itself at each level."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    raise UsageError("nested", f"is nested more than {MAX_DEPTH} deep", place)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; json would silently keep the last of two equal keys, another reader the first."""
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        beside = ", ".join(shown(key, 20) for key in list(made)[:4] if key != twice)
        raise UsageError("duplicate_key", f"the key '{shown(twice, 60)}' is twice in one object (beside {beside})")
    return made


def _finite(literal: str) -> float:
    """The number, which must fit a double."""
    number = float(literal)
    if not math.isfinite(number):
        raise UsageError("number", "a number beyond the range of a double", literal)
    return number


def _constant(literal: str) -> NoReturn:
    raise UsageError("number", f"{literal} is no number of JSON", literal)


def _is_huge(literal: str) -> bool:
    digits = literal.removeprefix("-")
    return digits.isdecimal() and (len(digits) > 19 or not -(2**63) <= int(literal) < 2**63)


def _place(text: str, wanted: Any) -> str:
    """Line and column of the first token outside strings that is ``wanted``; only looked for once a fault is known."""
    for token in _TOKEN.finditer(text):
        if wanted(token.group()):
            at = token.start()
            return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
    return ""


def _refuse_syntax(text: str, error: json.JSONDecodeError) -> NoReturn:
    place = f"line {error.lineno} column {error.colno}"
    end = text.rstrip(" \t\r\n")
    if end.startswith("{") and (error.pos >= len(end) or not end.endswith("}")):
        raise UsageError("cut", f"the file was cut after {len(text.encode())} bytes: {error.msg}", place) from None
    raise UsageError("not_json", f"is not JSON: {error.msg}", place) from None
