"""Runs that travel: packed with gzip, with the sum of the packed bytes beside them in the form of sha256sum(1)."""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import Path

from cpubench.errors import UsageError

ENDING, SUM = ".gz", ".sha256"
_SUM = re.compile(rb"([0-9a-f]{64}) [ *][^\n]{1,255}\n?")


def is_packed(file: Path) -> bool:
    """Whether a file is taken for a packed one: by its name, not by what it holds."""
    return file.name.endswith(ENDING)


def unpacked(raw: bytes, most: int) -> bytes:
    """What a gzip file of one member holds, at most ``most`` bytes, whatever its trailer promises.

    One member is what we write; a file of ten million empty ones would be read for hours.
    """
    if not raw:
        raise UsageError("empty", "the file is empty")
    if not raw.startswith(b"\x1f\x8b"):
        raise UsageError("packed", "is not gzip, which its name says")
    reader = zlib.decompressobj(wbits=31)
    try:
        content = reader.decompress(raw, most + 1)
    except zlib.error as error:
        raise UsageError("packed", f"is damaged: {str(error).rpartition(': ')[2]}") from None
    if len(content) > most:
        raise UsageError("too_large", f"more than {most} bytes when unpacked; at most {most} are read")
    if not reader.eof:
        raise UsageError("cut", f"the packed file was cut after {len(raw)} bytes")
    if reader.unused_data:
        raise UsageError("packed", f"{len(reader.unused_data)} bytes follow its end")
    return content


def sum_line(raw: bytes, name: str) -> str:
    """The line that sha256sum(1) writes of a file with these bytes."""
    return f"{hashlib.sha256(raw).hexdigest()}  {name}\n"


def check_sum(raw: bytes, told: bytes) -> str:
    """The SHA-256 of ``raw`` in hex; UsageError where ``told``, the file of its sum, says another."""
    match = _SUM.fullmatch(told)
    if match is None:
        raise UsageError("sum", "is no line of sha256sum: it is cut, or was made by something else")
    found = hashlib.sha256(raw).hexdigest()
    if found != match[1].decode():
        raise UsageError("changed", f"was changed on the way: it is not what its {SUM} says")
    return found
