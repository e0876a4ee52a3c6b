"""AMD's host system management port, /dev/hsmp: socket watts for everybody; arch/x86/amd_hsmp.rst."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cpubench.power import hints
from cpubench.power.backend import Found, by_index
from cpubench.power.channel import PERIOD_S, Channel, Meter, Reading, now_ns
from cpubench.power.controls import Problem
from cpubench.power.registers import Host, hsmp
from cpubench.power.source import code_of, is_amd, read_each

DEVICE = "dev/hsmp"
GET_SOCKET_POWER = 0x04  # answers in mW
MAX_SOCKETS = 8  # of the driver


def find(host: Host) -> Found:
    """The sockets that tell their power; reading needs no root, and no more than a file opened for reading."""
    root = host.root
    if not (root / DEVICE).exists():
        if not is_amd(root):
            return Found()  # no other CPU will ever have it
        return Found(problems=[Problem("no_interface", f"/{DEVICE}", hints.no_hwmon(root))])
    found = Found()
    try:
        for socket in range(MAX_SOCKETS):
            hsmp(host, GET_SOCKET_POWER, socket)
            channel = Channel(f"hsmp:socket-{socket}", "package", "power", 1e-3, f"/{DEVICE}", socket,
                              provenance="modelled")  # fmt: skip
            found.channels += by_index([channel], root)
    except OSError as error:
        if not found.channels:  # else: there is no further socket
            code = code_of(error)
            hint = "this firmware does not answer (ENOMSG: the message is unknown); " + hints.HSMP_BIOS
            hint = "sudo chmod a+r /dev/hsmp" if code == "permission" else f"{error.strerror}; {hint}"
            found.problems.append(Problem(code, f"/{DEVICE}", hint))
    found.named = {channel.place for channel in found.channels}
    return found


class HsmpMeter:
    """Socket watts, one message a socket."""

    def __init__(
        self, name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, host: Host,
        clock: Callable[[], int] = now_ns,
    ) -> None:  # fmt: skip
        self.name, self.scope, self.sockets, self.period_s = name, scope, sockets, PERIOD_S
        self.channels, self.flags, self._host, self._clock = tuple(channels), set[str](), host, clock
        self._indexes = [int(channel.id.rpartition("-")[2]) for channel in channels]

    def read(self) -> list[Reading]:
        return read_each(self._indexes, partial(hsmp, self._host, GET_SOCKET_POWER), self._clock)

    def close(self) -> None:
        pass


def find_below(root: Path) -> Found:
    return find(Host(root))


def open_meter(name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path) -> Meter:
    return HsmpMeter(name, scope, channels, sockets, Host(root))
