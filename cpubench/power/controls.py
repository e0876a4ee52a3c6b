"""What can be limited: records that every backend fills."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.fact import Fact, read_int

SANE_UW = 1_500_000_000  # 1500 W a socket; 3409 W and "no limit" of 4095 W are seen in registers (thermald#45, #113)
FIRST = ("long_term", "short_term")  # of the constraints of powercap, those that a cap is written to


@dataclass(frozen=True)
class Problem:
    """Why something cannot be had: a stable word, the place, and what a person can do."""

    code: str
    path: str
    hint: str


@dataclass(frozen=True)
class Limit:
    """A register: ``key`` finds it again when numbers of folders have changed, ``place`` is where it is now."""

    key: str
    place: str
    constraint: str  # long_term, short_term, peak_power, cap, enabled, max_freq
    value: int | None  # in uW; kHz of a frequency; 0 or 1 of enabled
    reason: str = ""  # why there is none


@dataclass(frozen=True)
class Control:
    """One zone that can be limited, or could but for its ``problem``."""

    key: str
    backend: str
    zone: str
    scope: str  # package, module, board, dram, psys, core, other, proxy:freq
    socket: int | None
    limits: tuple[Limit, ...]
    enable: Limit | None = None
    low: int | None = None  # in the unit of the limits
    high: int | None = None
    step: int = 1  # the register's resolution: what is written may read less than this apart
    window_us: int = 0
    problem: Problem | None = None

    @property
    def enabled(self) -> bool | None:
        """None where there is no such switch or it cannot be read."""
        return None if self.enable is None or self.enable.value is None else bool(self.enable.value)

    @property
    def ceiling(self) -> int | None:
        """The highest value that may be written: no cap raises a limit that is in force."""
        if self.scope == "proxy:freq":
            return self.high
        known = [x.value for x in self.capped if x.value and x.value <= SANE_UW and self.enabled is not False]
        return min([*known, *([self.high] if self.high else [])], default=None)

    @property
    def capped(self) -> tuple[Limit, ...]:
        """The limits that a cap is written to, the slowest first: the order for lowering."""
        mine = [x for x in self.limits if x.constraint in (*FIRST, "cap", "max_freq")]
        return tuple(sorted(mine, key=lambda x: x.constraint == "short_term"))


def limit_at(root: Path, key: str, place: str, constraint: str) -> Limit:
    """The register with what it holds now."""
    found = read_int(root, place)
    value = found.value if found.value is not None and found.value >= 0 else None
    return Limit(key, place, constraint, value, found.reason or ("" if value is not None else f"/{place}: below 0"))


def positive(root: Path, place: str, most: int = SANE_UW) -> int | None:
    """A hint of a driver where it can be meant: above 0 and sane."""
    value = read_int(root, place).value
    return value if value is not None and 0 < value <= most else None


def listed(folder: Path) -> Fact[list[str]]:
    """The names in a folder, sorted, links that lead nowhere too."""
    try:
        return Fact(sorted(os.listdir(folder)))
    except FileNotFoundError:
        return Fact(None, "no such folder", absent=True)
    except OSError as error:
        return Fact(None, error.strerror or str(error))


def packages(root: Path) -> set[int]:
    """The ids of the sockets that the topology names; empty where it names none."""
    cpus = [name for name in listed(root / "sys/devices/system/cpu").value or () if name[3:].isdecimal()]
    ids = (read_int(root, f"sys/devices/system/cpu/{cpu}/topology/physical_package_id").value for cpu in cpus)
    return {number for number in ids if number is not None and number >= 0}
