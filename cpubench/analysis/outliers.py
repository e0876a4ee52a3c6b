"""Units that are not like the others of their model: robust distances of log scores, and when there are enough units.

The distance is that from the median of all, in median absolute distances scaled to a standard deviation, so that the
odd unit moves neither. Of few units that scale is itself uncertain: five equal ones have one beyond 5.4 in a tenth of
groups, so that the 3.5 which is often taken for any number of them would find odd units everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cpubench.analysis.verdicts import MARGIN

NEEDED = 6  # units of a model
# By simulation (100,000 groups of equal normal units): from so many units on, the distance that in 95 % of groups no
# unit is beyond; up to a thousand units it stays below 4.1.
LIMITS = ((20, 4.1), (12, 4.4), (8, 5.1), (NEEDED, 5.9))
NORMAL = 1.4826  # median absolute distances to a standard deviation
LEAST = 1e-6  # of equal scores


@dataclass(frozen=True)
class Spread:
    """How the log scores of a model's units lie; ``limit`` None: too few units to call one odd."""

    units: int
    middle: float
    scale: float
    limit: float | None


def spread(logs: Sequence[float]) -> Spread:
    """The spread of at least one unit's log score."""
    middle = median(logs)
    scale = NORMAL * median(abs(one - middle) for one in logs)
    limit = next((limit for least, limit in LIMITS if len(logs) >= least), None)
    return Spread(len(logs), middle, max(scale, LEAST), limit)


def is_odd(log: float, half_width: float, among: Spread) -> bool:
    """Whether a unit is not like the others: beyond the limit, by more than 2 %, and by more than its own interval,
    whose half-width is in logs."""
    away = abs(log - among.middle)
    return among.limit is not None and away / among.scale > among.limit and away > max(MARGIN, half_width)


def named(own: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> list[dict[str, object]]:
    """The facts in which a unit is not as most of the others are, those that most agree on first."""
    found: list[dict[str, object]] = []
    for what in dict.fromkeys(key for facts in (own, *others) for key in facts):
        values = Counter(facts.get(what, "not recorded") for facts in others)
        value, count = max(values.items(), key=lambda item: item[1])
        if count * 2 > len(others) and own.get(what, "not recorded") != value:
            found.append({"what": what, "value": own.get(what, "not recorded"), "others": value, "count": count})
    return sorted(found, key=lambda one: -int(str(one["count"])))
