"""What a host can tell apart: kernels whose true differences are known, and what came out of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cpubench.analysis.composite import MIN_PASSES
from cpubench.analysis.estimates import Estimate, bounded_exp, ends
from cpubench.analysis.quantity import null
from cpubench.analysis.twins import CONTROL, difference, floor_percent, log_times
from cpubench.analysis.verdicts import BAND
from cpubench.results.records import Block

Json = dict[str, Any]

BASE = CONTROL[0]
# Per cent that each does more than BASE: dependent steps, so that as much more work is as much more time.
TWINS = {
    CONTROL[1]: 0.0,
    "test_work[steps=1020]@1": 2.0,
    "test_work[steps=1050]@1": 5.0,
    "test_work[steps=1100]@1": 10.0,
}


def told_apart(blocks: Sequence[Block]) -> Json:
    """Floor, band, twins and the smallest difference that is found again, of blocks of one level, a pass each.

    A twin is ``found`` where its interval lies beyond the band, as a verdict wants it; ``covered`` where it holds the
    true difference.
    """
    floor = floor_percent(blocks)
    band = max(100 * BAND, floor or 0.0)
    found = {key: difference(blocks, BASE, key) for key in TWINS}
    return {
        "floor_percent": floor,
        "floor_reason": None if floor is not None else _lacking(blocks, CONTROL[1]),
        "band_percent": band,
        "separable_percent": separable_percent(list(found.values()), band),
        "twins": [_row(blocks, key, estimate, band) for key, estimate in found.items()],
        "passes": len(blocks),
    }


def separable_percent(estimates: Sequence[Estimate | None], band_percent: float) -> float | None:
    """The smallest true difference, in per cent, that is called one in 97 % of repetitions; None without an interval.

    A claim wants the near end of the 95 % interval beyond the band: the estimate must be a half-width past it. An
    estimate falls a half-width short of the truth in 2.5 % of cases, so that the truth has to be another half-width
    further on: band + 2 x half-width, all as logs. The half-width is the largest of the twins', which are each of as
    many passes. Rounded up to a tenth.
    """
    if any(one is None for one in estimates) or not estimates:
        return None
    half = max(float(high - low) / 2 for low, high in (ends(one) for one in estimates if one is not None))
    percent = 100 * (bounded_exp(math.log1p(band_percent / 100) + 2 * half) - 1)
    return math.ceil(percent * 10) / 10


def sentence(told: Json, minutes: float) -> str:
    """What this host can separate, in how many minutes, and of what."""
    if told["separable_percent"] is None:
        return f"what this host can separate is not known: {told['floor_reason'] or 'a twin failed'}"
    return (
        f"this host can separate differences of {told['separable_percent']:.1f} % in "
        f"{math.ceil(minutes * 10) / 10:.1f} minutes, of two builds of a compute-bound kernel in the same blocks"
    )


def _row(blocks: Sequence[Block], key: str, estimate: Estimate | None, band_percent: float) -> Json:
    true = TWINS[key]
    if estimate is None:
        lost = null(_lacking(blocks, key), _count(blocks, key))
        return {"true_percent": true, "measured": lost, "found": False, "covered": None}
    low, high = (float(end) for end in ends(estimate))
    value, *both = (100 * (bounded_exp(log) - 1) for log in (float(estimate.log), low, high))
    return {
        "true_percent": true,
        "measured": {"value": value, "low": both[0], "high": both[1], "passes": _count(blocks, key), "reason": None},
        "found": low > math.log1p(band_percent / 100),
        "covered": both[0] <= true <= both[1],
    }


def _count(blocks: Sequence[Block], key: str) -> int:
    return int(np.count_nonzero(~np.isnan(log_times(blocks, BASE, key))))


def _lacking(blocks: Sequence[Block], key: str) -> str:
    """Why a twin has no interval: passes that lack it, with what it failed with."""
    errors = (c.error for block in blocks for c in block.cells if c.key in (BASE, key) and c.error)
    here = f"in {_count(blocks, key)} of {len(blocks)} passes, {MIN_PASSES} are needed"
    return ": ".join([here, *list(errors)[:1]])
