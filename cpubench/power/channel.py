"""What a meter reads: channels, readings, and the log of them from which energy is computed.

Standard library only, as everything in this room: the sampler and the block import it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

SOCKET_MAX_W = 1500.0  # no socket draws more: the largest server CPUs are sold with 500 W
WALL_MAX_W = 6000.0
# Between readings inside a window. A process that wakes up on a loaded virtual machine takes 90 to 130 us of CPU, 50
# of them the kernel's own: ten times a second were up to 0.13 % of a core.
PERIOD_S = 0.2
LATER = "csv"  # the name of the meter whose watts are merged after the run
GAP_S = 5.0  # two samples of a watts series further apart than this say nothing of what lay between

Provenance = Literal["measured", "modelled", "estimated", "external"]
Ties = tuple[tuple[int, int], ...]  # moments on the clock of the samples and as Unix time, in ns


class Place(NamedTuple):
    """What a channel is of: two of one place read the same thing."""

    scope: str
    socket: int | None = None
    die: int | None = None
    part: str = ""

    def __str__(self) -> str:
        socket = "" if self.socket is None else f" of package {self.socket}"
        return self.scope + socket + ("" if self.die is None else f" die {self.die}") + (self.part and f" {self.part}")


@dataclass(frozen=True)
class Channel:
    """One counter or one series of watts. Channels of one scope are added only where socket, die or part differ."""

    id: str  # the same after the next boot
    scope: str  # package, dram, core, uncore, psys; soc; superchip, module, cpu, sysio; board, wall
    kind: Literal["energy", "power"]
    unit: float  # joules, or watts, of one raw count
    path: str = ""
    socket: int | None = None
    die: int | None = None
    part: str = ""  # a rail of the scope
    range_raw: int | None = None  # the counter's last value before it starts again; None: a step back is no wrap
    max_w: float = SOCKET_MAX_W
    gap_s: float = GAP_S  # readings further apart are not joined: a wrap between them could hide
    provenance: Provenance = "measured"
    rank: int = 0  # of two channels that read the same thing the lower is kept
    mirrors: bool = False  # dies of one socket may all show the one counter of the socket

    @property
    def place(self) -> Place:
        return Place(self.scope, self.socket, self.die, self.part)


class Reading(NamedTuple):
    """One value for each channel, in the meter's order; ``errors`` has a code where there is none, else ""."""

    at_ns: list[int]  # CLOCK_MONOTONIC_RAW, the clock of every sample
    raw: list[float | None]
    errors: list[str]


class Meter(Protocol):
    """An open meter. ``read`` returns what is new since the last call, usually one reading; it never raises."""

    name: str
    scope: str
    channels: tuple[Channel, ...]
    sockets: frozenset[int] | None  # that the host has; None: not known
    period_s: float  # between two readings inside a window
    flags: set[str]  # what is doubtful, as known so far

    def read(self) -> list[Reading]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Log:
    """What a meter said in a while, as raw numbers: nothing here was computed."""

    meter: str
    scope: str
    channels: tuple[Channel, ...]
    sockets: frozenset[int] | None
    readings: tuple[Reading, ...]
    flags: frozenset[str] = frozenset()
    lost: str = ""  # why there are no (more) readings
    clock: Ties = ()  # of a meter whose watts are merged afterwards


def log_of(meter: Meter, readings: list[Reading]) -> Log:
    return Log(meter.name, meter.scope, meter.channels, meter.sockets, tuple(readings), frozenset(meter.flags))


def dump(log: Log) -> dict[str, Any]:
    """The log as it may be written as JSON."""
    made = asdict(log) | {
        "channels": [asdict(channel) for channel in log.channels],
        "sockets": None if log.sockets is None else sorted(log.sockets),
        "readings": [list(reading) for reading in log.readings],
        "flags": sorted(log.flags),
        "clock": [list(tie) for tie in log.clock],
    }
    return made if log.clock else {key: value for key, value in made.items() if key != "clock"}


def load(document: dict[str, Any]) -> Log:
    """The log that ``dump`` wrote."""
    sockets = document["sockets"]
    return Log(
        document["meter"], document["scope"], tuple(Channel(**channel) for channel in document["channels"]),
        None if sockets is None else frozenset(sockets), tuple(Reading(*row) for row in document["readings"]),
        frozenset(document["flags"]), document["lost"], tuple((t, u) for t, u in document.get("clock", ())),
    )  # fmt: skip


# CLOCK_MONOTONIC_RAW in nanoseconds.
now_ns: Callable[[], int] = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC_RAW)
