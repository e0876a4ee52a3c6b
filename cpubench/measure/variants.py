"""Which variants a run measures on this host, and for what reason it leaves others out. Touches no operating system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cpubench.analysis.twins import CONTROL
from cpubench.errors import UsageError
from cpubench.host.layout import Place, counts, first, layout, pairs
from cpubench.host.topology import Core
from cpubench.measure.profiles import PROFILES, Profile
from cpubench.results.names import row_key, row_name
from cpubench.results.records import Copies, Missing, Variant

Kernel = dict[str, Any]  # of _native.kernels()
COPIES: tuple[Copies, ...] = ("1", "cores", "cpus")
HUGE_PAGE_BYTES = 2 << 20
MOST_THREADS = 512  # CB_MAX_GROUP
MOST_PAIRS = 64  # of a matrix: 64 cores have 2,016


@dataclass(frozen=True)
class Request:
    """What the command line asks for; None is "all that the profile has"."""

    profile: str = "quick"
    families: Sequence[str] | None = None
    copies: Sequence[str] | None = None
    keys: Sequence[str] | None = None  # NAME@COPIES of single variants, whatever the profile has; hidden ones too


@dataclass(frozen=True)
class Host:
    """The facts that decide what can be measured."""

    cores: Sequence[Core]
    cache_bytes: dict[str, int | None]  # "L1", "L2", "L3" of the CPU that one copy runs on
    memory_bytes: int | None  # of host or cgroup
    llc_bytes: int | None = None  # of the same CPU


def choose(kernels: Iterable[Kernel], host: Host, request: Request) -> tuple[list[Variant], list[Missing]]:
    """The variants to calibrate and measure, and the rows that cannot be had here with their reasons.

    Where hidden kernels are among ``kernels`` and no single variants are asked for, every plan has the control kernel
    under its two labels, last: two samples of each round tell how far this host moves a difference of nothing.
    """
    every = list(kernels)
    kernels = every if request.keys is not None else [k for k in every if "hidden" not in k["flags"]]
    _check("family", request.families, sorted({k["family"] for k in kernels}))
    _check("copies", request.copies, COPIES)
    chosen: list[Variant] = []
    missing: list[Missing] = []
    for kernel in kernels:
        if request.families is not None and kernel["family"] not in request.families:
            continue
        for index, param in expanded(kernel, host.cores):
            for copies in COPIES:
                if not _wanted(kernel, param, copies, host, request):
                    continue
                made = _variant(kernel, index, param, copies, host)
                if isinstance(made, Variant):
                    chosen.append(made)
                else:
                    missing.append(made)
    if request.keys is not None:
        _check("variant", request.keys, [v.key for v in chosen] + [m.variant for m in missing])
    kept, too_large = fit(chosen, host.memory_bytes)
    if kept and len(kernels) < len(every):
        kept += choose(every, host, Request(keys=CONTROL))[0]
    return kept, missing + too_large


def expanded(kernel: Kernel, cores: Sequence[Core]) -> list[tuple[int, dict[str, Any]]]:
    """(index, parameter) of a kernel on this host: curves and matrices become a value for each of their points."""
    found = []
    for index, param in enumerate(kernel["params"]):
        points: list[dict[str, Any]] = [{}]
        if param["each"] == "count":
            points = [{"label": f"threads={n}", "threads": n} for n in counts(min(len(cores), MOST_THREADS))]
        elif param["each"] == "pair":
            points = [{"label": f"cpus={a}-{b}", "group": [a, b]} for a, b in pairs(cores, MOST_PAIRS)]
        found += [(index, param | point) for point in points or [{}]]
    return found


def name_of(kernel: Kernel, param: dict[str, Any]) -> str:
    return row_name(kernel["name"], param["label"])


def _check(what: str, asked: Sequence[str] | None, known: Sequence[str]) -> None:
    if asked is not None and not asked:
        raise UsageError(f"no_{what}", f"no {what} is named; known: {', '.join(known)}")
    for name in asked or ():
        if name not in known:
            raise UsageError(f"unknown_{what}", f"unknown {what} {name!r}; known: {', '.join(known)}")


def _wanted(kernel: Kernel, param: dict[str, Any], copies: Copies, host: Host, request: Request) -> bool:
    if request.keys is not None:
        return row_key(name_of(kernel, param), copies) in request.keys
    if request.copies is not None and copies not in request.copies:
        return False
    smt = any(len(core.cpus) > 1 for core in host.cores)
    return planned(kernel, param, copies, PROFILES[request.profile], smt)


def planned(kernel: Kernel, param: dict[str, Any], copies: Copies, profile: Profile, smt: bool) -> bool:
    """Whether a profile measures this variant, wherever it can be placed."""
    if not param["scored"]:
        return copies == "1" and profile.shown and (profile.strict or not param["strict"])
    if copies == "cpus":  # shown, where SMT makes it differ from `cores`; groups and pairs have cores of their own
        return profile.shown and smt and not {"group", "pair"} & set(kernel["flags"])
    return True


def _variant(kernel: Kernel, index: int, param: dict[str, Any], copies: Copies, host: Host) -> Variant | Missing:
    name = name_of(kernel, param)
    value, held = param["value"], param["held_bytes"]
    if param["relative"]:
        cache = host.cache_bytes.get(param["relative"])
        if cache is None:
            reason = f"the size of {param['relative']} is not known on this host"
            return Missing(row_key(name, copies), reason, scored=param["scored"])
        value = held = power_of_two_below(cache // value)
    if param["huge"]:
        held = -(-held // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    groups = place(kernel, param, copies, host.cores)
    if not groups:
        return Missing(row_key(name, copies), _why_no_group(kernel, param, host.cores), scored=param["scored"])
    core_of = {cpu: number for number, core in enumerate(host.cores) for cpu in core.cpus}
    return Variant(
        kernel=kernel["name"], family=kernel["family"], params=param["label"], copies=copies,
        scored=param["scored"] and copies != "cpus", version=kernel["version"], unit=kernel["unit"],
        flags=kernel["flags"], index=index, value=value, groups=groups,
        divisor=len({core_of[cpu] for group in groups for cpu in group}), held_bytes=held,
    )  # fmt: skip


def place(kernel: Kernel, param: dict[str, Any], copies: Copies, cores: Sequence[Core]) -> list[list[int]]:
    """The CPUs of each copy. One copy runs where the last of `cores` would: interrupts gather on the first CPUs."""
    if "group" in param:
        return [param["group"]]
    if param["each"] == "count":
        return [first(cores, param["threads"])]
    if param["each"] == "pair":
        return []
    where: Place = "cpus" if copies == "cpus" else param["place"]
    groups = layout(cores, where, param["threads"])
    return groups[-1:] if copies == "1" else groups


def _why_no_group(kernel: Kernel, param: dict[str, Any], cores: Sequence[Core]) -> str:
    if param["place"] == "sibling":
        return "no core has two allowed hardware threads"
    if param["each"] == "pair":
        return f"needs two hardware threads, {sum(len(core.cpus) for core in cores)} allowed"
    needed = max(2, param["threads"]) if {"group", "pair"} & set(kernel["flags"]) else 1
    return f"needs {needed} cores of one package, {len(cores)} allowed"


def power_of_two_below(value: int) -> int:
    """The largest power of two that is not above ``value``: a chase needs a power of two of lines."""
    return 1 << (max(1, value).bit_length() - 1)


def held_bytes(variants: Sequence[Variant]) -> int:
    """Memory that all copies hold at once: a buffer per kernel, parameter and copy; one parent per size and copy."""
    held: dict[tuple[Any, ...], int] = {}
    for variant in variants:
        for group in variant.groups:
            what = variant.value if "parent" in variant.flags else (variant.kernel, variant.params)
            held[what, group[0]] = variant.held_bytes
    return sum(held.values())


def fit(variants: Sequence[Variant], memory_bytes: int | None) -> tuple[list[Variant], list[Missing]]:
    """The variants that fit into two thirds of the memory; what does not fit by itself is left out first, then what is
    only shown, then the largest.

    Not half of it: then a machine with 2 GiB for each core, a common one, would have no score.
    """
    kept, missing = list(variants), []
    limit = memory_bytes * 2 // 3 if memory_bytes is not None else None
    while limit is not None and held_bytes(kept) > limit:
        hopeless = [v for v in kept if v.held_bytes * len(v.groups) > limit]
        holding = hopeless or [v for v in kept if v.held_bytes]  # to leave out others would gain nothing
        largest = max(holding, key=lambda v: (not v.scored, v.held_bytes * len(v.groups)))
        kept.remove(largest)
        need = largest.held_bytes * len(largest.groups)
        told = f"{need >> 20} MiB" if need >= 1 << 20 else f"{-(-need // 1024)} KiB"
        text = f"needs {told}; all variants together may hold two thirds of the memory, {limit >> 20} MiB"
        missing.append(Missing(largest.key, text, scored=largest.scored))
    return kept, missing


def calibrated(variants: Sequence[Variant], sizes: dict[str, tuple[int, int]]) -> list[Variant]:
    """The variants with (ops, window_ns) of each key filled in; those without are left out."""
    return [
        msgspec.structs.replace(v, ops=sizes[v.key][0], window_ns=sizes[v.key][1]) for v in variants if v.key in sizes
    ]
