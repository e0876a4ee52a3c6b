"""The task score: ratios of times to a reference, weighted; what is missing is null, what is not there yet is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from made import made_environment
from made_tasks import tasks

from cpubench.analysis.ranks import task_ranks
from cpubench.analysis.scenarios import Scenario, load_scenarios
from cpubench.analysis.task_reference import TaskReference, load_task_reference, make_task_reference
from cpubench.analysis.task_score import task_score
from cpubench.analysis.task_times import FLEET, class_times, task_times
from cpubench.errors import UsageError
from cpubench.results.task_records import TaskRun

CODING = load_scenarios()["coding"]


def run_of(document: Any) -> TaskRun:
    return msgspec.convert(document, TaskRun)


def reference(document: Any = None) -> TaskReference:
    return msgspec.convert(make_task_reference(run_of(document or tasks()), "made"), TaskReference)


def test_the_shipped_task_weights_are_those_of_the_method() -> None:
    found = {name: scenario.tasks for name, scenario in load_scenarios().items()}
    assert found["chat"] == {"T2": 15, "T5": 85}
    assert found["coding"] == {"T1": 60, "T1b": 10, "T2": 10, "T3": 5, "T4": 15}
    assert found["tools"] == {"T1": 10, "T2": 60, "T3": 10, "T4": 20}
    assert found["multitenant"] == {"T1": 10, "T2": 10, "T3": 25, "T4": 45, "T6": 10}
    assert len(set(found["equal"].values())) == 1


def test_the_reference_has_a_thousand_and_half_the_speed_has_half() -> None:
    scale = reference()
    own = task_score(run_of(tasks()), scale, CODING)
    assert own["score"]["value"] == pytest.approx(1000)
    assert own["score"]["low"] < 1000 < own["score"]["high"]
    assert own["covers"] == pytest.approx(0.85)
    slow = task_score(run_of(tasks(slower=2.0)), scale, CODING)
    rows = {row["name"]: row["score"]["value"] for row in slow["rows"]}
    assert rows["T1[verify-heavy,light]"] == pytest.approx(500, rel=1e-3)
    assert rows[FLEET] == pytest.approx(500, rel=1e-3)
    assert slow["score"]["reason"] is None


def test_tasks_are_weighed_and_rows_of_a_task_are_not() -> None:
    """T1 has two rows and one weight; T1b and T3 have no reference: their weight is named and not in the score."""
    made_of = task_score(run_of(tasks(loaded=3.0)), reference(), CODING)
    points = {row["task"]: row["score"]["value"] for row in made_of["tasks"]}
    assert points["T4"] == pytest.approx(500, rel=1e-3)
    assert (points["T1"], points["T2"]) == pytest.approx((1000, 1000))
    assert made_of["score"]["value"] == pytest.approx(1000 * 0.5 ** (15 / 85), rel=1e-3)
    assert made_of["equal_weights"]["value"] == pytest.approx(1000 * 0.5 ** (1 / 3), rel=1e-3)
    missing = {row["task"]: row["score"]["reason"] for row in made_of["tasks"] if row["score"]["value"] is None}
    assert missing == dict.fromkeys(("T1b", "T3"), "the reference does not have it")


def test_which_steps_a_window_drew_and_how_long_the_model_took_do_not_matter() -> None:
    drawn = tasks()
    row = drawn["tasks"][4]
    for one in row["repeats"]:
        keep = [at for at, step in enumerate(one["spans"]["step"]) if step == 1 or at < 12]  # mostly the long step
        one["spans"] = {name: [column[at] for at in keep] for name, column in one["spans"].items()}
    assert task_times(run_of(drawn))[FLEET].seconds[0] == pytest.approx(task_times(run_of(tasks()))[FLEET].seconds[0])
    assert task_times(run_of(tasks()))[FLEET].seconds[0] == pytest.approx(0.4 * 1.5, rel=0.01)


def failed(document: Any) -> Any:
    for one in document["tasks"][3]["repeats"]:
        one["failures"] = ["sqlite.0: ended with 1, not 0"]
    return document


def survived(document: Any) -> Any:
    """The slowest repeat is gone: of the others the score would be too good."""
    document["tasks"][3]["repeats"][1]["failures"] = ["sqlite.0: ended with 1, not 0"]
    return document


def one_window(document: Any) -> Any:
    document["tasks"][4]["repeats"][1]["failures"] = ["test.1: timed out"]
    return document


def other_version(document: Any) -> Any:
    document["tasks"][3]["version"] = 7
    return document


def without(document: Any) -> Any:
    del document["tasks"][3]
    return document


OBSTACLES = {
    failed: "missing: T2[process]: 3 of 3 repeats failed: sqlite.0: ended with 1, not 0",
    survived: "missing: T2[process]: 1 of 3 repeats failed: sqlite.0: ended with 1, not 0",
    one_window: "missing: T4[4 agents a core]: 1 of 2 repeats failed: test.1: timed out",
    other_version: "missing: T2[process]: is version 7, in the reference 1",
    without: "missing: T2[process]: was not done",
    lambda document: document | {"suite": "tasks-9"}:
        "missing: T1[verify-heavy,light]: is of suite tasks-9, in the reference of tasks-1",
    lambda document: document | {"think": 0.0}: "missing: T4[4 agents a core]: waits 0 times as long for the model",
}  # fmt: skip


@pytest.mark.parametrize("change", OBSTACLES)
def test_a_task_that_the_reference_has_and_the_run_lacks_makes_the_score_null(change: Any) -> None:
    found = task_score(run_of(change(tasks())), reference(), CODING)
    assert found["score"]["value"] is None
    assert found["score"]["reason"].startswith(OBSTACLES[change])
    assert found["covers"] < 0.85
    assert not found["publishable"]


def test_one_window_has_no_interval_and_says_so() -> None:
    found = task_score(run_of(tasks(windows=1)), reference(), CODING)
    assert found["score"]["value"] == pytest.approx(1000)
    assert (found["score"]["low"], found["score"]["passes"]) == (None, 1)
    assert found["score"]["reason"] == "an interval needs two repeats; there is one of T4"
    judged = [task_score(run_of(tasks(windows=n) | {"estimate": False}), reference(), CODING) for n in (1, 2)]
    assert [one["publishable"] for one in judged] == [False, True]


def granted(agents: int) -> Any:
    """The made-up tasks under a quota of 1.5 CPUs, their windows with so many agents."""
    document = tasks() | {"divisor": {"kind": "granted_cpu", "n": 1.5}}
    document["tasks"][4] |= {"name": f"T4[agents={agents}]", "agents": agents}
    return document


def test_under_a_quota_the_scored_agents_are_four_by_what_it_grants() -> None:
    assert task_times(run_of(granted(6)))[FLEET].seconds
    assert FLEET not in task_times(run_of(granted(8)))


def test_scores_per_another_kind_of_core_say_so_and_are_not_ranked() -> None:
    scale = reference()
    documents = [task_score(run_of(document), scale, CODING) for document in (tasks(), granted(6))]
    assert [one["divisor_kind"] for one in documents] == ["vcpu", "granted_cpu"]
    assert documents[0]["notes"] == ["an estimate: too few repeats for verdicts"]
    assert "a core is a granted_cpu, of the reference a vcpu: agents a core are not alike" in documents[1]["notes"]
    (pair,) = task_ranks(documents)
    assert (pair["share"], pair["reason"]) == (None, "the kind of core of the two differs")


def test_weights_that_say_nothing_of_tasks_make_no_task_score() -> None:
    found = task_score(run_of(tasks()), reference(), Scenario("x", "", {"file": 1.0}, {}))
    assert found["score"]["reason"] == "the weights say nothing of tasks"
    assert found["equal_weights"]["value"] == pytest.approx(1000)


def test_what_else_differs_is_told() -> None:
    document = tasks()
    document["programs"] = {"python3": {"version": "3.13.1"}}
    scale = msgspec.structs.replace(reference(), programs={"python3": "3.11.2"})
    assert "python3 is 3.13.1, of the reference 3.11.2" in task_score(run_of(document), scale, CODING)["notes"]


def test_a_reference_needs_every_task_and_holds_times_of_classes(tmp_path: Path) -> None:
    made_of = make_task_reference(run_of(tasks()), "made", "two made-up CPUs")
    (tmp_path / "r.json").write_text(json.dumps(made_of))
    assert load_task_reference(tmp_path / "r.json").rows[FLEET].task == "T4"
    assert set(made_of["class_s"]) == {"search", "test", "db", "read"}
    assert made_of["class_s"] == class_times(run_of(tasks()))
    for change in (failed, survived, one_window, lambda document: document | {"stopped": "interrupted"}):
        with pytest.raises(UsageError, match="a reference needs"):
            make_task_reference(run_of(change(tasks())), "made")
    lacking = tasks()
    lacking["tasks"][2] |= {"skipped": "no such program", "repeats": []}
    assert set(made_of["rows"]) - set(make_task_reference(run_of(lacking), "made")["rows"]) == {"T1[read-heavy,light]"}
    for reason, repeats in (("8 agents may need 2400 MiB", []), (None, lacking["tasks"][4]["repeats"][:1])):
        other = tasks()  # a window of T6 that was not done, or failed, is no scored row
        name = {"name": "T6[46MB,512MB,agents=8]", "task": "T6", "params": ["46MB", "512MB"]}
        failures = [one | {"failures": ["burst: failed"]} for one in repeats]
        other["tasks"].append(other["tasks"][4] | name | {"skipped": reason, "repeats": failures})
        assert make_task_reference(run_of(other), "made")["rows"] == made_of["rows"]
    (tmp_path / "r.json").write_text(json.dumps(made_of | {"name": "changed"}))
    with pytest.raises(UsageError, match="was changed"):
        load_task_reference(tmp_path / "r.json")


def test_the_shipped_reference_is_whole() -> None:
    scale = load_task_reference()
    assert {row.task for row in scale.rows.values()} == {"T1", "T1b", "T2", "T3", "T4", "T5"}
    assert not [name for name in scale.rows if "bwrap" in name or "runc" in name]
    assert {"test", "install", "build", "py", "search", "read", "edit", "git", "db", "net"} <= set(scale.class_s)


def test_hosts_are_told_apart_where_no_weight_turns_them_round() -> None:
    scale = reference()
    documents = [task_score(run_of(tasks(slower=s)), scale, CODING) for s in (1.0, 2.0)]
    (pair,) = task_ranks(documents)
    assert (pair["a"], pair["b"], pair["share"]) == (0, 1, 1.0)
    assert task_ranks([documents[0], documents[1] | {"covers": 0.5}])[0]["reason"].startswith("the share of the tasks")


def publishable(**other: Any) -> tuple[bool, str]:
    """Whether the score of a whole run may be published, with other facts, and its notes."""
    found = task_score(run_of(tasks() | {"estimate": False} | other), reference(), CODING)
    return found["publishable"], " ".join(found["notes"])


def test_what_forbids_to_publish_kernels_forbids_it_of_tasks() -> None:
    assert publishable()[0] is True
    for other, text in (
        ({"divisor": {"kind": "granted_cpu", "n": 1.5}}, "a quota grants 1.5 CPUs"),
        ({"host": {"hostname": "h", "cpus_not_allowed": "2-127"}}, "CPUs 2-127 are online and not allowed here"),
        ({"host": {"hostname": "h", "core_classes": [{"name": "P", "cpus": [0]}, {"name": "E", "cpus": [1]}]}},
         "cores of different kinds"),
    ):  # fmt: skip
        may, notes = publishable(**other)
        assert (may, text in notes) == (False, True), text


def test_repeats_that_were_disturbed_forbid_it_too() -> None:
    whole = tasks()
    for row in whole["tasks"]:
        for one in row["repeats"]:
            one["environment"] = made_environment(others_ns=10**9)
    may, notes = publishable(tasks=whole["tasks"])
    assert (may, "repeats were disturbed (contended" in notes) == (False, True)
