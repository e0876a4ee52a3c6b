"""AMD's host system management port, /dev/hsmp: socket watts for everybody; arch/x86/amd_hsmp.rst."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

from cpubench.power import hints
from cpubench.power.backend import Found, by_index
from cpubench.power.channel import PERIOD_S, Channel, Meter, Reading, now_ns
from cpubench.power.controls import Problem
from cpubench.power.source import code_of, is_amd

DEVICE = "dev/hsmp"
GET_SOCKET_POWER = 0x04  # answers in mW
# struct hsmp_message of asm/amd_hsmp.h: message, words of arguments and answer, eight words, socket; 44 bytes
MESSAGE = struct.Struct("=IHH8IH2x")
IOCTL = 3 << 30 | MESSAGE.size << 16 | 0xF8 << 8  # _IOWR(0xF8, 0, struct hsmp_message)
MAX_SOCKETS = 8  # of the driver

Query = Callable[[int, int, int], int]  # file descriptor, socket, message -> first word of the answer; OSError


def ask(fd: int, socket: int, message: int) -> int:
    """The first word that a socket's management unit answers to a message without arguments; OSError."""
    told = fcntl.ioctl(fd, IOCTL, MESSAGE.pack(message, 0, 1, *[0] * 8, socket))
    word: int = MESSAGE.unpack(told)[3]
    return word


def find(root: Path, query: Query = ask) -> Found:
    """The sockets that tell their power; reading needs no root, and no more than a file opened for reading."""
    path = root / DEVICE
    if not path.exists():
        if not is_amd(root):
            return Found()  # no other CPU will ever have it
        return Found(problems=[Problem("no_interface", f"/{DEVICE}", hints.no_hwmon(root))])
    found = Found()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return Found(problems=[Problem(code_of(error), f"/{DEVICE}", "sudo chmod a+r /dev/hsmp")])
    try:
        for socket in range(MAX_SOCKETS):
            query(fd, socket, GET_SOCKET_POWER)
            channel = Channel(f"hsmp:socket-{socket}", "package", "power", 1e-3, f"/{DEVICE}", socket,
                              provenance="modelled")  # fmt: skip
            found.channels += by_index([channel], root)
    except OSError as error:
        if not found.channels:  # else: there is no further socket
            hint = "this firmware does not answer (ENOMSG: the message is unknown); " + hints.HSMP_BIOS
            found.problems.append(Problem(code_of(error), f"/{DEVICE}", f"{error.strerror}; {hint}"))
    finally:
        os.close(fd)
    found.named = {c.socket for c in found.channels if c.socket is not None}
    return found


class HsmpMeter:
    def __init__(
        self, name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path,
        query: Query = ask, clock: Callable[[], int] = now_ns,
    ) -> None:  # fmt: skip
        self.name, self.scope, self.sockets, self.period_s = name, scope, sockets, PERIOD_S
        self.channels, self.flags, self._query, self._clock = tuple(channels), set[str](), query, clock
        self._indexes = [int(channel.id.rpartition("-")[2]) for channel in channels]
        self._fd = os.open(root / DEVICE, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> list[Reading]:
        reading = Reading([], [], [])
        for socket in self._indexes:
            value, code = None, ""
            try:
                value = self._query(self._fd, socket, GET_SOCKET_POWER)
            except OSError as error:
                code = code_of(error)
            reading.at_ns.append(self._clock())
            reading.raw.append(value)
            reading.errors.append(code)
        return [reading]

    def close(self) -> None:
        os.close(self._fd)


def open_meter(name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path) -> Meter:
    return HsmpMeter(name, scope, channels, sockets, root)
