"""Runs of tasks under caps: what became of a cap, and each level against another, paired by repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UnsetType

from cpubench.analysis.levels import limited
from cpubench.analysis.quantity import null, quantity
from cpubench.analysis.task_rates import per_hour, unsteady
from cpubench.analysis.task_spans import lost
from cpubench.errors import UsageError
from cpubench.power.verdict import MEAN_SHARE, MEAN_W
from cpubench.results.parse import located, shown
from cpubench.results.states import BASE_CAP
from cpubench.results.task_records import TaskRow, TaskRun

Json = dict[str, Any]


def cap_of(run: TaskRun) -> Json | None:
    """The level of a run, its state, and in how many repeats the host drew more than the cap; None without caps."""
    level = run.level
    if level is None or isinstance(run.powered, UnsetType):
        return None
    over = 0
    if level.watts is not None and limited(run.powered, level) == run.powered.scope:
        most_w = MEAN_SHARE * level.watts + MEAN_W
        over = sum(one.mean_w is not None and one.mean_w > most_w for row in run.tasks for one in row.repeats)
    text = (
        f"in {over} repeats the host drew more than {level.watts:.1f} W; before them: {level.text}"
        if over
        else level.text
    )
    return {
        "level": level.name, "levels": [one.name for one in run.powered.levels], "watts": level.watts,
        "state": "over_cap" if over else level.shown, "text": text, "repeats_over": over,
        "shortened": run.powered.shortened,
    }  # fmt: skip


def run_name(folder: Path, document: Json) -> str:
    """What a run of tasks is called: its folder, and of one level of several also the run's."""
    whole = folder.resolve()
    several = document["cap"] is not None and len(document["cap"]["levels"]) > 1
    return shown(f"{whole.parent.name}/{whole.name}" if several else whole.name, 80)


def one_run(path: Path, runs: Sequence[TaskRun]) -> dict[str, TaskRun]:
    """The levels of one run by name, in the order that it gave them. UsageError where they are of several runs."""
    made = {run.cap: run for run in runs}
    marks = {(run.created_utc, run.seed, run.host.get("id"), run.inputs_sha256) for run in runs}
    orders = {tuple(cap["levels"]) if (cap := cap_of(run)) is not None else () for run in runs}
    if len(made) != len(runs) or len(marks) != 1 or len(orders) != 1:
        text = f"holds {len(runs)} runs of tasks: name the folder of one of them"
        raise located(path, UsageError("tasks", text))
    return {cap: made[cap] for cap in next(iter(orders)) if cap in made}


def over_levels(runs: Mapping[str, TaskRun]) -> list[Json]:
    """Tasks per hour of each level over the level as-is, or over the first, for each task that both did: geometric
    means over the repeats of the same number, in which what drifts cancels."""
    base = runs[BASE_CAP] if BASE_CAP in runs else next(iter(runs.values()))
    return [{"task": row.name, "level": run.cap, "over": base.cap, "ratio": _ratio(run, row, base)}
            for run in runs.values() if run is not base for row in run.tasks if row.task != "T0"]  # fmt: skip


def _ratio(run: TaskRun, row: TaskRow, base: TaskRun) -> Json:
    other = next((one for one in base.tasks if one.name == row.name), None)
    if other is None or row.skipped or other.skipped:
        return null(row.skipped or "was not done at both levels")
    logs = []
    for which in (row, other):
        if why := lost(which) or unsteady(which, which.repeats):
            return null(why)
        logs.append({one.index: np.log(rate) for one in which.repeats if (rate := per_hour(which, one))})
    common = sorted(logs[0].keys() & logs[1].keys())
    return quantity(np.array([logs[0][at] - logs[1][at] for at in common]), reason="no repeat ended well at both")
