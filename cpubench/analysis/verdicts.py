"""Words for differences: faster, slower, equivalent or inconclusive, with the error held over all of them together.

Bands are the same both ways in logs: 2 % is a ratio from 1 / 1.02 to 1.02, so that exchanging the sides mirrors a word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cpubench.analysis.estimates import CONFIDENCE, Estimate, ends

MARGIN = 0.02  # two things within it are as good as equal to a buyer; fixed before anything was measured
BAND = 0.01  # a difference inside is not called one, whatever its interval
NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Verdict:
    """A word, and the interval (as logs) and confidence that it was found by."""

    word: str
    low: float
    high: float
    confidence: float


def verdicts(estimates: Sequence[Estimate], band: float = BAND, tables: int = 1) -> list[Verdict]:
    """A verdict on each of a table's estimates, all wrong words of the table together in at most 5 % of tables.

    Of several ``tables`` that are read together each has its part of the 5 %.

    Holm's rule: the surest claim is held against an error of 5 % / K, the next against 5 % / (K - 1), and so on until
    one is not sure enough; those that are left share the level at which it failed.
    """
    errors = [least_error(one, band) for one in estimates]
    allowed, levels = (1 - CONFIDENCE) / tables, [0.0] * len(errors)
    failed = None
    for place, at in enumerate(sorted(range(len(errors)), key=errors.__getitem__)):
        level = allowed / (len(errors) - place)
        failed = failed or (level if errors[at] >= level else None)
        levels[at] = failed or level
    return [_verdict(one, 1 - level, band) for one, level in zip(estimates, levels, strict=True)]


def least_error(estimate: Estimate, band: float = BAND) -> float:
    """The smallest error level at which the estimate's interval is decisive, beyond the band or inside the margin."""
    from scipy.special import stdtr

    distance, error, freedom = abs(float(estimate.log)), float(estimate.error), float(estimate.freedom)
    spare = max(distance - math.log1p(band), math.log1p(MARGIN) - distance)
    if spare <= 0:
        return 1.0
    return 0.0 if error == 0 else float(2 * stdtr(freedom, -spare / error))


def word(low: float, high: float, band: float = BAND) -> str:
    """The word for an interval of log ratios of rates, B to A.

    A difference that is beyond the band and still inside the margin is called what it is, faster or slower.
    """
    if low > math.log1p(band):
        return "faster"
    if high < -math.log1p(band):
        return "slower"
    inside = -math.log1p(MARGIN) < low and high < math.log1p(MARGIN)
    return "equivalent" if inside else "inconclusive"


def _verdict(estimate: Estimate, confidence: float, band: float) -> Verdict:
    low, high = (float(np.asarray(end)) for end in ends(estimate, confidence))
    return Verdict(word(low, high, band), low, high, confidence)
