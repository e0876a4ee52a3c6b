"""Tables over the spans of a repeat: what counts, percentiles, phases and paths. No operating system, no numpy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from msgspec import UnsetType

from cpubench.results.task_records import Repeat, TaskRow, TaskRun

LEAST = {"p50": 1, "p95": 20, "p99": 100}  # steps: with fewer, a percentile is the slowest of them
PATHS = ("process", "kernel", "user", "off_cpu")

Json = dict[str, Any]


def good(one: Repeat) -> bool:
    """Whether a repeat is a done task: a failed check is a failed task, and never a fast one."""
    return not faults(one)


def faults(one: Repeat) -> list[str]:
    """Why a repeat does not count; among it what the limits around one under caps did not hold."""
    changed = [] if isinstance(one.limits, UnsetType) else one.limits.changed
    return [*one.failures, *one.leftovers, *(f"a limit was changed: {text}" for text in changed)]


def lost(row: TaskRow) -> str | None:
    """How many repeats of a row failed, and what the first said; None where none did.

    Where one did, the others tell nothing of the task: those that a timeout spared would be the fast ones.
    """
    said = [faults(one) for one in row.repeats if not good(one)]
    return f"{len(said)} of {len(row.repeats)} repeats failed: {said[0][0]}" if said else None


def cpu_s(one: Repeat, at: int) -> float:
    """CPU time of a span."""
    return (one.spans.user_us[at] + one.spans.sys_us[at]) / 1e6


def percentiles(times_s: Sequence[float], unit: str = "_s") -> Json:
    """Nearest-rank percentiles; null where there are too few, with ``reasons``."""
    ordered = sorted(times_s)
    made: Json = {"n": len(ordered)}
    reasons = {}
    for name, least in LEAST.items():
        rank = math.ceil(int(name[1:]) / 100 * len(ordered))
        enough = len(ordered) >= least
        made[f"{name}{unit}"] = ordered[rank - 1] if enough else None
        if not enough:
            reasons[name] = f"{len(ordered)} steps; {least} are needed"
    return {**made, "reasons": reasons}


def walls(row: TaskRow, repeats: Iterable[Repeat]) -> dict[str, list[float]]:
    """Seconds that steps took, by kind; servers in the background are no steps."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in repeats:
        for at, step in enumerate(one.spans.step):
            if not one.spans.background[at]:
                found[row.steps[step].kind].append(one.spans.wall_ns[at] / 1e9)
    return found


def phases(row: TaskRow, one: Repeat) -> dict[str, tuple[float, float]]:
    """Seconds of wall and of CPU time by phase."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for at, step in enumerate(one.spans.step):
        both = found[row.steps[step].phase]
        both[0] += 0.0 if one.spans.background[at] else one.spans.wall_ns[at] / 1e9
        both[1] += cpu_s(one, at)
    return {name: (wall, cpu) for name, (wall, cpu) in found.items()}


def prices(run: TaskRun) -> dict[str, tuple[float, float]] | None:
    """User and system seconds of an empty shell and an empty interpreter, from T0; None where none was done well."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in run.tasks:
        for one in filter(good, row.repeats) if row.task == "T0" else ():
            for at, step in enumerate(one.spans.step):
                found[row.steps[step].kind].append((one.spans.user_us[at] / 1e6, one.spans.sys_us[at] / 1e6))
    if not {"shell", "python"} <= found.keys():
        return None
    return {
        kind: (median(user for user, _ in both), median(kernel for _, kernel in both)) for kind, both in found.items()
    }


def paths(row: TaskRow, one: Repeat, price: dict[str, tuple[float, float]]) -> dict[str, float]:
    """An estimate of where the time of a repeat went, in seconds.

    ``process``: the starts of shells and interpreters at the price of empty ones, never more than the step used;
    ``kernel``: its other system time, most of it files, faults and pipes; ``user``: its other user time, the tools' own
    code; ``off_cpu``: wall time of steps in which neither their processes ran nor the server that they waited for, for
    want of a CPU or of the disk.
    """
    made, served_s = dict.fromkeys(PATHS, 0.0), 0.0
    for at, step in enumerate(one.spans.step):
        name, user, kernel = row.steps[step], one.spans.user_us[at] / 1e6, one.spans.sys_us[at] / 1e6
        starts = (name.pythons, price["python"]), (name.shells, price["shell"])
        if one.spans.background[at]:
            starts = (0, price["python"]), (0, price["shell"])
            served_s += user + kernel
        else:
            made["off_cpu"] += max(0.0, one.spans.wall_ns[at] / 1e9 - user - kernel)
        start_user = min(user, sum(count * one_user for count, (one_user, _) in starts))
        start_kernel = min(kernel, sum(count * one_kernel for count, (_, one_kernel) in starts))
        made["process"] += start_user + start_kernel
        made["user"] += user - start_user
        made["kernel"] += kernel - start_kernel
    made["off_cpu"] = max(0.0, made["off_cpu"] - served_s)
    return made


def around_s(repeats: Iterable[Repeat]) -> list[float]:
    """Seconds that the harness spent between the steps, for each."""
    return [ns / 1e9 for one in repeats for ns, back in zip(one.spans.around_ns, one.spans.background, strict=True)
            if not back]  # fmt: skip


def pressure(repeats: Sequence[Repeat]) -> Json | None:
    """Shares of the windows in which some task waited for CPUs, memory or I/O; None where the kernel does not tell."""
    told = [(one.pressure, one.wall_ns / 1000) for one in repeats if one.pressure is not None]
    wall_us = sum(wall for _, wall in told)
    if not told:
        return None
    return {name: sum(getattr(one, f"{name}_us") for one, _ in told) / wall_us for name in ("cpu", "memory", "io")}
