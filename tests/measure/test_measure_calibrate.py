"""Calibration against simulated kernels and clocks."""

import random
from itertools import pairwise

import pytest

from cpubench.measure.calibrate import LIMIT_NS, all_copies, one_copy

TARGET_NS = 20_000_000


def steady(each_ns, fixed_ns=0):
    return lambda ops: round(fixed_ns + ops * each_ns)


@pytest.mark.parametrize("each_ns", [0.3, 1.1, 50, 3_000, 400_000, 19_999_999, 20_000_001, 25_000_000, 900_000_000])
def test_a_batch_lasts_as_long_as_asked_whatever_an_operation_costs(each_ns):
    ops, found_ns = one_copy(steady(each_ns), TARGET_NS, 0)
    assert found_ns == pytest.approx(each_ns, rel=0.01)
    assert ops == max(1, round(TARGET_NS / each_ns)) or ops * each_ns == pytest.approx(TARGET_NS, rel=0.01)


def test_one_interrupted_batch_does_not_decide():
    """The batch that first seems long enough was interrupted: 11,111 operations of 14 us together took 86 us."""
    calls = []

    def ask(ops):
        calls.append(ops)
        return TARGET_NS + ops * 10 if len(calls) == 3 else ops * 10

    ops, each_ns = one_copy(ask, TARGET_NS, 0)
    assert each_ns == pytest.approx(10)
    assert ops == TARGET_NS / 10


def test_one_cold_operation_does_not_decide():
    """The first took 25 ms (a program read from a disk), the others 0.4 ms."""
    calls = []

    def ask(ops):
        calls.append(ops)
        return 25_000_000 if len(calls) == 1 else ops * 400_000

    assert one_copy(ask, TARGET_NS, 0) == (50, 400_000)


def test_growth_is_at_most_tenfold():
    calls = []

    def ask(ops):
        calls.append(ops)
        return ops

    one_copy(ask, TARGET_NS, 0)
    assert all(b <= 10 * a for a, b in pairwise(calls))


def test_a_batch_never_exceeds_the_kernels_limit():
    assert one_copy(steady(10), TARGET_NS, 500)[0] == 500


def test_noise_without_end_still_ends():
    rng, spent = random.Random(1), []

    def ask(ops):
        took = round(TARGET_NS * rng.choice([0.2, 0.9, 0.99]))  # never reaches the target, however many
        spent.append(took)
        return took

    assert one_copy(ask, TARGET_NS, 0)[0] >= 1
    assert sum(spent) < LIMIT_NS + TARGET_NS


def test_a_failed_sample_gives_none():
    assert one_copy(lambda ops: None, TARGET_NS, 0) is None
    assert all_copies(lambda ops, window: None, TARGET_NS, 0, 10.0) is None


@pytest.mark.parametrize(
    ("each_ns", "ops", "window_ns"),
    [(100, 4_000, TARGET_NS), (400_000, 1, TARGET_NS), (3_000_000, 1, 30_000_000), (25_000_000, 1, 250_000_000)],
)
def test_a_window_is_twenty_milliseconds_or_ten_operations_in_fifty_batches(each_ns, ops, window_ns):
    """The first guess, one copy's time, may be three times too good: with all copies at work things are slower."""
    found = all_copies(lambda ops, window: each_ns, TARGET_NS, 0, each_ns / 3)
    assert found == (ops, window_ns, each_ns)
