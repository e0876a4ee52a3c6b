"""How wide the headline quantities of an unfinished run are: what decides whether it may stop.

A run that looks at its widths after each pass stops rather where they happen to be too small. Looked at as shown, the
intervals of runs of one family that stopped cover down to 0.916 at a correlation of 0.3; looked at cautiously, as words
are found, 0.92 and more, and runs of many families 0.93 (docs/coverage.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array, family_logs, log, mean, present
from cpubench.analysis.estimates import half_width, of_passes
from cpubench.analysis.rates import block_rates
from cpubench.results.records import Block, Plan


def half_widths(plan: Plan, blocks: Sequence[Block]) -> dict[str, float]:
    """Relative half-width (0.02 is 2 %) of each headline quantity, cautious: "per_core", "per_core spawn", "speed", ..

    A constant reference only shifts logs, so none is needed here; the families weigh the same. ``blocks`` are those
    of one cap level, one per pass. A row that no pass has is left out: more passes would not bring it. Where passes
    lack a cell and fewer than eight are complete, more might: infinite.
    """
    rates = block_rates(plan, blocks)
    widths = {}
    for measure, copies, values in (("per_core", "cores", rates.ops_per_s), ("speed", "1", rates.ns_per_op)):
        families: dict[str, dict[str, Array]] = {}
        for variant in plan.variants:
            if variant.scored and variant.copies == copies and present(values[variant.key]):
                families.setdefault(variant.family, {})[variant.name] = log(values[variant.key])
        composites = {f"{measure} {family}": family_logs(rows) for family, rows in families.items()}
        if composites:
            composites[measure] = mean(list(composites.values()))
        for name, logs in composites.items():
            complete = logs[~np.isnan(logs)]
            enough = len(complete) >= max(2, min(MIN_PASSES, len(blocks)))
            widths[name] = float(half_width(of_passes(complete, cautious=True))) if enough else math.inf
    return widths


def headline_half_width(plan: Plan, blocks: Sequence[Block]) -> float | None:
    """The widest of the half-widths; None while one of them is not there, or where nothing is scored."""
    widest = max(half_widths(plan, blocks).values(), default=math.inf)
    return widest if math.isfinite(widest) else None
