"""The data and unified caches of a CPU, from sysfs alone: sizes in bytes and the CPUs that share them.

The cpuinfo package sums sizes over instances and swaps some (py-cpuinfo#225), so working sets never come from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpubench.host.cpulist import format_cpulist, read_cpulist
from cpubench.host.fact import ROOT, Fact, names_in, read_int, read_text

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Cache:
    level: int
    kind: str  # "Data" or "Unified"
    size_bytes: int | None
    shared_cpus: tuple[int, ...] | None  # of the whole machine, not only the allowed ones
    reason: str | None = None  # why the size or the sharing is None


def parse_size(text: str) -> int:
    """Bytes of "32K", "1024K", "32M"; ValueError on anything else, "256 KiB (8 instances)" and 0 included."""
    match = re.fullmatch(r"([0-9]{1,15})([KMG]?)", text)
    size_bytes = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < size_bytes < 1 << 60:  # some guests say 0K for a cache that they hide
        raise ValueError(f"not a cache size: {text[:40]!r}")
    return size_bytes


def read_caches(cpu: int, root: Path = ROOT) -> Fact[tuple[Cache, ...]]:
    """The data and unified caches of one CPU by level; None with a reason where the kernel shows none."""
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
    names = names_in(root, folder)
    if names.value is None:
        return Fact(None, names.reason, names.absent)
    caches, reasons = [], []
    for name in names.value:
        if not re.fullmatch(r"index[0-9]+", name):
            continue
        kind, level = read_text(root, f"{folder}/{name}/type"), read_int(root, f"{folder}/{name}/level")
        if kind.value is None or level.value is None:
            reasons.append(kind.reason or level.reason or "")
        elif not 1 <= level.value <= 9:
            reasons.append(f"/{folder}/{name}/level: {level.value} is no level of a cache")
        elif kind.value in ("Data", "Unified"):
            caches.append(_cache(root, f"{folder}/{name}", level.value, kind.value))
    if not caches:
        return Fact(None, "; ".join(reasons) or f"/{folder}: no data or unified cache")
    # An index that could not be read may be the last level: the rest is then doubtful.
    return Fact(tuple(sorted(caches, key=lambda c: (c.level, c.kind))), "; ".join(reasons) or None)


def _cache(root: Path, folder: str, level: int, kind: str) -> Cache:
    text, shared = read_text(root, f"{folder}/size"), read_cpulist(root, f"{folder}/shared_cpu_list")
    size_bytes, problem = None, text.reason
    if text.value is not None:
        try:
            size_bytes = parse_size(text.value)
        except ValueError as error:
            problem = f"/{folder}/size: {error}"
    reasons = "; ".join(r for r in (problem, shared.reason) if r) or None
    return Cache(level, kind, size_bytes, tuple(shared.value) if shared.value else None, reasons)


def llc_bytes(caches: Fact[tuple[Cache, ...]]) -> Fact[int]:
    """Bytes of the last-level cache, as the machine claims it; None where any of its evidence is missing."""
    if not caches.value or caches.reason:
        return Fact(None, caches.reason or "no caches are known")
    last = caches.value[-1]
    return Fact(last.size_bytes) if last.size_bytes is not None else Fact(None, last.reason)


def caches_by_cpu(cpus: Iterable[int], root: Path = ROOT) -> dict[int, Fact[tuple[Cache, ...]]]:
    """The caches of each CPU; those that share the first level share the others, so one of them is read."""
    found: dict[int, Fact[tuple[Cache, ...]]] = {}
    wanted = set(cpus)
    for cpu in sorted(wanted):
        if cpu in found:
            continue
        found[cpu] = read_caches(cpu, root)
        first = (found[cpu].value or (None,))[0]
        if first is not None and first.level == 1 and first.shared_cpus and cpu in first.shared_cpus:
            found.update(dict.fromkeys(wanted.intersection(first.shared_cpus) - found.keys(), found[cpu]))
    return found


def instances(caches: Mapping[int, Fact[tuple[Cache, ...]]]) -> Fact[list[dict[str, Any]]]:
    """Each kind of cache of these CPUs (level, kind, bytes) with the lists of CPUs that share one; JSON-ready.

    A cache whose sharing is not told is counted in ``unknown_sharing``, by the CPUs that see it.
    """
    rows: dict[tuple[int, str, int | None], dict[str, Any]] = {}
    seen: dict[tuple[int, str, int | None], dict[tuple[int, ...], None]] = {}
    for fact in caches.values():
        for cache in fact.value or ():
            key = (cache.level, cache.kind, cache.size_bytes)
            row = rows.setdefault(key, {"level": key[0], "kind": key[1], "size_bytes": key[2], "unknown_sharing": 0})
            if cache.shared_cpus is None:
                row["unknown_sharing"] += 1
            else:
                seen.setdefault(key, {})[cache.shared_cpus] = None
    for key, row in rows.items():
        row["shared_cpus"] = [format_cpulist(shared) for shared in seen.get(key, ())]
    reasons = list(dict.fromkeys(fact.reason for fact in caches.values() if fact.reason))
    told = "; ".join(reasons[:3]) + (f" and {len(reasons) - 3} more" if len(reasons) > 3 else "")
    if not rows:
        return Fact(None, told or "no CPU is known")
    return Fact([rows[key] for key in sorted(rows, key=lambda k: (k[0], k[1], k[2] or 0))], told or None)
