"""The step between two values of a counter: what was added, or why nobody can say."""

from __future__ import annotations

from typing import NamedTuple

# What registers and firmware say that have nothing to say: all ones in 32 bits (also as milliwatts), 63 and 64 bits.
ALL_ONES = (2**32 - 1, (2**32 - 1) * 1000)


class Step(NamedTuple):
    raw: float | None  # counts that were added; None: rejected
    wraps: int = 0
    flag: str = ""


def is_sentinel(raw: float) -> bool:
    """Whether a value stands for "none"."""
    return raw in ALL_ONES or raw >= 2**63 - 1


def step(before: float, now: float, range_raw: int | None, most_raw: float) -> Step:
    """What a counter added between two readings, by its own range and the most that is possible in that time.

    At most one wrap is ever assumed, and only where two could not have happened. Without a known range a step back
    is rejected, not guessed. The true modulus is the range and one unit of the hardware: 61 uJ, which are left out.
    """
    added, wraps = now - before, 0
    if range_raw is not None and most_raw >= range_raw:
        return Step(None, 0, "gap")  # long enough for a wrap that leaves no trace
    if added < 0:
        if range_raw is None or before > range_raw:
            return Step(None, 0, "negative_step")
        added, wraps = added + range_raw, 1
        if not 0 <= added <= most_raw:
            return Step(None, 0, "negative_step")  # the counter was reset
    if added > most_raw:
        return Step(None, 0, "implausible_high")
    return Step(added, wraps)
