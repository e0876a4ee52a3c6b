"""A value read from the machine, or the reason why there is none: nothing here is ever a default."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
ROOT = Path("/")


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A value; ``reason`` says why it is None or, beside a value, what is doubtful about it."""

    value: T | None
    reason: str | None = None
    absent: bool = False  # there is no such file, as opposed to one that cannot be read


def read_text(root: Path, name: str, limit_bytes: int = 1 << 20, keep_empty: bool = False) -> Fact[str]:
    """The text of a file below ``root``, without white space and NULs at its ends; empty is a reason too."""
    try:
        with (root / name).open("rb") as file:
            data = file.read(limit_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return Fact(None, f"/{name}: no such file", absent=True)
    except (OSError, ValueError) as error:  # sysfs files answer with EIO, EINVAL, ENODATA, EBUSY ..
        return Fact(None, f"/{name}: {getattr(error, 'strerror', None) or error}")
    # A host name can be any bytes, and a lone surrogate could not be written as UTF-8 again.
    text = data.decode("utf-8", "backslashreplace").strip("\0 \t\r\n")
    return Fact(text) if text or keep_empty else Fact(None, f"/{name}: empty")


def read_int(root: Path, name: str) -> Fact[int]:
    """The whole number that a file below ``root`` holds."""
    text = read_text(root, name, 4096)
    if text.value is None:
        return Fact(None, text.reason, text.absent)
    # The kernel's counters have 64 bits; what is longer could neither be divided nor be stored.
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text.value, re.ASCII):
        return Fact(int(text.value))
    return Fact(None, f"/{name}: not a whole number: {text.value[:40]!r}")


def first_known(facts: Iterable[Fact[T]]) -> Fact[T]:
    """The first fact that has a value, lazily; without one, all the reasons."""
    reasons = []
    for fact in facts:
        if fact.value is not None:
            return fact
        reasons.append(fact.reason or "unknown")
    return Fact(None, "; ".join(reasons) or "nothing to read")


def names_in(root: Path, name: str) -> Fact[list[str]]:
    """The names in a folder below ``root``, sorted."""
    try:
        return Fact(sorted(path.name for path in (root / name).iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return Fact(None, f"/{name}: no such folder", absent=True)
    except OSError as error:
        return Fact(None, f"/{name}: {error.strerror}")
