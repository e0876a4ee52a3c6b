"""Made-up runs of tasks for the task score: T1 in two variants, T2, and T4 with four agents a core."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "tasks"))
from tasks_run import STEPS, made_repeat, made_row, made_run, made_span

from cpubench.tasks.catalogue import Task, fleets

FACTORS = (1.0, 1.02, 0.99)


def tasks(slower: float = 1.0, loaded: float = 1.5, factors: tuple[float, ...] = FACTORS, windows: int = 2) -> Any:
    """T1 in two variants, T2 and T4 with 8 agents on two cores, whose steps take ``loaded`` times as long as alone."""
    whole = made_run(factors=tuple(slower * f for f in factors))
    first = whole["tasks"][1]
    other = made_row(Task("T1", ("read-heavy", "light")), STEPS, [
        made_repeat([made_span(0, 0, round(2e8 * slower * f), 90_000), made_span(1, 10**9, round(2e8 * slower * f),
        9000)], i)
        for i, f in enumerate(factors)
    ])  # fmt: skip
    mix = made_row(Task("T2", ("process",)), [("sqlite.0", "sqlite", "db"), ("read.0", "read", "explore")], [
        made_repeat([made_span(0, 0, round(5e8 * slower * f), 90_000), made_span(1, 10**9, 10**8, 9000)], i)
        for i, f in enumerate(factors)
    ])  # fmt: skip
    times = {0: 1e8 * slower, 1: 3e8 * slower}
    found = [made_span(n % 2, n * 10**8, round(times[n % 2] * loaded), 50_000, agent=n % 8) for n in range(30)]
    fleet = made_row(fleets([8])[0], STEPS, [made_repeat(found, i, wall_ns=2 * 10**10, window_ns=2 * 10**10)
                                             for i in range(windows)])  # fmt: skip
    whole["tasks"] = [whole["tasks"][0], first, other, mix, fleet]
    return whole
