"""Figures of several runs of one host as one: their geometric mean, with an interval over the runs from three on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cpubench.analysis.claims import MIN_RUNS
from cpubench.analysis.estimates import of_runs, span
from cpubench.analysis.quantity import null

Json = dict[str, Any]
WATTS = frozenset({"per_watt", "per_watt_net", "watts", "joules_per_op"})  # measures that are of one scope each


def over_runs(quantities: Sequence[Json]) -> Json:
    """The geometric mean of the runs' values; null where a run has none. Two runs make no interval over runs."""
    if len(quantities) == 1:
        return quantities[0]
    passes = sum(one["passes"] for one in quantities)
    reasons = {one["reason"] for one in quantities}
    if len(reasons) == 1 and quantities[0]["value"] is None:
        return null(quantities[0]["reason"], passes)
    for number, one in enumerate(quantities, 1):
        if one["value"] is None:
            return null(f"run {number} of {len(quantities)}: {one['reason']}", passes)
    logs = np.log([one["value"] for one in quantities])
    if len(quantities) < MIN_RUNS:
        made = null(f"an interval over runs needs {MIN_RUNS} of them", passes)
        return made | {"value": math.exp(float(np.mean(logs)))}
    value, low, high = span(of_runs(logs))
    return {"value": value, "low": low, "high": high, "passes": passes, "reason": None}


def over(measures: Sequence[Json], mixed: str | None = None) -> Json:
    """Each measure over the runs; ``mixed``: why those of watts are not."""
    return {name: null(mixed) if mixed and name in WATTS else over_runs([one[name] for one in measures])
            for name in measures[0]}  # fmt: skip


def rows_over(runs: Sequence[Sequence[Json]], mixed: str | None = None) -> list[Json]:
    """The rows of scores over the runs, by name and copies; null where a run has no such row."""
    known = [{(row["name"], row["copies"]): row for row in rows} for rows in runs]
    made = []
    for key in dict.fromkeys(key for rows in known for key in rows):
        first = next(rows[key] for rows in known if key in rows)
        figures = [name for name, value in first.items() if isinstance(value, dict)]
        absent = dict.fromkeys(figures, null("not in its plan"))
        there = [rows.get(key, absent) for rows in known]
        flags = dict.fromkeys(flag for rows in known if key in rows for flag in rows[key]["flags"])
        figured = over([{name: row.get(name, absent[name]) for name in figures} for row in there], mixed)
        made.append(first | figured | {"flags": [*flags]})
    return made
