"""Candidates in tiers instead of ranks, from the verdicts of their pairwise comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def tiers(points: Sequence[float | None], pairs: Mapping[tuple[int, int], Json], measure: str) -> list[list[int]]:
    """Positions of candidates by tier, the best first; those without points are in none.

    A tier is its first candidate, which has the most points of those left, and all that were not shown to be slower
    than that one.
    ``pairs`` holds documents of ``compare`` (B against A) by positions, lower first; a pair that was not compared
    tells nothing, so it parts no tier: what cannot be compared must not be in one list, see ``comparable``.
    """
    left = sorted((at for at, value in enumerate(points) if value is not None), key=lambda at: -(points[at] or 0.0))
    made: list[list[int]] = []
    while left:
        first, *others = left
        tier = [first, *(at for at in others if not _behind(at, first, pairs, measure))]
        made.append(tier)
        left = [at for at in others if at not in tier]
    return made


def comparable(count: int, pairs: Mapping[tuple[int, int], Json], measure: str) -> bool:
    """Whether every pair of ``count`` candidates has a verdict on the whole."""
    return len(pairs) == count * (count - 1) // 2 and all(
        one["headline"][measure]["verdict"] != "not compared" for one in pairs.values()
    )


def _behind(at: int, first: int, pairs: Mapping[tuple[int, int], Json], measure: str) -> bool:
    """Whether ``at`` was shown to be slower than ``first``."""
    one = pairs.get((min(at, first), max(at, first)))
    if one is None:
        return False
    word = one["headline"][measure]["verdict"]
    return bool(word == ("slower" if at > first else "faster"))
