"""Kinds of cores that one machine has: big and small, performance and efficiency. Their rates are never averaged.

A higher clock alone makes no class: favoured cores of servers and desktops differ by some per cent (gamemode#498).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.caches import Cache
from cpubench.host.cpulist import format_cpulist, read_cpulist
from cpubench.host.fact import ROOT, Fact, read_int, read_text
from cpubench.host.identity import part_name

# The event sources that x86 makes of each kind of core (arch/x86/events/intel/core.c).
PMUS = ("cpu_core", "cpu_atom", "cpu_lowpower")
# cpu_capacity, relative to 1024, is 446 for a Cortex-A53 beside an A73 and about 600 for an efficiency core of x86;
# favoured performance cores differ by up to 5 %.
SAME_CAPACITY = 0.9


@dataclass(frozen=True)
class CoreClass:
    name: str  # what sets it apart; "uniform" where there is one class
    cpus: tuple[int, ...]


def read_classes(
    cpus: Iterable[int], caches: Mapping[int, Fact[tuple[Cache, ...]]], root: Path = ROOT
) -> Fact[tuple[CoreClass, ...]]:
    """The classes of these CPUs by lowest CPU; None where no source tells of all of them.

    CPUs are of one class where every source that tells says the same of them; what tells of some is named and not used.
    """
    chosen = sorted(set(cpus))
    sources: list[dict[int, str]] = []
    doubts: list[str] = []
    readers: tuple[tuple[str, Callable[[], dict[int, str]]], ...] = (
        (" and ".join(f"{name}/cpus" for name in PMUS[:2]), lambda: _by_pmu(root)),
        ("midr_el1", lambda: _by_part(root, chosen)),
        ("cpu_capacity", lambda: _by_capacity(root, chosen, doubts)),
        ("cache sizes", lambda: _by_caches(caches)),
    )
    for name, read in readers:
        told = read()
        left = [cpu for cpu in chosen if cpu not in told]
        if not left and chosen:
            sources.append(told)
        elif len(left) < len(chosen):
            doubts.append(f"{name}: nothing of CPUs {format_cpulist(left)}, so it is not used")
    if not sources:
        return Fact(None, "; ".join([f"no {', no '.join(name for name, _ in readers)} of all CPUs", *doubts]))
    telling = [source for source in sources if len({source[cpu] for cpu in chosen}) > 1]
    members: dict[str, list[int]] = {}
    for cpu in chosen:
        members.setdefault(", ".join(source[cpu] for source in telling) or "uniform", []).append(cpu)
    return Fact(tuple(CoreClass(name, tuple(of)) for name, of in members.items()), "; ".join(doubts) or None)


def _by_pmu(root: Path) -> dict[int, str]:
    found: dict[int, str] = {}
    for name in PMUS:
        found.update(dict.fromkeys(read_cpulist(root, f"sys/devices/{name}/cpus").value or (), name))
    return found


def _by_part(root: Path, cpus: list[int]) -> dict[int, str]:
    """The part that each Arm CPU says it is (Documentation/arch/arm64/cpu-feature-registers.rst)."""
    found: dict[int, str] = {}
    for cpu in cpus:
        text = read_text(root, f"sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1", 64)
        if text.absent and not found:
            break  # x86, or a kernel before 4.8: the other CPUs have none either
        if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text.value or ""):
            midr = int(text.value or "", 16)
            found[cpu] = part_name(midr >> 24 & 0xFF, midr >> 4 & 0xFFF)
    return found


def _by_capacity(root: Path, cpus: list[int], doubts: list[str]) -> dict[int, str]:
    read = {cpu: read_int(root, f"sys/devices/system/cpu/cpu{cpu}/cpu_capacity").value for cpu in cpus}
    capacities = {cpu: value for cpu, value in read.items() if value is not None and 0 < value < 10**6}
    group: dict[int, int] = {}
    top = 0
    for value in sorted(set(capacities.values()), reverse=True):
        top = value if value < SAME_CAPACITY * top or not top else top
        group[value] = top
    favoured = sorted(value for value, top in group.items() if value != top)
    if favoured:
        doubts.append(
            f"cpu_capacity {', '.join(map(str, favoured[:4]))}: near enough to be favoured cores of one class"
        )
    return {cpu: f"capacity {group[value]}" for cpu, value in capacities.items()}


def _by_caches(caches: Mapping[int, Fact[tuple[Cache, ...]]]) -> dict[int, str]:
    """Sizes of the first two levels; those of an L3 differ between dies of equal cores."""
    found: dict[int, str] = {}
    for cpu, fact in caches.items():
        inner = [cache for cache in fact.value or () if cache.level < 3]
        if inner and not fact.reason and all(cache.size_bytes for cache in inner):
            found[cpu] = ", ".join(f"L{cache.level} {(cache.size_bytes or 0) >> 10} KiB" for cache in inner)
    return found
