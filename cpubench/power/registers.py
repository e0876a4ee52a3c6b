"""One limit register at a time: a file of sysfs, or a message of /dev/hsmp. Nothing else here reads or writes a limit.

A place is the path below the root folder; ``dev/hsmp#1`` is the limit of the second socket. Values are the kernel's
own numbers: microwatts, kHz, or 0 and 1.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.fact import ROOT

HSMP = "dev/hsmp#"
# struct hsmp_message of <asm/amd_hsmp.h>, packed to 4: id, arguments, response words, eight words, socket
_MESSAGE = struct.Struct("=IHH8IH2x")
_HSMP_IOCTL = 3 << 30 | _MESSAGE.size << 16 | 0xF8 << 8
SET_LIMIT, GET_LIMIT, GET_MAXIMUM = 0x05, 0x06, 0x07  # in mW


def write_file(path: Path, text: str) -> None:
    """Writes to a register that is there; never makes a file. Raises OSError."""
    file = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(file, f"{text}\n".encode())  # one call: sysfs takes each as a whole
    finally:
        os.close(file)


def _ioctl(file: int, request: int, message: bytes) -> bytes:
    return fcntl.ioctl(file, request, message)


@dataclass(frozen=True)
class Host:
    """Where registers are: the root folder, and how one is written, so that a tree of plain files can be a host."""

    root: Path = ROOT
    write: Callable[[Path, str], None] = write_file
    ioctl: Callable[[int, int, bytes], bytes] = _ioctl


def read(host: Host, place: str) -> int:
    """The number in a register; raises OSError, EINVAL for what is none."""
    if place.startswith(HSMP):
        return hsmp(host, GET_LIMIT, int(place.removeprefix(HSMP))) * 1000
    file = os.open(host.root / place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(file, 4096).strip()
    finally:
        os.close(file)
    if not re.fullmatch(rb"[0-9]{1,20}", text):
        raise OSError(22, f"no number: {text[:40]!r}")
    return int(text)


def write(host: Host, place: str, value: int) -> None:
    """Writes a number; raises OSError. That it returns says little: read it back."""
    if place.startswith(HSMP):
        hsmp(host, SET_LIMIT, int(place.removeprefix(HSMP)), value // 1000)
    else:
        host.write(host.root / place, str(value))


def by_hand(host: Host, place: str, value: int) -> str:
    """The shell command that writes a register, for a person with root."""
    if place.startswith(HSMP):
        return f"e_smi_tool --setpowerlimit {place.removeprefix(HSMP)} {value // 1000}"
    return f"echo {value} > {shlex.quote(str(host.root / place))}"


def writable(host: Host, place: str) -> bool:
    """Whether this user may write there, as far as permissions say."""
    return os.access(host.root / place.partition("#")[0], os.W_OK)


def hsmp(host: Host, message: int, socket: int, *arguments: int) -> int:
    """The first word of the answer of the system management unit to a message; raises OSError."""
    words = (*arguments, *[0] * (8 - len(arguments)))
    request = _MESSAGE.pack(message, len(arguments), 0 if arguments else 1, *words, socket)
    file = os.open(host.root / "dev/hsmp", (os.O_WRONLY if arguments else os.O_RDONLY) | os.O_CLOEXEC)
    try:
        answer: int = _MESSAGE.unpack(host.ioctl(file, _HSMP_IOCTL, request))[3]
    finally:
        os.close(file)
    return answer
