"""``cpubench tasks explain``: made-up kernels and tasks, as a document, as tables, and as sentences where it cannot."""

import copy
import json
import re

import msgspec
import pytest
from made import made_run as made_kernels
from made import made_variants, written
from made_watts import made_power
from tasks_run import SOLO, made_repeat, made_run, made_span

import cpubench.results.records as r
from cpubench.analysis.paths import RULES
from cpubench.analysis.task_levels import over_levels
from cpubench.analysis.task_times import task_times
from cpubench.analysis.tasks import tasks_document
from cpubench.entry import main
from cpubench.results.files import sealed
from cpubench.results.load_tasks import load_tasks
from cpubench.results.windows import Level


def variants():
    """Rows that price all paths."""
    plain = next(one for one in made_variants() if one.copies == "1" and one.scored)
    made = []
    for index, name in enumerate(name for rule in RULES.values() for name in rule.rows):
        kernel, _, params = name.removesuffix("]").partition("[")
        made.append(r.Variant(
            kernel=kernel, family="made", params=params, copies="1", scored=False, version=1, unit="operation",
            flags=[], index=index, value=0, groups=plain.groups, divisor=1, held_bytes=0, ops=4000,
        ))  # fmt: skip
    return made


def folders(tmp_path, name, factors=None, times=(1.0, 1.1, 0.9), kernels=None, **tasks_other):
    plan = {"variants": variants()} | (kernels or {})
    kernels = written(tmp_path / f"{name}-kernels", made_kernels(8, factors=factors, **plan))
    document = sealed(made_run(factors=times) | tasks_other)
    folder = tmp_path / f"{name}-tasks"
    folder.mkdir()
    (folder / "tasks.json").write_text(json.dumps(document))
    return [str(kernels), str(folder)]


