"""Files of sysfs, kept open and read anew, and what an errno of theirs means."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from cpubench.host.cpulist import MAX_CPU, read_cpulist
from cpubench.host.fact import names_in, read_int, read_text
from cpubench.host.topology import SYS_CPU
from cpubench.power.channel import PERIOD_S, Channel, Reading, now_ns

# The powercap core swallows what its drivers say: a failing energy_uj is EINVAL, a failing constraint ENODATA.
CODES = {errno.EACCES: "permission", errno.EPERM: "permission", errno.ENODATA: "no_data", errno.ENODEV: "vanished",
         errno.ENXIO: "vanished", errno.ENOENT: "vanished", errno.ETIMEDOUT: "timeout"}  # fmt: skip

T = TypeVar("T")


class Source(Protocol):
    read: Callable[[], bytes]

    def close(self) -> None: ...


Opener = Callable[[Path], Source]


class OpenFile:
    """A file that stays open: sysfs answers each read at offset 0 anew, in a third of the time of opening it too."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.read: Callable[[], bytes] = partial(os.pread, self._fd, 256, 0)

    def close(self) -> None:
        os.close(self._fd)


def code_of(error: OSError) -> str:
    """The word for an errno; "read_error" for all that have none."""
    return CODES.get(error.errno or 0, "read_error")


def text_of(path: Path, open_: Opener = OpenFile) -> str:
    """What a file says, without white space at its ends; OSError."""
    source = open_(path)
    try:
        return source.read().decode("utf-8", "backslashreplace").strip("\0 \t\r\n")
    finally:
        source.close()


def whole(text: str | bytes) -> int | None:
    """The whole number that a file says; None on anything else (int() would take "1_000" and Arabic digits)."""
    raw = text.encode() if isinstance(text, str) else text
    found = re.fullmatch(rb"[ \t\r\n\0]*(-?[0-9]{1,20})[ \t\r\n\0]*", raw)
    return int(found[1]) if found else None


def packages(root: Path) -> frozenset[int] | None:
    """The ids of the packages that hold online CPUs; None where the kernel does not say for each of them."""
    online = read_cpulist(root, f"{SYS_CPU}/online").value
    names = {f"cpu{cpu}" for cpu in online} if online is not None else None
    found = set()
    for name in names_in(root, SYS_CPU).value or ():
        if re.fullmatch(r"cpu[0-9]{1,7}", name) and (names is None or name in names):
            value = package_of(root, int(name[3:]))
            if value is None:
                return None
            found.add(value)
    return frozenset(found) or None


def package_of(root: Path, cpu: int, name: str = "physical_package_id") -> int | None:
    value = read_int(root, f"{SYS_CPU}/cpu{cpu}/topology/{name}").value
    return value if value is not None and 0 <= value <= MAX_CPU else None


def is_amd(root: Path) -> bool:
    """Whether the CPU is AMD's or Hygon's, whose energy is a model's and whose dies may mirror one counter."""
    text = read_text(root, "proc/cpuinfo", 1 << 16).value or ""
    return bool(re.search(r"^vendor_id\s*: (AuthenticAMD|HygonGenuine)", text, re.MULTILINE))


def read_each(sources: Sequence[T | str], ask: Callable[[T], float], clock: Callable[[], int]) -> list[Reading]:
    """One reading: what ``ask`` gives for each source, or the word for its OSError; a source that is a word is one
    that could not be opened.

    Short on purpose: a process that woke up runs with cold caches, and half of its cost was parsing by re.
    """
    at_ns: list[int] = []
    raw: list[float | None] = []
    errors: list[str] = []
    for source in sources:
        value, code = None, ""
        if isinstance(source, str):
            code = source
        else:
            try:
                value = ask(source)
            except OSError as error:
                code = code_of(error)
        at_ns.append(clock())
        raw.append(value)
        errors.append(code)
    return [Reading(at_ns, raw, errors)]


def _number(source: Source) -> int:
    data = source.read()
    value = int(data) if len(data) < 20 and data.rstrip().isdigit() else whole(data)
    if value is None:
        raise OSError("no whole number")
    return value


class FileMeter:
    """A meter whose channels are files with one whole number each."""

    def __init__(
        self, name: str, scope: str, channels: Sequence[Channel], paths: Sequence[Path],
        sockets: frozenset[int] | None, open_: Opener = OpenFile, clock: Callable[[], int] = now_ns,
        period_s: float = PERIOD_S,
    ) -> None:  # fmt: skip
        self.name, self.scope, self.sockets, self.period_s = name, scope, sockets, period_s
        self.channels, self.flags, self._clock = tuple(channels), set[str](), clock
        self._sources: list[Source | str] = []
        for path in paths:
            try:
                self._sources.append(open_(path))
            except OSError as error:
                self._sources.append(code_of(error))

    def read(self) -> list[Reading]:
        return read_each(self._sources, _number, self._clock)

    def close(self) -> None:
        for source in self._sources:
            if not isinstance(source, str):
                source.close()
        self._sources = []
