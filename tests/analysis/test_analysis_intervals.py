"""An interval covers the truth as often as it says, also where passes are alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cpubench.analysis.intervals import Interval, half_width, log_interval, t_quantile, widening

SIMULATED = 4000  # the standard error of a coverage of 0.95 is 0.0035


def coverage(passes: int, rho: float) -> float:
    """Share of simulated runs with an AR(1) of passes whose interval holds the truth, 1.0."""
    rng = np.random.default_rng(7)
    noise = rng.standard_normal((SIMULATED, passes + 1))
    logs = np.empty((SIMULATED, passes))
    last = noise[:, 0]
    for at in range(passes):
        last = rho * last + math.sqrt(1 - rho**2) * noise[:, at + 1]
        logs[:, at] = 0.05 * last
    made = [log_interval(row.tolist()) for row in logs]
    return sum(i.low is not None and i.high is not None and i.low <= 1 <= i.high for i in made) / SIMULATED


@pytest.mark.parametrize("passes", [8, 16, 40])
def test_alike_passes_are_covered(passes: int) -> None:
    assert coverage(passes, 0.3) >= 0.93


@pytest.mark.parametrize("passes", [8, 16, 40])
def test_independent_passes_are_covered(passes: int) -> None:
    assert coverage(passes, 0.0) >= 0.95


def test_known_interval() -> None:
    # Three passes with logs -1, 0, 1: mean 0, sd 1, t(0.975, 2) = 4.30265, half = 4.30265 / sqrt(3) = 2.48414.
    plain = log_interval([-1.0, 0.0, 1.0], rho=0.0)
    assert plain.value == pytest.approx(1)
    assert plain.high == pytest.approx(math.exp(2.48414), rel=1e-5)
    assert plain.low == pytest.approx(math.exp(-2.48414), rel=1e-5)
    wide = log_interval([-1.0, 0.0, 1.0])
    assert wide.high == pytest.approx(math.exp(2.48414 * math.sqrt(1.3 / 0.7)), rel=1e-5)


def test_one_pass_has_no_interval() -> None:
    assert log_interval([math.log(3)]) == Interval(pytest.approx(3), None, None, 1)
    assert half_width(log_interval([0.0])) == math.inf
    with pytest.raises(ValueError, match="at least one"):
        log_interval([])


def test_half_width_is_the_farther_end() -> None:
    assert half_width(Interval(100, 98, 103, 9)) == pytest.approx(0.03)
    assert half_width(Interval(100, 96, 103, 9)) == pytest.approx(0.04)


def test_factors() -> None:
    assert widening(0.0) == 1
    assert widening(0.3) == pytest.approx(1.3628, abs=1e-4)
    assert t_quantile(15) == pytest.approx(2.13145, abs=1e-5)
