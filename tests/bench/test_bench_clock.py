from __future__ import annotations

import math

import pytest

from cpubench.bench.clock import CLOCK_NAME, VirtualClock


def test_a_round_reads_exactly_what_was_recorded() -> None:
    clock = VirtualClock()
    for seconds in (1.5e-9, 1e5, 1.5e-9, 3e-4):
        clock.reset()
        start = clock()
        clock.advance(seconds)
        assert clock() - start == seconds


def test_without_a_reset_a_short_time_would_drown_in_a_long_one() -> None:
    clock = VirtualClock()
    clock.advance(1e5)
    start = clock()
    clock.advance(1.5e-9)
    assert clock() - start != 1.5e-9


@pytest.mark.parametrize("seconds", [0.0, -1e-9, math.nan, math.inf, -math.inf])
def test_what_is_no_duration_is_refused_and_moves_nothing(seconds: float) -> None:
    clock = VirtualClock()
    with pytest.raises(ValueError, match="not a finite time above 0"):
        clock.advance(seconds)
    assert clock() == 0


def test_the_clock_has_the_name_that_pytest_benchmark_stores() -> None:
    assert VirtualClock().__name__ == CLOCK_NAME
