"""How often heat or a power limit slowed the CPUs down: Intel's thermal_throttle counters, an event counted once.

Each logical CPU counts what happens to its core and to its package: an event of a package is in the files of all its
CPUs, one of a core in those of both siblings. Others have none, nor have virtual machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cpubench.host.cpulist import read_cpulist
from cpubench.host.fact import Fact, first_known, read_int

CPU = "sys/devices/system/cpu"
SIBLINGS = ("core_cpus_list", "thread_siblings_list")  # the second one before Linux 5.3
Counts = dict[tuple[str, int, int], int]  # by what counts, the core or package, and the CPU


def read_heat(cpus: Sequence[int], root: Path) -> dict[str, Fact[Counts]]:
    """The counts of ``results.records.Snapshot`` for some CPUs, each of them apart."""
    limits = [_counts(cpus, f"{level}_power_limit_count", root) for level in ("core", "package")]
    told: Counts = {key: count for one in limits for key, count in (one.value or {}).items()}
    return {
        "core_throttles": _counts(cpus, "core_throttle_count", root),
        "package_throttles": _counts(cpus, "package_throttle_count", root),
        "power_limits": Fact(told) if any(one.value is not None for one in limits) else Fact(None, limits[0].reason),
    }


def events(counts: Counts) -> int:
    """What happened so far."""
    return grown(dict.fromkeys(counts, 0), counts)


def grown(before: Counts, after: Counts) -> int:
    """What happened in between: of each core or package the most that one of its CPUs counted."""
    most: dict[tuple[str, int], int] = {}
    for key, count in after.items():
        most[key[:2]] = max(most.get(key[:2], 0), count - before.get(key, count))
    return sum(most.values())


def _counts(cpus: Iterable[int], name: str, root: Path) -> Fact[Counts]:
    found: Counts = {}
    for cpu in cpus:
        count = read_int(root, f"{CPU}/cpu{cpu}/thermal_throttle/{name}")
        if count.value is None:
            return Fact(None, count.reason)
        group = _package(cpu, root) if name.startswith("package") else _core(cpu, root)
        if group.value is None:
            return Fact(None, group.reason)
        found[name, group.value, cpu] = count.value
    return Fact(found)


def _package(cpu: int, root: Path) -> Fact[int]:
    return read_int(root, f"{CPU}/cpu{cpu}/topology/physical_package_id")


def _core(cpu: int, root: Path) -> Fact[int]:
    """The lowest CPU of a core."""
    listed = first_known(read_cpulist(root, f"{CPU}/cpu{cpu}/topology/{name}") for name in SIBLINGS)
    return Fact(min(listed.value)) if listed.value else Fact(None, listed.reason or f"cpu{cpu}: no siblings are listed")
