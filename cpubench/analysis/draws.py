"""Numbers that are uncertain, drawn: an array of each whose first entry is the value itself."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cpubench.analysis.quantity import Json
from cpubench.results.inputs import Given

Array = NDArray[np.float64]
DRAWS = 4000  # the ends of a 95 % interval then stand to 2 % of its width
SEED = 20_261_130
NORMAL = 1.959964  # half of a 95 % interval in standard deviations
UNKNOWN = "no interval: something that it is made of was measured without one"
EXACT = "nothing that it is made of is uncertain"


def drawn(tables: Mapping[str, Mapping[str, Given]]) -> dict[str, dict[str, Array]]:
    """Arrays of 1 + DRAWS by table and key; the same inputs give the same numbers.

    A range is uniform; a 95 % interval is a log-normal with those ends; of what was measured without an interval all
    draws are NaN, and so are those of all that it goes into. Inputs are drawn independently: of two that
    were measured together (time and CPU time of a task) the result's interval is a little too wide or too narrow.
    """
    rng = np.random.default_rng(SEED)
    return {table: {key: _draw(one, rng) for key, one in sorted(own.items())} for table, own in sorted(tables.items())}


def _draw(given: Given, rng: np.random.Generator) -> Array:
    made = np.full(1 + DRAWS, given.value)
    if given.kind == "unknown":
        made[1:] = np.nan
    if given.low is not None and given.high is not None:
        if given.kind == "range":
            made[1:] = rng.uniform(given.low, given.high, DRAWS)
        else:
            deviation = math.log(given.high / given.low) / (2 * NORMAL)
            made[1:] = np.exp(rng.normal(math.log(given.value), deviation, DRAWS))
    return made


def told(values: Array, none: str = "nothing limits it") -> Json:
    """A quantity from an array whose first entry is the value: ends that hold 95 % of the draws.

    ``none`` is the reason where there is no finite value.
    """
    every = np.broadcast_to(np.asarray(values, dtype=float), (1 + DRAWS,))
    value = float(every[0])
    if not math.isfinite(value):
        return {"value": None, "low": None, "high": None, "reason": none}
    if np.all(np.isnan(every[1:])):
        return {"value": value, "low": None, "high": None, "reason": UNKNOWN}
    if not np.all(np.isfinite(every)):
        return {"value": value, "low": None, "high": None, "reason": f"no interval: in some draws {none}"}
    low, high = (float(end) for end in np.percentile(every[1:], (2.5, 97.5)))
    if low == high and np.all(every == value):
        return {"value": value, "low": None, "high": None, "reason": EXACT}
    return {"value": value, "low": low, "high": high, "reason": None}