def told(capsys, *arguments):
    assert main(["tasks", "explain", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_path_has_count_price_and_share(tmp_path, capsys):
    document = told(capsys, *folders(tmp_path, "a"))
    (row,) = document["tasks"]  # not T0
    assert row["task"] == SOLO.name
    assert row["paths"]["spawn"]["count"] == 4
    assert document["prices"]["spawn"]["ns"]["value"] == pytest.approx(5000, rel=0.05)
    assert sum(one["share"] for one in row["paths"].values()) == pytest.approx(1)
    assert row["paths"]["user"]["share"] == pytest.approx(0.28 / 0.4, rel=0.1)
    assert row["starts"]["pythons"] == 2
    assert (row["asked_of_system"] > 0, document["notes"]) == (True, [])


def test_a_second_side_is_foretold_and_measured(tmp_path, capsys):
    ours = folders(tmp_path, "a", times=(1.0, 1.0))
    theirs = folders(tmp_path, "b", factors={"mem_chase": 1.5}, times=(1.3, 1.3))
    found = told(capsys, *ours, "--against", *theirs)["against"]
    (row,) = found["rows"]
    assert row["predicted"]["value"] == pytest.approx(1 + 0.7 * 0.5, abs=0.03)  # user code follows that kernel
    assert row["measured"]["value"] == pytest.approx(1.3, rel=0.01)
    assert found["agreement"]["reason"] == "4 points are needed; there are 1"
    same = told(capsys, *ours, "--against", *ours)["against"]["rows"][0]
    assert (same["predicted"]["value"], same["measured"]["value"]) == pytest.approx((1, 1))


def test_tables_fit_and_hold_no_foreign_control_characters(tmp_path, capsys):
    run, tasks = folders(tmp_path, "a")
    file = tmp_path / "a-tasks" / "tasks.json"
    document = json.loads(file.read_text())
    document["tasks"][1] |= {"name": "T1[\x1b[31m]"}
    file.write_text(json.dumps(sealed(document)))
    assert main(["tasks", "explain", run, tasks, "--against", run, tasks]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "starts of processes" in text
    assert re.search(r"1\.000", text)


def test_kernels_and_tasks_of_two_hosts_are_refused(tmp_path, capsys):
    arguments = folders(tmp_path, "a", host={"hostname": "h", "id": "another"})
    assert main(["tasks", "explain", *arguments]) == 2
    assert "measured on two hosts" in capsys.readouterr().err


def test_a_run_without_the_kernels_says_which_prices_lack(tmp_path, capsys):
    _, tasks = folders(tmp_path, "a")
    few = written(tmp_path / "few", made_kernels(8))
    document = told(capsys, str(few), tasks)
    assert len(document["notes"]) == 3  # it has a switch by pipes only
    assert document["prices"]["fault"]["ns"] is None
    assert document["tasks"][0]["paths"]["fault"]["share"] == 0


def test_a_failed_task_is_not_explained(tmp_path, capsys):
    whole = made_run()
    row = copy.deepcopy(whole["tasks"][1])
    row["repeats"] = [made_repeat([made_span(0, 0, 10**6, 10)], failures=["search.1: ended with 1, not 0"])]
    run, tasks = folders(tmp_path, "a", times=(1.0,))
    (tmp_path / "a-tasks" / "tasks.json").write_text(json.dumps(sealed(whole | {"tasks": [whole["tasks"][0], row]})))
    (found,) = told(capsys, run, tasks)["tasks"]
    assert (found["paths"], found["reason"]) == (None, "1 of 1 repeats failed: search.1: ended with 1, not 0")


def tasks_with(*changes):
    """The made-up run of tasks, with changes to its T1; None takes it away."""
    rows = made_run(factors=(1.0, 1.0, 3.0))["tasks"]
    for change in changes:
        rows = rows[:1] if change is None else [rows[0], rows[1] | change]
    return {"tasks": rows}


def failing(at):
    repeats = made_run(factors=(1.0, 1.0, 3.0))["tasks"][1]["repeats"]
    repeats[at]["failures"] = ["test.1: not done after 120 s"]
    return {"repeats": repeats}


WHY = "1 of 3 repeats failed: test.1: not done after 120 s"
APART = {
    "failed here": (tasks_with(failing(2)), tasks_with(), f"on this side: {WHY}"),
    "failed there": (tasks_with(), tasks_with(failing(0)), f"on the other side: {WHY}"),
    "here alone": (tasks_with(), tasks_with(None), "was done on this side alone"),
    "there alone": (tasks_with(None), tasks_with(), "was done on the other side alone"),
    "skipped": (tasks_with(), tasks_with({"skipped": "no cc", "repeats": []}), "on the other side: no cc"),
    "version": (tasks_with(), tasks_with({"version": 2}), "is version 1, on the other side 2: that is other work"),
}


@pytest.mark.parametrize("name", APART)
def test_a_task_that_is_not_compared_says_why(tmp_path, capsys, name):
    here, there, why = APART[name]
    ours, theirs = folders(tmp_path, "a", **here), folders(tmp_path, "b", **there)
    found = told(capsys, *ours, "--against", *theirs)["against"]
    assert found["rows"] == [{"task": SOLO.name, "reason": why}]
    assert main(["tasks", "explain", *ours, "--against", *theirs]) == 0
    text = capsys.readouterr().out
    assert f"not compared: {why}" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_failed_repeat_is_told_alike_wherever_its_task_is(tmp_path, capsys, at):
    kernels, tasks = folders(tmp_path, "a", **tasks_with(failing(at)))
    (row,) = told(capsys, kernels, tasks)["tasks"]
    run = load_tasks(tmp_path / "a-tasks")
    other = msgspec.structs.replace(run, cap="100W")
    rate = next(one for one in tasks_document(run)["tasks"] if one["task"] == SOLO.name)["tasks_per_hour"]
    (ratio,) = over_levels({"as-is": run, "100W": other})
    assert {row["reason"], rate["reason"], task_times(run)[SOLO.name].reason, ratio["ratio"]["reason"]} == {WHY}
    assert (row["paths"], rate["value"], task_times(run)[SOLO.name].seconds) == (None, None, {})
    assert main(["tasks", "explain", kernels, tasks]) == 0
    assert f"not explained: {WHY}" in " ".join(capsys.readouterr().out.split())


def changed(**fields):
    return {"variants": [msgspec.structs.replace(one, **fields) for one in variants()]}


OTHER_WORK = {
    "suite of kernels": ({"kernels": {"suite": 2}}, "its kernels are of suite 2, those of RUN of suite 1"),
    "version": ({"kernels": changed(version=2)}, "is version 2, in RUN version 1: that is other work"),
    "unit": ({"kernels": changed(unit="hour")}, "is a hour, in RUN a operation"),
    "suite of tasks": ({"suite": "tasks-2"}, "its tasks are of suite tasks-2, those of TASKS of suite tasks-1"),
    "inputs": ({"inputs_sha256": "1" * 64}, "the tasks are not the same work: inputs"),
    "programs": ({"programs": {"python3": {"version": "3.8"}}}, "the tasks are not the same work: python3 -, 3.8"),
}


@pytest.mark.parametrize("name", OTHER_WORK)
def test_sides_that_did_other_work_are_refused(tmp_path, capsys, name):
    other, text = OTHER_WORK[name]
    ours, theirs = folders(tmp_path, "a"), folders(tmp_path, "b", **other)
    assert main(["tasks", "explain", *ours, "--against", *theirs]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n"), text in printed.err) == ("", 1, True)
    assert "--against" in printed.err
    assert main(["tasks", "explain", *theirs, "--against", *ours]) == 2


def test_another_file_system_is_a_setting_and_is_said(tmp_path, capsys):
    ours = folders(tmp_path, "a", file_system={"file_system": "tmpfs"})
    theirs = folders(tmp_path, "b", file_system={"file_system": "ext4"})
    document = told(capsys, *ours, "--against", *theirs)
    assert document["notes"] == ["the tasks' files were on tmpfs, of the other side on ext4"]
    assert document["against"]["rows"][0]["reason"] is None


def test_a_folder_without_tasks_is_a_sentence(tmp_path, capsys):
    run, _ = folders(tmp_path, "a")
    assert main(["tasks", "explain", run]) == 2
    assert "tasks.json" in capsys.readouterr().err


def test_bytes_that_nobody_counted_are_said_and_not_taken_for_none(tmp_path, capsys):
    whole = made_run()
    for one in whole["tasks"][1]["repeats"]:
        one["spans"]["read_bytes"] = [None, 10]
    kernels, tasks = folders(tmp_path, "a", times=(1.0, 1.0, 1.0), tasks=whole["tasks"])
    document = told(capsys, kernels, tasks)
    (row,) = document["tasks"]
    assert (row["paths"]["copy"]["count"], row["bytes_uncounted"]) == (None, 1)
    assert document["notes"] == [f"{SOLO.name}: nobody counted the bytes of 1 steps: their time is under files"]
    assert main(["tasks", "explain", kernels, tasks]) == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("bytes moved by calls"))
    assert line.split()[4] == "-"


def test_tasks_under_a_cap_are_not_priced_by_kernels_without_one(tmp_path, capsys):
    power = msgspec.to_builtins(made_power([Level(name="9W", state="verified", text="holds", watts=9.0)]))
    kernels, tasks = folders(tmp_path, "a", cap="9W", power=power)
    assert main(["tasks", "explain", kernels, tasks]) == 2
    assert "the tasks were done under 9W" in capsys.readouterr().err
