"""The JSON shape of a number: value, 95 % interval, passes, and the reason where there is no value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array
from cpubench.analysis.estimates import RHO, bounded_exp, of_passes, span

Json = dict[str, Any]


def null(reason: str, passes: int = 0) -> Json:
    """A quantity that is not there, and why."""
    return {"value": None, "low": None, "high": None, "passes": passes, "reason": reason}


def no_meter() -> Json:
    """A quantity that needs watts, on a run without them."""
    return null("no_meter")


def quantity(logs: Array, scale: float = 1.0, reason: str = "not measured", rho: float = RHO) -> Json:
    """``scale`` times the geometric mean over the passes that have a value; ``reason`` where none has.

    From one pass there is a value and no interval. ``rho`` is the correlation of passes that is assumed.
    """
    there = logs[~np.isnan(logs)]
    if not len(there):
        return null(reason)
    if len(there) == 1:
        single = null("an interval needs two passes", passes=1)
        return single | {"value": scale * bounded_exp(float(there[0]))}
    value, low, high = (scale * one for one in span(of_passes(there, rho=rho)))
    return {"value": value, "low": low, "high": high, "passes": len(there), "reason": None}


def composite(logs: Array | None, gone: Sequence[str], passes: int, scale: float, rho: float = RHO) -> Json:
    """A composite from its logs per pass; null if a row is ``gone`` or fewer than eight passes are complete."""
    if gone or logs is None:
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        return null(f"missing: {'; '.join(gone[:3])}{more}" if gone else "nothing is scored")
    complete = int(np.count_nonzero(~np.isnan(logs)))
    if complete < MIN_PASSES:
        return null(f"{MIN_PASSES} passes are needed; {complete} of {passes} are complete", complete)
    return quantity(logs, scale, rho=rho)
