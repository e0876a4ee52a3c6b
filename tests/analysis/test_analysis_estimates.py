"""Differences and their intervals: known values, and the truth covered under every noise that was met."""

from __future__ import annotations

import math

import numpy as np
import pytest
import simulated

from cpubench.analysis.estimates import (
    average,
    correlation,
    ends,
    of_passes,
    of_runs,
    paired,
    quantile,
    sign_ends,
    unpaired,
)  # fmt: skip
from cpubench.analysis.intervals import log_interval

TRIALS = 8000  # the standard error of a coverage of 0.95 is 0.0024
INSIDE = [(noise, passes) for noise in simulated.NOISES for passes in simulated.PASSES]


@pytest.mark.parametrize(("noise", "passes"), INSIDE)
def test_intervals_inside_runs_cover_the_truth(noise: str, passes: int) -> None:
    found = simulated.within_runs(simulated.NOISES[noise], passes, TRIALS)
    del found["sign test"]  # of pairs that are taken as independent: a cross-check
    assert {name: share for name, (share, _) in found.items() if share < 0.93} == {}


@pytest.mark.parametrize(("passes", "most"), [(8, 0.98), (12, 0.98), (24, 0.975), (40, 0.97)])
def test_pairs_of_independent_passes_are_covered_little_too_often(passes: int, most: float) -> None:
    """0.97 is not reached below forty passes: eight cannot show whether they are alike, so 0.3 is assumed."""
    share, _ = simulated.within_runs(simulated.own, passes, TRIALS)["paired ratio"]
    assert 0.93 <= share <= most


@pytest.mark.parametrize("runs", simulated.RUNS)
def test_intervals_over_runs_cover_the_hosts(runs: int) -> None:
    for share, _ in simulated.between_runs(runs, 6000).values():
        assert 0.93 <= share <= 0.97


def test_one_run_a_side_does_not_cover_the_hosts() -> None:
    """Why every sentence on one run says so."""
    assert simulated.one_run_of_hosts(1, TRIALS) < 0.9


@pytest.mark.parametrize("passes", simulated.PASSES)
def test_pairs_are_narrower_where_a_pass_does_the_same_to_both(passes: int) -> None:
    rng = np.random.default_rng(4)
    common = 0.1 * rng.standard_normal((2000, passes))
    a, b = (common + simulated.own(rng, (2000, passes), 0.02) for _ in "ab")
    (share, pairs), (_, apart) = (
        simulated.covered(ends(one), 0.0) for one in (paired(a, b), unpaired(of_passes(a), of_passes(b)))
    )
    assert share >= 0.95
    assert pairs < 0.35 * apart  # 0.0283 against 0.144 are the true deviations


def test_known_welch() -> None:
    """Textbook: a = 1 2 3 4, b = 2 4 6 8 10: means 2.5 and 6, squared errors 5/12 and 2, 5.5 degrees of freedom."""
    found = unpaired(of_runs(np.array([1.0, 2, 3, 4])), of_runs(np.array([2.0, 4, 6, 8, 10])))
    squares = (5 / 12, 2.0)
    assert float(found.log) == pytest.approx(3.5)
    assert float(found.error) == pytest.approx(math.sqrt(sum(squares)))
    assert float(found.freedom) == pytest.approx(sum(squares) ** 2 / (squares[0] ** 2 / 3 + squares[1] ** 2 / 4))
    low, high = ends(found)
    assert 2.4469 < float(high - low) / 2 / float(found.error) < 2.5706  # Student's t of 6 and of 5 degrees
    assert quantile(np.array([5.0, 6.0])) == pytest.approx([2.570582, 2.446912])


def test_fixed_interval_is_that_of_the_score() -> None:
    logs = np.random.default_rng(1).standard_normal(16)
    made, shipped = ends(simulated.fixed(logs)), log_interval(logs)
    assert [math.exp(end) for end in made] == pytest.approx([shipped.low, shipped.high])


def test_average_of_runs_has_the_error_of_these_runs_only() -> None:
    one = of_passes(np.random.default_rng(2).standard_normal(12))
    both = average([one, one])
    assert float(both.error) == pytest.approx(float(one.error) / math.sqrt(2))
    assert float(both.freedom) == pytest.approx(2 * float(one.freedom))


def test_correlation_follows_the_passes_where_there_are_many() -> None:
    rng = np.random.default_rng(3)
    for rho in (0.0, 0.3, 0.5):
        many = correlation(simulated.autoregressive(rng, (500, 200), rho))
        assert float(np.mean(many)) == pytest.approx(rho, abs=0.05)
    few = correlation(simulated.autoregressive(rng, (500, 8), 0.0))
    assert 0.2 < float(np.mean(few)) < 0.3
    assert float(correlation(np.zeros(8))) == pytest.approx((8 / 8 + 24 * 0.3) / 32)


def test_passes_that_never_differ_make_a_point() -> None:
    found = unpaired(of_passes(np.zeros(8)), of_passes(np.full(8, 0.5)))
    assert [float(end) for end in ends(found)] == [0.5, 0.5]


def test_sign_test_is_exact() -> None:
    """With six pairs all of them are needed, with eight the second ones are the first that may be left out at 0.93."""
    zeros, logs = np.zeros(6), np.array([5.0, 1, 4, 2, 6, 3])
    assert sign_ends(zeros[:5], logs[:5]) is None
    found = sign_ends(zeros, logs)
    assert found is not None
    assert [float(one) for one in found] == [3.5, 1, 6]
    wider = sign_ends(np.zeros(9), np.arange(9.0))
    assert wider is not None
    assert [float(one) for one in wider] == [4, 1, 7]  # 1 - 2 * 10 / 512 = 0.961
