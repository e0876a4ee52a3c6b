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
    half_width,
    of_passes,
    of_runs,
    paired,
    quantile,
    sign_ends,
    span,
    unpaired,
)  # fmt: skip
from cpubench.analysis.quantity import quantity

TRIALS = 8000  # the standard error of a coverage of 0.95 is 0.0024
OWN = ("AR(1) 0.3", "AR(1) 0.3 in common")  # each row's own correlation, which pairing leaves; real pairs have 0.1
INSIDE = [(noise, passes) for noise in simulated.NOISES for passes in simulated.PASSES]


@pytest.mark.parametrize(("noise", "passes"), INSIDE)
def test_intervals_inside_runs_cover_the_truth(noise: str, passes: int) -> None:
    found = simulated.within_runs(simulated.NOISES[noise], passes, TRIALS)
    del found["sign test"]  # of pairs that are taken as independent: a cross-check
    if noise in OWN:
        assert found.pop("paired ratio")[0] >= 0.9
    assert {name: share for name, (share, _) in found.items() if share < 0.93} == {}


@pytest.mark.parametrize("passes", simulated.PASSES)
def test_pairs_of_independent_passes_are_not_covered_too_often(passes: int) -> None:
    share, _ = simulated.within_runs(simulated.own, passes, TRIALS)["paired ratio"]
    assert 0.93 <= share <= 0.97


@pytest.mark.parametrize("runs", simulated.RUNS)
def test_intervals_over_runs_cover_the_hosts(runs: int) -> None:
    for share, _ in simulated.between_runs(runs, 6000).values():
        assert 0.93 <= share <= 0.97


def test_one_run_a_side_does_not_cover_the_hosts() -> None:
    """Why every sentence on one run says so."""
    assert simulated.one_run_of_hosts(1, TRIALS) < 0.92


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


def test_known_interval() -> None:
    """Logs -1, 0, 1: mean 0, sd 1, t(0.975, 2) = 4.302653; their correlation of 0 counts as (0 + 1/3) in 3 passes."""
    logs = np.array([-1.0, 0.0, 1.0])
    assert span(of_runs(logs)) == pytest.approx((1, math.exp(-2.484138), math.exp(2.484138)), rel=1e-5)
    rho = (3 * (1 / 3) + 24 * 0.4) / 27
    assert float(correlation(logs)) == pytest.approx(rho)
    half = 2.484138 * math.sqrt((1 + rho) / (1 - rho))
    assert span(of_passes(logs)) == pytest.approx((1, math.exp(-half), math.exp(half)), rel=1e-5)
    assert float(half_width(of_passes(logs))) == pytest.approx(math.exp(half) - 1, rel=1e-5)


def test_a_quantity_has_the_interval_of_its_passes() -> None:
    """The rule of comparisons is that of scores and references, too."""
    logs = np.random.default_rng(1).standard_normal(16)
    value, low, high = (1000 * one for one in span(of_passes(logs)))
    assert quantity(logs, 1000) == {"value": value, "low": low, "high": high, "passes": 16, "reason": None}
    assert quantity(np.array([math.nan, *logs, math.nan]), 1000) == quantity(logs, 1000)
    assert high / value - 1 == pytest.approx(float(half_width(of_passes(logs))))


def test_one_pass_has_no_interval() -> None:
    one = quantity(np.array([math.nan, math.log(3)]), 2.0)
    assert one.pop("value") == pytest.approx(6)
    assert one == {"low": None, "high": None, "passes": 1, "reason": "an interval needs two passes"}
    assert quantity(np.array([math.nan]))["value"] is None


def test_absurd_logs_have_finite_intervals() -> None:
    logs = np.array([-700.0, 700.0] * 4)
    assert all(map(math.isfinite, (*span(of_passes(logs)), float(half_width(of_passes(logs))))))


@pytest.mark.parametrize("families", [1, 5])
@pytest.mark.parametrize("noise", ["independent", "AR(1) 0.3"])
def test_stopping_on_a_width_keeps_coverage(noise: str, families: int) -> None:
    """Of runs that stop at once, on the way, and hardly ever: to look after each pass costs little."""
    trials = 2000 if families > 1 else 6000
    enough = 0.92 - 2 * math.sqrt(0.92 * 0.08 / trials)
    for least in simulated.LEAST:
        runs = [
            simulated.stopped(simulated.NOISES[noise], sd, least, families, trials) for sd in simulated.STOPPING_SDS
        ]
        assert min(min(family, whole) for family, whole, _ in runs) >= enough
        passes = [taken for _, _, taken in runs]
        assert passes[0] < 0.4 * simulated.MOST < 0.9 * simulated.MOST < passes[-1]
        assert sorted(passes) == passes


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
    assert 0.27 < float(np.mean(few)) < 0.4
    assert float(correlation(np.zeros(8))) == pytest.approx((8 / 8 + 24 * 0.4) / 32)
    assert float(correlation(np.zeros(8), 0.15)) == pytest.approx((8 / 8 + 24 * 0.15) / 32)


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
