"""How wide the headline quantities of an unfinished run are: what decides whether it may stop.

A run that looks at its widths after each pass stops rather where they happen to be too small: docs/coverage.md has how
often the intervals of runs that stopped so hold the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array, family_logs, log, mean, present
from cpubench.analysis.estimates import PAIRED_RHO, RHO, half_width, of_passes
from cpubench.analysis.levels import stopping_logs
from cpubench.analysis.rates import block_rates
from cpubench.analysis.watts import windows_of
from cpubench.results.records import Block, Plan

MOST = 1e6  # a million times the value: two passes far apart reach 1e14, whose ppm no reader of JSON takes
Levels = Mapping[str, Sequence[Block]]


def half_widths(plan: Plan, blocks: Sequence[Block], other: Sequence[Block] | None = None) -> dict[str, float]:
    """Relative half-width (0.02 is 2 %) of each headline quantity: "per_core", "per_core spawn", "speed", ...

    A constant reference only shifts logs, so none is needed here; the families weigh the same. ``blocks`` are those
    of one cap level, one per pass. A row that no pass has is left out: more passes would not bring it. Where passes
    lack a cell and fewer than eight are complete, more might: infinite.

    With those of an ``other`` side, measured in turns with these, the quantities are the ratios of the two.
    """
    passes = len(blocks) if other is None else min(len(blocks), len(other))
    sides = [block_rates(plan, side[:passes]) for side in (blocks, other) if side is not None]
    widths, rho = {}, RHO if other is None else PAIRED_RHO
    for measure, copies in (("per_core", "cores"), ("speed", "1")):
        families: dict[str, dict[str, Array]] = {}
        for variant in plan.variants:
            if variant.scored and variant.copies == copies:
                each = [log(rates.ops_per_s[variant.key]) for rates in sides]
                if all(map(present, each)):
                    families.setdefault(variant.family, {})[variant.name] = each[0] - each[1] if each[1:] else each[0]
        composites = {f"{measure} {family}": family_logs(rows) for family, rows in families.items()}
        if composites:
            composites[measure] = mean(list(composites.values()))
        for name, logs in composites.items():
            complete = logs[~np.isnan(logs)]
            enough = len(complete) >= max(2, min(MIN_PASSES, passes))
            widths[name] = float(half_width(of_passes(complete, rho=rho))) if enough else math.inf
    return widths


def headline_half_width(
    plan: Plan, blocks: Sequence[Block], other: Sequence[Block] | None = None, levels: Levels | None = None
) -> float | None:
    """The widest of the half-widths; None while one is not there or says nothing, or where nothing is scored.

    ``levels`` are the blocks of each cap level, one per pass, of a run that has windows.
    """
    widths = half_widths(plan, blocks, other)
    if plan.powered is not None and levels is not None:
        widths |= _window_widths(plan, levels)
    widest = max(widths.values(), default=math.inf)
    return widest if widest < MOST else None


def _window_widths(plan: Plan, levels: Levels) -> dict[str, float]:
    """The half-widths of what the windows of each level say."""
    widths = {}
    for level, blocks in levels.items():
        for name, logs in stopping_logs(plan, level, windows_of(plan, blocks, rows=False)).items():
            complete = logs[~np.isnan(logs)]
            enough = len(complete) >= max(2, min(MIN_PASSES, len(blocks)))
            widths[name] = float(half_width(of_passes(complete))) if enough else math.inf
    return widths
