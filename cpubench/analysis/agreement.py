"""How well predicted changes rank and size measured ones, both as log ratios of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Json = dict[str, Any]
DRAWS = 2000
SEED = 1
LEAST = 4  # points; three are ranked right by chance in one of six cases


class Point(NamedTuple):
    """One thing under two settings: log ratios of time, B to A, predicted and measured."""

    group: str  # points of a group share a setting and its kernels, and so are drawn together
    name: str
    predicted: float
    measured: float


def agreement(points: Sequence[Point]) -> Json:
    """Rank correlation (Spearman), slope and intercept of measured on predicted, and the errors of size.

    ``error`` is the root of the mean squared difference of measured and predicted, ``unpredicted`` the same for the
    prediction that nothing changes: one that is not below it has earned nothing. Intervals are of 2,000 draws of whole
    groups, 95 % by percentiles; null where there are fewer than three groups. Null where nothing varies.
    """
    if len(points) < LEAST:
        return {"points": len(points), "reason": f"{LEAST} points are needed; there are {len(points)}"}
    both = np.array([(one.predicted, one.measured) for one in points])
    names = sorted({one.group for one in points})
    rows = [np.array([at for at, one in enumerate(points) if one.group == name]) for name in names]
    draws = np.random.default_rng(SEED).integers(0, len(names), (DRAWS, len(names)))
    samples = [both[np.concatenate([rows[group] for group in draw])] for draw in draws] if len(names) >= 3 else []
    return {
        "points": len(points), "groups": len(names), "reason": None,
        "rank": _with_interval(rank, both, samples), "slope": _with_interval(slope, both, samples),
        "intercept": _with_interval(intercept, both, samples),
        "error": float(np.sqrt(np.mean((both[:, 1] - both[:, 0]) ** 2))),
        "unpredicted": float(np.sqrt(np.mean(both[:, 1] ** 2))),
    }  # fmt: skip


def rank(both: Array) -> float | None:
    """Spearman's rank correlation of the two columns; None where one of them is constant."""
    from scipy.stats import rankdata  # two seconds: only where it is asked for

    ranks = rankdata(both, axis=0)
    if min(np.std(ranks, axis=0)) <= 0:
        return None
    return float(np.corrcoef(ranks.T)[0, 1])


def slope(both: Array) -> float | None:
    """Of the line of least squares for the second column by the first: 1 where sizes are right."""
    spread = float(np.var(both[:, 0]))
    return float(np.mean((both[:, 0] - both[:, 0].mean()) * both[:, 1])) / spread if spread > 1e-18 else None


def intercept(both: Array) -> float | None:
    found = slope(both)
    return None if found is None else float(both[:, 1].mean() - found * both[:, 0].mean())


def _with_interval(what: Callable[[Array], float | None], both: Array, samples: Sequence[Array]) -> Json:
    value = what(both)
    found = [] if value is None else [one for one in map(what, samples) if one is not None]
    if len(found) < DRAWS / 2:  # of most draws there is none: what is left of them would be chosen
        return {"value": value, "low": None, "high": None}
    low, high = np.percentile(found, [2.5, 97.5])
    return {"value": value, "low": float(low), "high": float(high)}
