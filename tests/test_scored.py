"""``cpubench score`` with tasks: two scores side by side, and what belongs to which run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import made
import msgspec
import pytest
from made_tasks import tasks

from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import load_scenarios
from cpubench.analysis.task_reference import load_task_reference, make_task_reference
from cpubench.entry import main
from cpubench.results.files import sealed
from cpubench.results.load import load_run
from cpubench.results.task_records import TaskRun
from cpubench.tasks_told import publishable

CODING = load_scenarios()["coding"]


def run_of(document: Any) -> TaskRun:
    return msgspec.convert(document, TaskRun)


def call(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, list[object]]:
    """A run, tasks, and the references of both as options."""
    run, done = tmp_path / "run", tmp_path / "done"
    run.mkdir()
    done.mkdir()
    (run / "run.json").write_text(json.dumps(made.made_run()))
    (done / "tasks.json").write_text(json.dumps(sealed(tasks())))
    scales = tmp_path / "r.json", tmp_path / "t.json"
    scales[0].write_text(json.dumps(make_reference(load_run(run), "made")))
    scales[1].write_text(json.dumps(make_task_reference(run_of(tasks()), "made tasks")))
    return run, done, ["--reference", scales[0], "--task-reference", scales[1]]


def test_a_score_has_both_and_merges_neither(capsys: Any, folders: Any) -> None:
    run, done, scales = folders
    code, out, _ = call(capsys, "score", run, done, "--scenario", "coding", *scales, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["headline"]["per_core"]["value"] == pytest.approx(1000)
    assert (document["covers"], document["task_score"]["covers"]) == pytest.approx((0.40, 0.85))
    assert document["task_score"]["score"]["value"] == pytest.approx(1000)
    assert document["weights_sha256"] == document["task_score"]["weights_sha256"] == CODING.sha256
    code, out, _ = call(capsys, "score", run, done / "tasks.json", "--scenario", "coding", *scales)
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    for text in ("covers 85 of 100", "measured families cover 40 %", "the reference does not have it", CODING.sha256):
        assert text in " ".join(out.split())
    (run / "tasks.json").write_bytes((done / "tasks.json").read_bytes())
    beside = json.loads(call(capsys, "score", run, "--scenario", "coding", *scales, "--json")[1])
    assert beside["task_score"] == document["task_score"]


def test_without_tasks_the_task_score_is_null_with_the_way_to_one(capsys: Any, folders: Any) -> None:
    run, _, scales = folders
    document = json.loads(call(capsys, "score", run, *scales, "--json")[1])
    assert document["task_score"]["score"]["value"] is None
    assert "cpubench tasks run" in document["task_score"]["score"]["reason"]
    assert call(capsys, "score", run, *scales)[0] == 0


def test_tasks_are_publishable_by_the_rule_of_their_score_at_every_level(folders: Any, tmp_path: Path) -> None:
    _, _, scales = folders
    whole, broken = tasks() | {"estimate": False}, tasks() | {"estimate": False}
    broken["tasks"][1]["repeats"][0]["failures"] = ["search.1: ended with 1, not 0"]
    made_of = {"whole": whole, "estimate": tasks(), "broken": broken, "stopped": whole | {"stopped": "interrupted"}}
    for name, document in made_of.items():
        folder = tmp_path / "levels" / name
        folder.mkdir(parents=True)
        (folder / "tasks.json").write_text(json.dumps(sealed(document)))
        assert publishable(folder, scales[-1]) is (name == "whole"), name
    assert not publishable(tmp_path / "levels", scales[-1])
    for name in made_of.keys() - {"whole"}:
        (tmp_path / "levels" / name / "tasks.json").unlink()
    assert publishable(tmp_path / "levels", scales[-1])


def test_tasks_alone_and_several_runs(capsys: Any, folders: Any) -> None:
    run, done, scales = folders
    alone = json.loads(call(capsys, "score", done, "--scenario", "coding", *scales, "--json")[1])
    assert set(alone) == {"scenario", "weights_sha256", "task_score"}
    assert call(capsys, "score", done, *scales)[0] == 0
    code, out, _ = call(capsys, "score", run, done, run, done, "--scenario", "coding", *scales, "--json")
    assert (code, [one["task_score"]["score"]["value"] is None for one in json.loads(out)["runs"]]) == (
        0,
        [False, False],
    )
    assert json.loads(out)["task_ranks"][0]["separable"] is False
    assert call(capsys, "score", run, done, run, done, *scales)[0] == 0
    code, _, err = call(capsys, "score", run, done, done, *scales)
    assert (code, "give each run before its tasks" in err) == (2, True)


def test_tasks_of_another_host_are_refused(capsys: Any, folders: Any) -> None:
    run, done, scales = folders
    document = tasks()
    document["host"] = {"hostname": "h", "id": "another"}
    (done / "tasks.json").write_text(json.dumps(sealed(document)))
    code, _, err = call(capsys, "score", run, done, *scales)
    assert (code, "on another host than the run" in err) == (2, True)


def test_an_estimate_is_not_publishable(capsys: Any, folders: Any) -> None:
    run, done, scales = folders
    assert call(capsys, "score", run, done, "--scenario", "coding", *scales, "--strict")[0] == 3
    document = tasks() | {"estimate": False}
    (done / "tasks.json").write_text(json.dumps(sealed(document)))
    assert call(capsys, "score", done, "--scenario", "coding", *scales, "--strict")[0] == 0


def test_a_reference_of_tasks_is_made_by_the_same_command(capsys: Any, folders: Any, tmp_path: Path) -> None:
    _, done, _ = folders
    code, out, _ = call(capsys, "reference", done, "--name", "mine", "-o", tmp_path / "x.json", "--json")
    assert (code, json.loads(out)) == (0, {"file": str(tmp_path / "x.json"), "name": "mine", "rows": 4})
    assert math.isclose(load_task_reference(tmp_path / "x.json").think, 1.0)
