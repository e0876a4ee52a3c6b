"""Runs are told apart where neither the weights nor the noise of the passes could turn them round."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from made import made_run

from cpubench.analysis.ranks import ranks, task_ranks
from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.results.records import Divisor, Run

Doc = dict[str, Any]


def scored(passes: int = 12, scenario: str = "equal", **made: Any) -> Doc:
    reference = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made-reference")
    return score(msgspec.convert(made_run(passes, **made), Run), reference, scenario)


def test_a_run_that_is_slower_throughout_is_behind_under_every_weight() -> None:
    (found,) = ranks([scored(), scored(slower=1.3, seed=1)])
    assert found == {"a": 0, "b": 1, "share": 1.0, "separable": True, "reason": None}
    (found,) = ranks([scored(slower=1.3, seed=1), scored()])
    assert (found["share"], found["separable"]) == (0.0, True)


def test_a_difference_inside_the_noise_does_not_separate() -> None:
    (found,) = ranks([scored(noise=0.2), scored(noise=0.2, slower=1.01, seed=1)])
    assert (found["separable"], found["reason"] is None) == (False, False)


def test_an_order_that_hangs_on_the_weights_does_not_separate() -> None:
    """Of one machine memory is twice as fast, of the other processes start in a little more than half of the time."""
    mixed = [scored(noise=0, factors={"mem_chase": 0.5}), scored(noise=0, factors={"spawn_fork_exec": 0.53})]
    (found,) = ranks(mixed)
    assert 0.05 < found["share"] < 0.95
    assert (found["separable"], found["reason"]) == (False, "the order depends on the weights")


def test_a_run_beside_itself_is_neither_ahead_nor_behind() -> None:
    (found,) = ranks([scored(), scored()])
    assert (found["share"], found["separable"]) == (0.5, False)


def test_every_pair_is_there_once_and_the_same_again() -> None:
    documents = [scored(slower=slower, seed=seed) for seed, slower in enumerate((1.0, 1.1, 1.2))]
    found = ranks(documents)
    assert [(pair["a"], pair["b"]) for pair in found] == [(0, 1), (0, 2), (1, 2)]
    assert found == ranks(documents)
    json.dumps(found, allow_nan=False)
    assert ranks(documents[:1]) == ranks([]) == []


OBSTACLES = {
    "few passes": ({"passes": 7}, "no headline: 8 passes are needed; 7 of 7 are complete"),
    "another kind of core": (
        {"divisor": Divisor("physical_core", 2)}, "points per vcpu and per physical_core are not compared",
    ),
    "another scenario": ({"scenario": "coding"}, "the scenario of the two differs"),
}  # fmt: skip


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_has_no_common_scale_has_no_share_and_a_reason(name: str) -> None:
    made, reason = OBSTACLES[name]
    (found,) = ranks([scored(), scored(**made)])
    assert found == {"a": 0, "b": 1, "share": None, "separable": False, "reason": reason}


def test_a_family_that_nobody_weighs_may_be_missing() -> None:
    left = [v for v in msgspec.convert(made_run(0), Run).plan.variants if v.kernel != "file_create"]
    (found,) = ranks([scored(scenario="chat"), scored(scenario="chat", variants=left, slower=1.3)])
    assert (found["share"], found["separable"]) == (1.0, True)


def test_tasks_of_other_tools_or_under_a_cap_have_no_order() -> None:
    def made(score: float, **other: Any) -> dict[str, Any]:
        task = {"task": "T1", "weight": 1.0, "score": {"value": score, "low": score, "high": score}}
        whole = {"value": score, "low": score * 0.99, "high": score * 1.01, "passes": 8, "reason": None}
        return {"suite": "s", "reference": "r", "scenario": "equal", "weights_sha256": "w", "cap": None, "covers": 1.0,
                "divisor_kind": "vcpu", "work": {"python3": "3.11", "file system": "ext4"}, "score": whole,
                "tasks": [task]} | other  # fmt: skip

    (pair,) = task_ranks([made(1000), made(1500)])
    assert pair["reason"] is None
    for other, text in (({"cap": "100W"}, "the power cap of the two differs"),
                        ({"work": {"python3": "3.8", "file system": "tmpfs"}},
                         "not the same work: python3 3.11, 3.8; file system ext4, tmpfs")):  # fmt: skip
        (pair,) = task_ranks([made(1000), made(1500, **other)])
        assert (pair["separable"], text in pair["reason"]) == (False, True)
