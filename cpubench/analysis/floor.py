"""Operations so short that the loop around them is a part of their time."""

from __future__ import annotations

import numpy as np

from cpubench.analysis.flags import Flag
from cpubench.analysis.rates import Rates
from cpubench.results.records import Plan

TIMES = 20  # an operation of twenty empty ones is at most 5 % loop


def near_floor(plan: Plan, rates: Rates) -> dict[str, list[str]]:
    """``near_floor`` by the keys of scored rows that take less than 20 times an operation that does nothing.

    Of such a row no more may be said than that the loop of all hosts is the same. Nothing where the floor is unknown.
    """
    found = {}
    for variant in plan.variants:
        times = rates.ns_per_op[variant.key]
        if plan.floor_ps is None or not variant.scored or np.isnan(times).all():
            continue
        if float(np.nanmedian(times)) * 1000 < TIMES * plan.floor_ps:
            found[variant.key] = [Flag.NEAR_FLOOR.value]
    return found


def sentence(plan: Plan, rates: Rates) -> str | None:
    """Which rows are near the floor, and what that is."""
    names = sorted({key.partition("@")[0] for key in near_floor(plan, rates)})
    if plan.floor_ps is None or not names:
        return None
    return f"less than {TIMES} times an empty operation ({plan.floor_ps / 1000:.2g} ns): {', '.join(names)}"
