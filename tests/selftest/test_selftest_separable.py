"""What a host can separate, from logs of which the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cpubench.analysis.estimates import Estimate, ends, of_passes
from cpubench.analysis.separable import TWINS, sentence, separable_percent, told_apart


def estimate(log: float, half: float) -> Estimate:
    """One whose 95 % interval is ``log`` +- ``half``, of so many passes that t is the normal distribution."""
    return Estimate(np.array(log), np.array(half / 1.9599640), np.array(1e9))


def test_what_is_separable_is_the_band_and_two_half_widths_of_the_widest_twin() -> None:
    found = [estimate(0.0, 0.002), estimate(math.log(1.02), 0.005), estimate(math.log(1.1), 0.001)]
    assert separable_percent(found, 1.0) == pytest.approx(2.1)  # 1.01 * exp(0.01) is 2.015 %: rounded up
    assert separable_percent(found, 3.0) == pytest.approx(4.1)  # a floor of 3 % makes it harder
    assert separable_percent([*found, None], 1.0) is None
    assert separable_percent([], 1.0) is None


def test_a_difference_that_is_called_separable_is_found_in_97_of_100_repetitions() -> None:
    """As compare finds it: the interval beyond the band. What a host can do is judged by four twins of one run, and
    held against a fifth that it did not see."""
    rng, passes, found, repetitions = np.random.default_rng(7), 40, 0, 2000
    for deviation in (0.003, 0.02):
        for _ in range(repetitions // 2):
            logs = rng.normal(0, deviation, (5, passes))
            percent = separable_percent([of_passes(own) for own in logs[:4]], 1.0)
            assert percent is not None
            low, _ = ends(of_passes(logs[4] + math.log1p(percent / 100)))
            found += float(low) > math.log1p(0.01)
    assert found / repetitions > 0.97


def test_without_passes_nothing_is_claimed() -> None:
    told = told_apart([])
    assert (told["floor_percent"], told["separable_percent"], told["passes"]) == (None, None, 0)
    assert [twin["true_percent"] for twin in told["twins"]] == list(TWINS.values()) == [0, 2, 5, 10]
    assert all(twin["measured"]["value"] is None and not twin["found"] for twin in told["twins"])
    assert all("8 are needed" in twin["measured"]["reason"] for twin in told["twins"])
    assert "is not known: in 0 of 0 passes" in sentence(told, 1.0)


def test_the_sentence_rounds_against_the_host() -> None:
    text = sentence({"separable_percent": 1.3}, 0.91)
    assert text.startswith("this host can separate differences of 1.3 % in 1.0 minutes, of two builds of a compute-")
