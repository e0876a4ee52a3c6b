"""Odd units, what differs in them, and tiers of models, on units of which the truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from cpubench.analysis.outliers import LIMITS, NEEDED, is_odd, named, spread
from cpubench.analysis.units import Unit, facts_of, fleet_of


def units(logs: Sequence[float], model: str = "A", cap: str = "as-is", kind: str = "physical_core") -> list[Unit]:
    return [Unit(f"{model}{at}", f"{model} id {at}", model, kind, cap, [7 + log], 0.01, {"memory": "512 GiB"})
            for at, log in enumerate(logs)]  # fmt: skip


def noisy(count: int, seed: int, sd: float = 0.01, shift: float = 0.0) -> list[float]:
    return [float(one) + shift for one in np.random.default_rng(seed).normal(0, sd, count)]


@pytest.mark.parametrize("count", [6, 7, 8, 10, 12, 15, 20, 40, 100, 300])
def test_equal_units_are_called_odd_in_five_of_a_hundred_models(count: int) -> None:
    """2,000 groups of equal units whose spread is far above the 2 % that a difference must have."""
    groups = np.random.default_rng(count).normal(0, 1.0, (2000, count))
    found = 0
    for logs in groups:
        among = spread(list(logs))
        found += any(is_odd(float(one), 0.0, among) for one in logs[np.argsort(-np.abs(logs - among.middle))[:2]])
    assert found / len(groups) < 0.065


def test_limits_fall_with_the_units() -> None:
    assert [limit for _, limit in LIMITS] == sorted(limit for _, limit in LIMITS)
    assert LIMITS[-1][0] == NEEDED
    assert spread([0.0] * (NEEDED - 1)).limit is None


def test_a_slow_unit_is_odd_and_named_by_its_memory() -> None:
    fleet = units([*noisy(9, 1), -0.2])
    fleet[-1] = Unit(**{**vars(fleet[-1]), "facts": {"memory": "256 GiB"}})
    (odd,) = fleet_of(fleet)["odd"]
    assert odd["unit"] == "A9"
    assert odd["ratio"] == pytest.approx(math.exp(-0.2), rel=0.02)
    assert odd["differs"] == [{"what": "memory", "value": "256 GiB", "others": "512 GiB", "count": 9}]


def test_too_few_units_make_none_odd_and_say_so() -> None:
    made = fleet_of(units([0.0, 0.001, 0.002, -0.001, -0.5]))
    assert made["odd"] == []
    assert made["models"][0]["odd_reason"] == "6 units are needed to call one odd, here are 5"


def test_a_difference_below_two_per_cent_or_inside_the_own_interval_is_not_odd() -> None:
    near = units([0.0] * 9 + [0.019])
    assert fleet_of(near)["odd"] == []
    wide = units([*noisy(9, 2, 0.001), -0.1])
    assert [one["unit"] for one in fleet_of(wide)["odd"]] == ["A9"]
    wide[-1] = Unit(**{**vars(wide[-1]), "half_width": 0.11})
    assert fleet_of(wide)["odd"] == []


def test_facts_are_named_where_most_others_agree() -> None:
    others = [{"kernel": "6.1", "governor": g} for g in ("a", "b", "c", "d")]
    assert named({"kernel": "6.2", "governor": "e"}, others) == [
        {"what": "kernel", "value": "6.2", "others": "6.1", "count": 4}
    ]
    assert named({"governor": "a"}, others)[0]["value"] == "not recorded"


def test_models_are_in_tiers_by_their_units() -> None:
    fleet = [*units(noisy(5, 1), "A"), *units(noisy(5, 2, shift=-0.1), "B"), *units(noisy(5, 3, shift=-0.1), "C")]
    (found,) = fleet_of([*fleet, *units(noisy(2, 4), "D")])["tiers"]
    assert found["tiers"][0] == ["A"]
    assert sorted(found["tiers"][1]) == ["B", "C"]
    assert found["left_out"] == ["D"]


def test_levels_and_kinds_of_cores_are_never_in_one_list() -> None:
    fleet = [*units(noisy(3, 1), "A"), *units(noisy(3, 2), "B", cap="200W"), *units(noisy(3, 3), "C", kind="vcpu")]
    made = fleet_of(fleet)
    assert len(made["tiers"]) == 3
    assert {one["reason"] for one in made["tiers"]} == {"two models with 3 units are needed, here are 1"}


def test_a_cap_of_packages_and_one_of_a_node_are_two_levels() -> None:
    packages = [Unit(**{**vars(one), "cap_scope": "package"}) for one in units(noisy(6, 1), cap="200W")]
    node = [Unit(**{**vars(one), "name": f"n{one.name}", "machine": f"n{one.machine}", "cap_scope": "node"})
            for one in units(noisy(6, 2, shift=-0.5), cap="200W")]  # fmt: skip
    made = fleet_of(packages + node)
    assert [(one["cap"], one["cap_scope"], one["units"]) for one in made["models"]] == [
        ("200W", "node", 6), ("200W", "package", 6)]  # fmt: skip
    assert [(one["cap_scope"], one["reason"]) for one in made["tiers"]] == [
        (scope, "two models with 3 units are needed, here are 1") for scope in ("node", "package")]  # fmt: skip
    assert made["odd"] == []  # each of a group of its own; together half of them would be 40 % off


def test_one_machine_under_three_names_is_one_unit() -> None:
    fleet = [Unit(**{**vars(one), "machine": "same"}) for one in units(noisy(3, 1), "A")] + units(noisy(3, 2), "B")
    made = fleet_of(fleet)
    assert {one["model"]: one["units"] for one in made["models"]} == {"A": 1, "B": 3}
    assert made["one_machine"] == [["A0", "A1", "A2"]]
    assert made["tiers"][0]["left_out"] == ["A"]


def test_a_unit_without_points_is_in_no_median() -> None:
    fleet = units([0.0, 0.1, 0.2])
    fleet.append(Unit("x", "x", "A", "physical_core", "as-is", [], 0.0))
    assert fleet_of(fleet)["models"][0]["units"] == 3


def test_facts_of_a_host_are_text_whatever_its_file_says() -> None:
    odd = {"microcode": {"a": [1]}, "governor": 7, "memory_total_bytes": "much", "numa_nodes": [1, {"x": 2}],
           "mitigations": {"\x1b[2J": None, "b": "Vulnerable"}, "firmware": "\x07", "smt": True}  # fmt: skip
    made = facts_of(odd, 4, 2.0)
    assert all(isinstance(text, str) and text.isprintable() for pair in made.items() for text in pair)
    assert made["mitigation of b"] == "Vulnerable"
    small = facts_of({"memory_total_bytes": 540_000_000_000}, 4, 2)["memory"]
    assert small == facts_of({"memory_total_bytes": 540_200_000_000}, 4, 2)["memory"] == "503 GiB"
