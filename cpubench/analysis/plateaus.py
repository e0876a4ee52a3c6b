"""Where the caches end, from the latency ladder alone: the sizes that a machine states need not be what one core gets.

On a virtual machine that stated an L3 of 32 MiB the plateau ended between 4 and 8 MiB.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cpubench.analysis.composite import log
from cpubench.analysis.flags import Flag
from cpubench.analysis.rates import Rates
from cpubench.results.records import Plan

LADDER = "mem_chase"
RISE = 1.25  # from one set to the next: a larger one leaves the plateau
DRIFT = 1.5  # over the whole plateau
GAP = 4  # between neighbouring sets: doublings, of which one may be missing; beyond that an end would be a guess


@dataclass(frozen=True)
class Plateau:
    """Sets of about the same latency, the smallest and the largest of them."""

    from_bytes: int
    to_bytes: int
    ns: float


def plateaus(ladder: Mapping[int, float]) -> list[Plateau]:
    """The plateaus of a ladder (bytes of the set -> ns per load), each of two sets or more; none where too few."""
    sizes = sorted(ladder)
    if len(sizes) < 3 or any(b > GAP * a for a, b in pairwise(sizes)):
        return []
    times = _rising([ladder[size] for size in sizes])
    groups = [[0]]
    for at in range(1, len(sizes)):
        flat = times[at] <= RISE * times[at - 1] and times[at] <= DRIFT * times[groups[-1][0]]
        groups[-1].append(at) if flat else groups.append([at])
    return [
        Plateau(sizes[group[0]], sizes[group[-1]], math.exp(sum(math.log(times[at]) for at in group) / len(group)))
        for group in groups
        if len(group) > 1
    ]


def edges(ladder: Mapping[int, float]) -> set[int]:
    """The sets that lie within a factor of two of where a plateau ends, or between two: the last one has no end."""
    sizes, found, near = sorted(ladder), plateaus(ladder), set()
    for one in found:
        beyond = [size for size in sizes if size > one.to_bytes]
        near |= {one.to_bytes, *beyond[:1]} if beyond else set()
    inside = {size for size in sizes for one in found if one.from_bytes <= size <= one.to_bytes}
    return near | (set(sizes) - inside) if found else set()


def _rising(times: list[float]) -> list[float]:
    """The nearest ladder that never falls (pool adjacent violators, in logarithms): a larger set is not faster."""
    pools: list[tuple[float, int]] = []
    for time in times:
        mean, n = math.log(time), 1
        while pools and pools[-1][0] > mean:
            before, m = pools.pop()
            mean, n = (before * m + mean * n) / (m + n), m + n
        pools.append((mean, n))
    return [math.exp(mean) for mean, n in pools for _ in range(n)]


def ladders(plan: Plan, rates: Rates) -> dict[str, dict[int, float]]:
    """Bytes -> ns per load of one copy, by page kind. Sets of equal size are one, with their geometric mean."""
    found: dict[str, dict[int, list[float]]] = {}
    for variant in plan.variants:
        logs = log(rates.ns_per_op[variant.key])
        if variant.kernel == LADDER and variant.copies == "1" and variant.value and not np.isnan(logs).all():
            pages = "base" if "pages=base" in variant.params else "huge"
            found.setdefault(pages, {}).setdefault(variant.value, []).append(float(np.nanmean(logs)))
    return {
        pages: {size: math.exp(sum(logs) / len(logs)) for size, logs in sets.items()} for pages, sets in found.items()
    }


def badges(plan: Plan, rates: Rates) -> dict[str, list[str]]:
    """``plateau_edge`` by the keys of scored sets at the end of a plateau. With one copy: what all copies have of a
    shared cache the ladder does not say."""
    near = {pages: edges(ladder) for pages, ladder in ladders(plan, rates).items()}
    return {
        v.key: [Flag.PLATEAU_EDGE.value]
        for v in plan.variants
        if v.kernel == LADDER and v.copies == "1" and v.scored
        if v.value in near.get("base" if "pages=base" in v.params else "huge", set())
    }


def sentences(plan: Plan, rates: Rates) -> list[str]:
    """Where each plateau ends, one sentence per page kind of which a whole ladder was measured."""
    said = []
    for pages, ladder in sorted(ladders(plan, rates).items()):
        found, largest = plateaus(ladder), max(ladder)
        parts = [
            f"{one.ns:.3g} ns {'up to' if one.to_bytes < largest else 'from'} "
            f"{_bytes(one.to_bytes if one.to_bytes < largest else one.from_bytes)}"
            for one in found
        ]
        if parts:
            said.append(f"one copy on {pages} pages takes {', '.join(parts)}; the caches of this host end there")
    return said


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size / 1024:g} KiB"
