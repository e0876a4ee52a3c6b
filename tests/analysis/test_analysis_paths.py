"""Counts at prices, what they leave, and changes that are foretold: on numbers that a reader can add up."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from cpubench.analysis.agreement import Point, agreement
from cpubench.analysis.estimates import Estimate, span
from cpubench.analysis.paths import (
    COUNTED,
    RULES,
    Tally,
    by_weights,
    one_ns,
    predicted,
    prices,
    seconds_of,
    shared_out,
    summed,
)
from cpubench.analysis.rates import Rates
from cpubench.results.names import row_key
from cpubench.results.task_records import Repeat, Spans, StepName, TaskRow

NS = {"spawn": 1e6, "fault": 1000.0, "switch": 4000.0, "copy": 0.1}


def rates(noise: float = 0.0, slower: dict[str, float] | None = None, passes: int = 8) -> Rates:
    rng = random.Random(1)
    times = {row_key(row, "1"): np.array([
        1000 * (slower or {}).get(path, 1.0) * math.exp(rng.gauss(0, noise)) for _ in range(passes)
    ]) for path, rule in RULES.items() for row in rule.rows}  # fmt: skip
    return Rates(passes, {}, times, {})


def repeat(**columns: list[Any]) -> Repeat:
    """A repeat of two steps, an `explore` and a `test`, which the columns change."""
    plain: dict[str, list[Any]] = {name: [0, 0] for name in Spans.__struct_fields__}
    plain |= {"step": [0, 1], "background": [False, False], "wall_ns": [50_000_000, 100_000_000]} | columns
    fields: dict[str, Any] = {
        "index": 0, "wall_ns": 10**9, "window_ns": 0, "harness_us": 0, "tools_us": 0, "failures": [], "leftovers": [],
        "unknown": [], "ready_ns": 0, "pressure": None, "memory_low_bytes": None, "environment": {}, "spans": plain,
    }  # fmt: skip
    return msgspec.convert(fields, Repeat)


def row() -> TaskRow:
    steps = [StepName(label=phase, kind=kind, phase=phase, pythons=1, shells=0)
             for kind, phase in (("search", "explore"), ("test", "test"))]  # fmt: skip
    return TaskRow(name="T1", task="T1", params=[], tools=[], agents=1, version=1, skipped=None, steps=steps,
                   repeats=[])  # fmt: skip


def test_prices_are_of_one_and_not_of_an_operation() -> None:
    ns = one_ns(prices(rates()))
    assert ns == pytest.approx({"spawn": 1000, "fault": 1000, "switch": 500, "copy": 1000 / 2**20})


def test_a_path_without_all_its_rows_has_no_price() -> None:
    some = rates()
    del some.ns_per_op[row_key("file_stat[miss]", "1")]
    some.ns_per_op[row_key("mem_copy[set=64M]", "1")][:] = np.nan
    assert RULES.keys() - prices(some).keys() == {"meta", "copy", "off_cpu"}


def test_counts_come_out_of_the_system_time_and_the_rest_is_files() -> None:
    counts = {"spawn": 2.0, "fault": 3000.0, "switch": 250.0, "copy": 1e7}  # 2 + 3 + 1 + 1 ms
    made = shared_out(Tally(counts, user_s=0.05, sys_s=0.016, off_s=0.01), "test", NS)
    assert made == pytest.approx({
        "spawn": 0.002, "fault": 0.003, "switch": 0.001, "copy": 0.001, "meta": 0.005, "small": 0.004, "tree": 0.0,
        "user": 0.05, "off_cpu": 0.01,
    })  # fmt: skip


def test_prices_that_ask_for_more_than_there_was_are_scaled_down() -> None:
    counts = {"spawn": 2.0, "fault": 3000.0, "switch": 250.0, "copy": 1e7}
    made = shared_out(Tally(counts, sys_s=0.0035), "explore", NS)
    assert [made[path] for path in COUNTED] == pytest.approx([0.001, 0.0015, 0.0005, 0.0005])
    assert made["meta"] == 0


@pytest.mark.parametrize(("phase", "path"), [("fs.copy", "tree"), ("deps.install", "small"), ("explore", "meta")])
def test_the_phase_says_which_files(phase: str, path: str) -> None:
    made = shared_out(Tally(dict.fromkeys(COUNTED, 0.0), sys_s=0.01), phase, NS)
    assert (made[path], sum(made.values())) == (0.01, 0.01)


def test_all_time_of_the_steps_is_somewhere() -> None:
    one = repeat(user_us=[20_000, 40_000], sys_us=[10_000, 30_000], forks=[1, None], minor_faults=[2000, 1000],
                 voluntary=[3, 4], read_bytes=[10, None], written_bytes=[5, None])  # fmt: skip
    tables = seconds_of(row(), one, NS)
    assert sum(tables["search"].values()) == pytest.approx(0.05)
    assert sum(summed(tables).values()) == pytest.approx(0.15)
    assert tables["test"]["spawn"] == pytest.approx(0.001)  # nobody counted: the interpreter that it starts


def test_a_server_beside_the_steps_waits_for_nobody() -> None:
    one = repeat(background=[True, False], user_us=[20_000, 0], forks=[7, 0])
    search = seconds_of(row(), one, NS)["search"]
    assert (search["off_cpu"], search["spawn"], search["user"]) == (0, 0, 0.02)


def test_a_change_weighs_what_its_path_takes() -> None:
    seconds = dict.fromkeys(RULES, 0.0) | {"meta": 0.2, "user": 0.7, "off_cpu": 0.1}
    told = predicted(seconds, prices(rates()), prices(rates(slower={"meta": 1.5, "spawn": 9.0})))
    assert told is not None
    assert math.exp(told.log) == pytest.approx(1.1)  # 0.2 of it takes half as long again; starts take nothing of it
    none = predicted(seconds, prices(rates()), {})
    assert none is not None
    assert none.log == 0  # nothing is known of B: as unchanged
    assert predicted(dict.fromkeys(RULES, 0.0), {}, {}) is None


def test_the_interval_of_a_prediction_holds_the_truth() -> None:
    """B is the very same host: in most of 200 pairs of runs the interval must hold 1."""
    seconds = dict.fromkeys(RULES, 0.0) | {"spawn": 0.3, "meta": 0.2, "user": 0.5}
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        sides = []
        for _ in "ab":
            side = rates()
            for key in side.ns_per_op:
                side.ns_per_op[key] = side.ns_per_op[key] * np.exp(rng.normal(0, 0.05, side.passes))
            sides.append(prices(side))
        told = predicted(seconds, *sides)
        assert isinstance(told, Estimate)
        _, low, high = span(told)
        held += low <= 1 <= high
    assert 185 <= held <= 200


def test_published_weights_leave_what_they_do_not_cover_unchanged() -> None:
    logs = {"file": math.log(2), "spawn": math.log(4)}
    assert by_weights({"file": 20, "spawn": 10, "lock": 5}, 65, logs) == pytest.approx(0.4 * math.log(2))


def points(slope: float, noise: float = 0.0) -> list[Point]:
    rng = random.Random(2)
    return [Point(f"setting {n % 6}", str(n), n / 100, slope * n / 100 + rng.gauss(0, noise)) for n in range(24)]


def test_a_prediction_that_ranks_right_may_size_wrongly() -> None:
    found = agreement(points(0.7))
    assert found["rank"]["value"] == pytest.approx(1)
    assert found["slope"] == pytest.approx({"value": 0.7, "low": 0.7, "high": 0.7})
    assert found["error"] < found["unpredicted"]
    turned = agreement(points(-0.5))
    assert turned["rank"]["value"] == pytest.approx(-1)
    assert turned["error"] > turned["unpredicted"]


def test_noise_widens_the_intervals_and_the_same_points_give_the_same() -> None:
    calm, noisy = agreement(points(1, 0.01)), agreement(points(1, 0.3))
    assert calm["rank"]["low"] > 0.9
    assert noisy["rank"]["low"] < calm["rank"]["low"]
    assert noisy == agreement(points(1, 0.3))


def test_too_few_points_and_points_that_do_not_vary_have_no_rank() -> None:
    assert agreement(points(1)[:3])["reason"] == "4 points are needed; there are 3"
    flat = agreement([Point(str(n), str(n), 0.0, n / 10) for n in range(5)])
    assert (flat["rank"]["value"], flat["slope"]["value"], flat["rank"]["low"]) == (None, None, None)
    pair = agreement(points(1)[:1] * 2 + points(1)[1:2] * 2)
    assert (pair["groups"], pair["rank"]["value"], pair["rank"]["low"]) == (2, pytest.approx(1), None)
