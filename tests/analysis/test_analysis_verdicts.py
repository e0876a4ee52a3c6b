"""Words: where they begin, that exchanging the sides mirrors them, and how seldom they are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import simulated

from cpubench.analysis.estimates import Estimate, of_runs
from cpubench.analysis.verdicts import least_error, verdicts, word

MOST = 0.02  # of trials with identical sides in which anything is called different


def estimate(percent: float, error_percent: float, freedom: float = 1e6) -> Estimate:
    return Estimate(np.array(math.log1p(percent / 100)), np.array(error_percent / 100), np.array(freedom))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.1, 5, "faster"), (0.9, 5, "inconclusive"), (-5, -1.1, "slower"), (-5, -0.9, "inconclusive"),
        (-1.9, 1.9, "equivalent"), (-1.9, 2.1, "inconclusive"), (-2.1, 1.9, "inconclusive"), (1.1, 1.9, "faster"),
        (0.5, 1.9, "equivalent"), (-50, 50, "inconclusive"),
    ],
)  # fmt: skip
def test_words(low: float, high: float, said: str) -> None:
    ends = [math.copysign(math.log1p(abs(end) / 100), end) for end in (low, high)]
    assert word(*ends) == said
    mirror = {"faster": "slower", "slower": "faster"}
    assert word(-ends[1], -ends[0]) == mirror.get(said, said)


def test_a_floor_makes_only_differences_harder() -> None:
    assert word(0.02, 0.05, band=0.03) == "inconclusive"
    assert word(-0.01, 0.01, band=0.03) == "equivalent"


def test_one_claim_is_held_against_the_plain_interval() -> None:
    (found,) = verdicts([estimate(5, 1)])
    assert found.confidence == pytest.approx(0.95)
    assert (found.high - found.low) / 2 == pytest.approx(0.0196, rel=1e-3)


def test_holm_by_hand() -> None:
    """Errors 0, 0.003, 0.04 and 1 against 0.05/4, 0.05/3 and 0.05/2: the third fails, the last shares its level."""
    table = [estimate(0, 9), estimate(30, 1), estimate(4, 1.45), estimate(4, 0.985)]
    errors = [least_error(one, 0.01) for one in table]
    assert errors[1] < 1e-9
    assert 0.001 < errors[3] < 0.05 / 3
    assert 0.025 < errors[2] < 0.05
    found = verdicts(table)
    assert [one.word for one in found] == ["inconclusive", "faster", "inconclusive", "faster"]
    assert [1 - one.confidence for one in found] == pytest.approx([0.05 / 2, 0.05 / 4, 0.05 / 2, 0.05 / 3])


def test_more_claims_never_make_a_word_easier() -> None:
    alone, among = verdicts([estimate(4, 1)])[0], verdicts([estimate(4, 1), *[estimate(0, 9)] * 30])[0]
    assert (alone.word, among.word) == ("faster", "inconclusive")
    assert among.low < alone.low


@pytest.mark.parametrize("noise", simulated.NOISES)
@pytest.mark.parametrize("passes", [8, 24])
def test_identical_machines_are_seldom_called_different(noise: str, passes: int) -> None:
    rng = np.random.default_rng(5)
    a, b = (simulated.NOISES[noise](rng, (500, 20, passes)) for _ in "ab")
    head, anything = simulated.called_different(a, b)
    assert head <= anything <= MOST


@pytest.mark.parametrize("runs", [3, 6])
def test_identical_hosts_are_seldom_called_different(runs: int) -> None:
    rng = np.random.default_rng(6)
    a, b = (simulated.with_run_effects(rng, runs, 12, 500, 20).mean(axis=-1).transpose(0, 2, 1) for _ in "ab")
    assert max(simulated.called_different(a, b, of_runs)) <= MOST


def test_a_difference_of_ten_per_cent_is_found() -> None:
    rng = np.random.default_rng(7)
    a, b = (simulated.own(rng, (300, 20, 24)) for _ in "ab")
    assert simulated.called_different(a, b + 0.1)[0] > 0.99
