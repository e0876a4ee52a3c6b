"""RAPL through the perf ``power`` PMU: one event for each CPU of its cpumask, which is one a package or die.

Its counters are 64 bits wide and signed. The kernel refreshes them by a timer that is laid out for 200 W: at 400 W and
more a value that nobody reads goes back by half of the hardware's range, so they are read at least each 20 s.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from cpubench.host.cpulist import read_cpulist
from cpubench.host.fact import names_in, read_int, read_text
from cpubench.host.virtual import read_virtual
from cpubench.power import hints
from cpubench.power.backend import Found
from cpubench.power.channel import PERIOD_S, Channel, Meter, Provenance, Reading, now_ns
from cpubench.power.controls import Problem
from cpubench.power.source import code_of, is_amd, package_of, read_each

PMU = "sys/bus/event_source/devices/power"
EVENTS = {"energy-pkg": "package", "energy-ram": "dram", "energy-psys": "psys"}  # cores and gpu are inside of a package
# AMD before Linux 5.17 lists events that its CPUs do not have.
AMD_EVENTS = {"energy-pkg": "package"}
GAP_S = 20.0  # half of AMD's 65.5 kJ at 1,500 W

OpenCounter = Callable[[int, int, int], int]  # PMU type, config, CPU -> file descriptor; OSError


def native_open(kind: int, config: int, cpu: int) -> int:
    from cpubench import _native

    return _native.perf_open(kind, config, cpu)


def _config(root: Path, event: str) -> int | None:
    found = re.fullmatch(r"event=0x([0-9a-fA-F]{1,4})", read_text(root, f"{PMU}/events/{event}").value or "")
    return int(found[1], 16) if found else None


def _joules_of_a_count(root: Path, event: str) -> float | None:
    """2^-32, or 1 J for psys of some servers."""
    if read_text(root, f"{PMU}/events/{event}.unit").value != "Joules":
        return None
    try:
        scale = float(read_text(root, f"{PMU}/events/{event}.scale").value or "")
    except ValueError:
        return None
    return scale if 0 < scale <= 1 else None


def find(root: Path, open_counter: OpenCounter = native_open) -> Found:
    """The energy events that can be opened here; each is opened once and closed."""
    found = Found()
    kind = read_int(root, f"{PMU}/type")
    if kind.value is None:
        code = "no_interface" if kind.absent else "read_error"
        return Found(problems=[Problem(code, f"/{PMU}", hints.no_perf(root) if kind.absent else hints.NO_VALUE)])
    cpus = read_cpulist(root, f"{PMU}/cpumask")
    if not cpus.value:
        return Found(problems=[Problem("read_error", f"/{PMU}/cpumask", hints.NO_VALUE)])
    amd = is_amd(root)
    provenance: Provenance = "estimated" if read_virtual(root).value else "modelled" if amd else "measured"
    names = names_in(root, f"{PMU}/events").value or []
    for event, scope in (AMD_EVENTS if amd else EVENTS).items():
        if event not in names:
            continue
        config, unit = _config(root, event), _joules_of_a_count(root, event)
        path = f"/{PMU}/events/{event}"
        if config is None or unit is None:
            found.problems.append(Problem("read_error", path, "an event in a form that is not known"))
            continue
        for cpu in cpus.value if scope != "psys" else cpus.value[:1]:  # the platform is one, whoever asks
            socket = package_of(root, cpu) if scope != "psys" else None
            many = sum(package_of(root, other) == socket for other in cpus.value) > 1 and socket is not None
            channel = Channel(
                f"perf:{event}@{cpu}", scope, "energy", unit, path, socket,
                package_of(root, cpu, "die_id") if many else None, "" if socket is not None else str(cpu),
                gap_s=GAP_S, provenance=provenance, mirrors=amd and many,
            )  # fmt: skip
            found.named.add(channel.place)
            try:
                os.close(open_counter(kind.value, config, cpu))
            except ImportError:
                return Found(problems=[Problem("not_built", path, "build the extension: pip install .")])
            except OSError as error:
                code = code_of(error)
                hint = hints.PARANOID if code == "permission" else hints.NO_VALUE
                found.problems.append(Problem(code, path, f"{error.strerror} on CPU {cpu}; {hint}"))
                continue
            found.channels.append(channel)
    if not found.channels and not found.problems:
        found.problems.append(Problem("no_interface", f"/{PMU}/events", hints.no_perf(root)))
    return found


def _count(fd: int) -> int:
    raw = os.read(fd, 8)
    if len(raw) < 8:  # 0 bytes: its CPU went away
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    return int.from_bytes(raw, "little", signed=True)


class PerfMeter:
    """Open events; they are read by read(2), which gives 8 bytes."""

    def __init__(
        self, name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path,
        open_counter: OpenCounter = native_open, clock: Callable[[], int] = now_ns,
    ) -> None:  # fmt: skip
        self.name, self.scope, self.sockets, self.period_s = name, scope, sockets, PERIOD_S
        self.channels, self.flags, self._clock = tuple(channels), set[str](), clock
        self._fds: list[int | str] = []
        kind = read_int(root, f"{PMU}/type").value or 0
        for channel in channels:
            event, _, cpu = channel.id.partition(":")[2].partition("@")
            try:
                self._fds.append(open_counter(kind, _config(root, event) or 0, int(cpu)))
            except OSError as error:
                self._fds.append(code_of(error))

    def read(self) -> list[Reading]:
        return read_each(self._fds, _count, self._clock)

    def close(self) -> None:
        for fd in self._fds:
            if not isinstance(fd, str):
                os.close(fd)
        self._fds = []


def open_meter(name: str, scope: str, channels: list[Channel], sockets: frozenset[int] | None, root: Path) -> Meter:
    return PerfMeter(name, scope, channels, sockets, root)
