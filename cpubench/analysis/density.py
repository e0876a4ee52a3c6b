"""How many agents a host carries: steps of many agents against the same steps of one alone."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

from cpubench.analysis.task_spans import LEAST, good, lost, percentiles, pressure
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, windowed

TWICE = 2.0  # what the 95th percentile may be of solo
PRESSED = 0.1  # share of a window in which some task waited: below that nothing is the limit

Json = dict[str, Any]


def solo_s(run: TaskRun, row: TaskRow) -> dict[str, float]:
    """Median seconds of each step of the same task done by one agent, by label; empty where that was not done, or a
    repeat of it failed: those that a timeout spared would be the fast ones."""
    found: dict[str, list[float]] = defaultdict(list)
    wanted = "T1" if row.task == "T4" else row.task
    for other in (one for one in run.tasks if one.task == wanted and not windowed(one) and not lost(one)):
        for one in other.repeats if (other.params, other.tools) == (row.params, row.tools) else ():
            for at in _steps(one):
                found[other.steps[one.spans.step[at]].label].append(one.spans.wall_ns[at] / 1e9)
    return {label: median(times) for label, times in found.items()}


def stretches(run: TaskRun, row: TaskRow) -> list[float]:
    """Of each step in the windows, how many times as long it took as alone.

    Each against its own kind: the 95th percentile of plain times would tell which steps a short window drew.
    """
    alone = solo_s(run, row)
    return [
        one.spans.wall_ns[at] / 1e9 / alone[label]
        for one in filter(good, row.repeats)
        for at in _steps(one)
        if alone.get(label := row.steps[one.spans.step[at]].label)
    ]


def _steps(one: Repeat) -> list[int]:
    """Places of the spans that are steps: a server's is as long as the server lived."""
    return [at for at, back in enumerate(one.spans.background) if not back]


def density(run: TaskRun) -> Json:
    """The largest number of agents whose steps' 95th percentile is within twice solo, without a failed step; and what
    ran out first beyond it."""
    rows = sorted((row for row in run.tasks if row.task == "T4" and row.repeats), key=lambda row: row.agents)
    if not rows:
        return {"agents": None, "reason": "T4 was not measured", "levels": [], "first_limit": None}
    levels = [_level(run, row) for row in rows]
    if all(level["within"] is None for level in levels):
        reason = levels[-1]["reason"]
        return {"agents": None, "reason": reason, "levels": levels, "first_limit": None}
    best, beyond = None, None
    for level in levels:
        if level["within"] is False:
            beyond = level
            break
        best = level["agents"] if level["within"] else best
    if beyond is not None:
        reason = beyond["reason"] or f"{beyond['agents']} agents are beyond twice solo"
    else:
        untold = [level for level in levels if level["within"] is None and level["agents"] > (best or 0)]
        reason = f"{untold[0]['agents']} agents: {untold[0]['reason']}" if untold else "more agents were not tried"
    limit = None if beyond is None else _limit(beyond)
    return {"agents": best, "reason": reason, "levels": levels, "first_limit": limit}


def _level(run: TaskRun, row: TaskRow) -> Json:
    times = stretches(run, row)
    found = percentiles(times, "")
    failed = sum(not good(one) for one in row.repeats)
    within, reason = None, None
    if failed:
        within, reason = False, f"{failed} windows had a failed step"
    elif not times:
        reason = "the same task alone was not done, or a repeat of it failed"
    elif found["p95"] is None:
        reason = f"{found['n']} steps; {LEAST['p95']} are needed for a 95th percentile"
    else:
        within = found["p95"] <= TWICE
    shares = pressure([one for one in row.repeats if good(one)])
    return {"agents": row.agents, "within": within, "reason": reason,
            "stretch_p95": None if failed else found["p95"], "pressure": shares}  # fmt: skip


def _limit(level: Json) -> str | None:
    """What tasks waited for most at the first number of agents that was too many; None where the kernel does not tell,
    or nothing was short."""
    if level["pressure"] is None:
        return None
    name, share = max(level["pressure"].items(), key=lambda item: float(item[1]))
    return {"cpu": "cores"}.get(name, str(name)) if share >= PRESSED else None


def burst_effect(kinds: Json) -> Json:
    """The 95th percentile of neighbours' steps outside of bursts and during them, and the second by the first."""
    outside, during = (kinds.get(kind, {}).get("p95_s") for kind in ("outside", "during"))
    ratio = during / outside if outside and during else None
    reason = None if ratio is not None else f"{LEAST['p95']} steps outside of bursts and as many during them are needed"
    return {"outside_p95_s": outside, "during_p95_s": during, "stretch": ratio, "reason": reason}
