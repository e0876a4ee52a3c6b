"""The clock that shows what was measured before, instead of the time that passes now."""

from __future__ import annotations

import math

CLOCK_NAME = "cpubench.recorded"


class VirtualClock:
    """A pytest-benchmark timer in seconds; it stands still between two ``advance`` calls.

    Only for ``benchmark.pedantic(.., iterations=1)``: everything else in pytest-benchmark first measures the
    precision of its timer, waits a whole second for a clock like this one to move, and then fails.
    """

    def __init__(self) -> None:
        self.__name__ = CLOCK_NAME  # pytest-benchmark stores it as options.timer
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def reset(self) -> None:
        """Back to zero before each round: at 1e5 s a difference of 1.5e-9 s would read 1.4988e-9 s."""
        self._now = 0.0

    def advance(self, seconds: float) -> None:
        """Move on; raises ValueError for what is no duration, because one NaN costs pytest-benchmark its whole JSON."""
        if not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"a sample took {seconds} s per operation: not a finite time above 0")
        self._now += seconds


clock = VirtualClock()
