"""``cpubench.trace/1``, the normal form: a line per span, after a first line that names the schema."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cpubench.errors import UsageError
from cpubench.results.parse import shown
from cpubench.traces.lines import json_lines, number, status
from cpubench.traces.span import CLASSES, KINDS, SCHEMA, Span, told

COUNTS = ("step", "in_bytes", "out_bytes", "forks", "maxrss")
SECONDS = ("dur", "cpu_user", "cpu_sys", "internal_dur")


def read(path: Path) -> Iterator[Span]:
    """The spans as they are written; what the format does not allow is refused with its line."""
    for where, line in json_lines(path):
        if "schema" in line:
            if line["schema"] != SCHEMA:
                raise UsageError("schema", f"is of schema {shown(str(line['schema']), 40)}; wanted is {SCHEMA}", where)
            continue
        line = {key: value for key, value in line.items() if value is not None and key != "key"}
        try:
            span = msgspec.convert(line, Span)
        except msgspec.ValidationError as error:
            raise UsageError("record", shown(str(error).partition(" - ")[0], 60), where) from None
        for name, value, known in (("kind", span.kind, KINDS), ("class", span.cls or "other", CLASSES)):
            if value not in known:
                text = f"the {name} '{shown(value, 40)}' is none of {', '.join(known)}"
                raise UsageError("record", text, where)
        if any(name in line and number(line[name]) is None for name in SECONDS):
            raise UsageError("record", "holds a time below 0", where)
        counts = [line[name] for name in COUNTS if name in line]
        if not all(0 <= count < 1 << 53 for count in counts) or status(line.get("exit", 0)) is None:
            raise UsageError("record", "holds a number that is no count", where)
        yield span


@contextmanager
def writing(path: Path | None, keep_commands: bool) -> Iterator[Callable[[Span], None]]:
    """What writes a span to the file, which is there once all of them are and not before; nothing where it is None."""
    if path is None:
        yield lambda span: None
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    encode = msgspec.json.encode
    try:
        with temporary.open("wb") as file:
            file.write(encode({"schema": SCHEMA}) + b"\n")
            yield lambda span: (file.write(encode(told(span, keep_commands)) + b"\n"), None)[1]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, ValueError) as error:
        text = f"cannot be written: {getattr(error, 'strerror', None) or 'it is no file name'}"
        raise UsageError("write", text, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
