"""What figures show of a run beside its score: points pass by pass, and the curves and the matrix of shown kernels.

These are raw values without intervals: what is claimed comes from scores and comparisons alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from cpubench.analysis.cells import BASE_CAP, blocks_at
from cpubench.analysis.composite import Array, log, weighted_logs
from cpubench.analysis.plateaus import ladders
from cpubench.analysis.rates import Rates, block_rates
from cpubench.analysis.reference import as_reference
from cpubench.analysis.scenarios import Scenario
from cpubench.analysis.score import POINTS, parts_of
from cpubench.results.records import Plan, Run

Json = dict[str, Any]
CURVE, MATRIX = "lock_all", "lock_line"


def portrait(run: Run, reference: Mapping[str, Any], scenario: Scenario) -> Json:
    """The passes without a cap, in order, and the curves of a run.

    ``per_core`` and ``speed``: points of the whole in each pass, None where it is incomplete; ``families``: points per
    core. ``hours`` since the first pass began. ``ladder``: by page kind, pairs of bytes and ns per load of one copy.
    ``lines``: triples of two CPUs and the ns that a line takes from one to the other; ``threads``: pairs of a number of
    threads on one lock and their operations per second together.
    """
    blocks = blocks_at(run, BASE_CAP)
    rates = block_rates(run.plan, blocks)
    parts = parts_of(run.plan, as_reference(dict(reference)), rates)
    weighed = [family for family in parts.names if scenario.families.get(family)]
    starts = [block.times.start_utc_ns for block in blocks]
    made: Json = {
        "passes": [block.index for block in blocks],
        "hours": [(start - starts[0]) / 3.6e12 for start in starts],
        "families": {family: _points(logs) for family, logs in parts.logs["per_core"].items()},
        "ladder": {pages: sorted(sets.items()) for pages, sets in ladders(run.plan, rates).items()},
        "lines": _lines(run.plan, rates),
        "threads": _threads(run.plan, rates),
    }
    for measure in ("per_core", "speed"):
        logs = parts.logs[measure]
        there = bool(weighed) and all(family in logs for family in weighed)
        made[measure] = _points(weighted_logs(logs, scenario.families)) if there else []
    return made


def _points(logs: Array) -> list[float | None]:
    return [None if math.isnan(one) else POINTS * math.exp(one) for one in logs.tolist()]


def _mean(values: Array) -> float | None:
    """The geometric mean over the passes that have a value, as the estimators of rows are."""
    logs = log(values)
    return None if np.isnan(logs).all() else math.exp(float(np.nanmean(logs)))


def _lines(plan: Plan, rates: Rates) -> list[tuple[int, int, float]]:
    found = []
    for variant in plan.variants:
        pair = re.fullmatch(r"cpus=(\d{1,5})-(\d{1,5})", variant.params)
        if variant.kernel == MATRIX and pair and (ns := _mean(rates.ns_per_op[variant.key])) is not None:
            found.append((int(pair[1]), int(pair[2]), ns))
    return found


def _threads(plan: Plan, rates: Rates) -> list[tuple[int, float]]:
    found = []
    for variant in plan.variants:
        count = re.fullmatch(r"threads=(\d{1,5})", variant.params)
        if variant.kernel == CURVE and count and (rate := _mean(rates.ops_per_s[variant.key])) is not None:
            found.append((int(count[1]), rate))
    return sorted(found)
