"""The JSON shape of a number: value, 95 % interval, passes, and the reason where there is no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array
from cpubench.analysis.estimates import RHO, bounded_exp, ends, of_passes, span

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A composite that is wanted: its logs per pass, the rows that are ``gone``, or why there is none at all."""

    logs: Array | None
    gone: Sequence[str]
    scale: float
    reason: str | None = None


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


def composites(asked: Sequence[Asked], passes: int) -> list[Json]:
    """Each as ``composite`` makes it; those that every pass has at once, which takes a tenth of the time for 20."""
    made = [null(one.reason) if one.reason else {} for one in asked]
    whole = [at for at, one in enumerate(asked) if not made[at] and _complete(one)]
    if whole:
        estimate = of_passes(np.array([asked[at].logs for at in whole]))
        for at, *logs in zip(whole, estimate.log, *ends(estimate), strict=True):
            value, low, high = (asked[at].scale * bounded_exp(float(one)) for one in logs)
            made[at] = {"value": value, "low": low, "high": high, "passes": passes, "reason": None}
    return [found or composite(one.logs, one.gone, passes, one.scale) for found, one in zip(made, asked, strict=True)]


def _complete(one: Asked) -> bool:
    return not one.gone and one.logs is not None and len(one.logs) >= MIN_PASSES and not np.isnan(one.logs).any()
