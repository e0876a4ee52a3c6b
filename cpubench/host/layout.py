"""Where copies run: the logical CPUs of each copy, from the cores alone (no file is read here)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from cpubench.host.topology import Core, core_order

Place = Literal["any", "cpus", "same", "sibling", "other"]


def layout(cores: Iterable[Core], place: Place, threads: int = 1) -> list[list[int]]:
    """The logical CPUs of each copy, the one it runs on first; [] where not one copy fits.

    ``any`` one copy per core; with ``threads`` >= 2, a group on that many neighbouring cores.
    ``cpus`` one copy per logical CPU.  ``same`` a pair of processes on one CPU of each core.
    ``sibling`` a pair (or ``threads``) on the SMT siblings of one core.  ``other`` a pair (or ``threads``) on cores.
    """
    ordered = sorted(cores, key=core_order)
    if threads < 1:
        raise ValueError(f"a copy has at least one thread, not {threads}")
    if place == "cpus":
        if threads > 1:
            raise ValueError(f"place 'cpus' is one thread per logical CPU, not {threads}")
        return [[cpu] for core in ordered for cpu in core.cpus]
    pair = max(2, threads)
    if place == "sibling":
        return [list(core.cpus[:pair]) for core in ordered if len(core.cpus) >= pair]
    if place == "other" or (place == "any" and threads > 1):
        return [[core.cpus[0] for core in group] for group in _groups(ordered, pair)]
    if place in ("any", "same"):
        return [[core.cpus[0]] for core in ordered]
    raise ValueError(f"unknown place {place!r}: any, cpus, same, sibling or other")


def counts(cores: int) -> list[int]:
    """Numbers of threads at which a curve over the cores is measured: powers of two, and all of them."""
    return sorted({1 << i for i in range(cores.bit_length()) if 1 << i <= cores} | ({cores} - {0}))


def first(cores: Iterable[Core], threads: int) -> list[int]:
    """A CPU of each of the first ``threads`` cores, neighbours first: one group that may span packages."""
    return [core.cpus[0] for core in sorted(cores, key=core_order)][:threads]


def pairs(cores: Iterable[Core], most: int) -> list[list[int]]:
    """Pairs of CPUs between which a cache line is handed: the siblings of a core, and every two cores.

    Where these are more than ``most``, an even choice of each kind of distance (sibling, same L3, same package, other
    package), no kind left out: the kinds differ by up to ten times, pairs of one kind by much less.
    """
    ordered = sorted(cores, key=core_order)
    kinds: dict[str, list[list[int]]] = {"sibling": [list(core.cpus[:2]) for core in ordered if len(core.cpus) > 1]}
    for i, one in enumerate(ordered):
        for other in ordered[i + 1 :]:
            kind = "l3" if one.l3 == other.l3 else "package" if one.package == other.package else "far"
            kinds.setdefault(kind, []).append([one.cpus[0], other.cpus[0]])
    there = [of for of in kinds.values() if of]
    share = max(1, most // len(there)) if there else most
    if sum(map(len, there)) <= most:
        return [pair for of in there for pair in of]
    return [of[i * len(of) // min(share, len(of))] for of in there for i in range(min(share, len(of)))]


def _groups(ordered: list[Core], size: int) -> list[list[Core]]:
    """Groups of neighbours: inside one L3; only cores of L3s that are too small for a group share the package.

    A core left over in an L3 stays idle, so that no group of this machine pays for a road that the others do not.
    """
    found: list[list[Core]] = []
    for _, package in groupby(ordered, key=lambda core: core.package):
        small: list[Core] = []
        for _, l3 in groupby(package, key=lambda core: core.l3):
            members = list(l3)
            if len(members) < size:
                small += members
            else:
                found += _chunks(members, size)
        found += _chunks(small, size)
    return sorted(found, key=lambda group: core_order(group[0]))


def _chunks(cores: list[Core], size: int) -> list[list[Core]]:
    return [cores[i : i + size] for i in range(0, len(cores) - size + 1, size)]
