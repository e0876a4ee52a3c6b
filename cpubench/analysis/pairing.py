"""Two runs whose passes were measured in turns: compared pass by pass, what a moment does to both sides cancels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpubench.analysis.composite import Array
from cpubench.analysis.estimates import Estimate, bounded_exp, ends, sign_ends
from cpubench.analysis.members import Member

Json = dict[str, Any]


def is_pair(runs: Sequence[Member]) -> bool:
    """Whether these are the two sides of one ``run --ab``, in whichever order."""
    if len(runs) != 2:
        return False
    one, other = (run.plan.side for run in runs)
    return one is not None and other is not None and one.pair == other.pair and one.label != other.label


def common_passes(a: Member, b: Member) -> tuple[Any, Any]:
    """Where the passes that both have stand in the logs of A and of B, in the order of their indexes."""
    _, in_a, in_b = np.intersect1d(a.indexes, b.indexes, assume_unique=True, return_indices=True)
    return in_a, in_b


def sign_test(a: Array, b: Array, plain: Estimate) -> Json | None:
    """The median ratio of B to A, its exact 95 % ends, and whether it and the t interval disagree on a difference."""
    found = sign_ends(a, b)
    if found is None:
        return None
    value, low, high = (float(log) for log in found)
    told = (_beyond(low, high), _beyond(*(float(end) for end in ends(plain))))
    return {
        "value": bounded_exp(value),
        "low": bounded_exp(low),
        "high": bounded_exp(high),
        "disagrees": told[0] != told[1],
    }


def _beyond(low: float, high: float) -> int:
    """On which side of no difference an interval of logs lies; 0 where it holds it."""
    return (low > 0) - (high < 0)
