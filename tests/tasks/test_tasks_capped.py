"""Tasks under caps on a host of files: real tasks and meters, limits that are set, looked at, and given back."""

import contextlib
import json
import math
import re

import msgspec
import pytest
from made_watts import made_power
from power import limit_trees, live_tree
from stand_ins import cpubench
from tasks_run import SOLO, made_repeat, made_row, made_run, made_span
from test_tasks_files import true_run, written

from cpubench.analysis.scenarios import load_scenarios, pick
from cpubench.analysis.task_reference import load_task_reference
from cpubench.analysis.task_score import task_score
from cpubench.analysis.tasks import tasks_document
from cpubench.errors import UsageError
from cpubench.results.files import sealed
from cpubench.results.load_tasks import load_tasks
from cpubench.results.windows import Level
from cpubench.tasks import run as runs
from cpubench.tasks.catalogue import Task

SHORT = "settle=0.02,idle=0.3,uncapped=1,verify=1"
RUN = ["tasks", "run", "--profile", "quick", "--tasks", "T0", "--repeats", "2", "--seed", "5", "--out", "r"]
KEY = "intel-rapl/package-0/long_term"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A host of files; nobody else measures on this one."""
    monkeypatch.setattr(runs.place, "host_lock", contextlib.nullcontext)
    monkeypatch.chdir(tmp_path)
    return live_tree.host(tmp_path / "host")


@pytest.fixture
def before(root):
    return limit_trees.limits(root)


def capped(capsys, root, *arguments):
    return cpubench(capsys, *RUN, "--root", root, "--times", SHORT, *arguments)


def test_levels_take_turns_and_each_has_a_file_of_its_own(capsys, tmp_path, root, before):
    with live_tree.drawing(root):
        code, out, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--json")
    assert code == 0, err
    assert limit_trees.limits(root) == before
    assert not list((root / "run/cpubench").glob("cap-*"))
    whole = json.loads(out)
    assert list(whole["levels"]) == ["100W", "as-is"]
    low, free = (load_tasks(tmp_path / "r" / cap) for cap in ("100W", "as-is"))
    asked = {
        cap: [one.limits.asked[KEY] for one in run.tasks[0].repeats] for cap, run in (("low", low), ("free", free))
    }
    assert asked == {"low": [100_000_000] * 2, "free": [350_000_000] * 2}
    assert low.level.uncapped_w == pytest.approx(live_tree.FREE_W, rel=0.15)
    assert low.level.drawn_w == pytest.approx(97, rel=0.15)
    assert all(one.mean_w or one.power_reason for one in low.tasks[0].repeats)
    (row,) = whole["levels"]["100W"]["tasks"]
    assert (row["task"], row["repeats"], row["failures"]) == ("T0", 2, 0)
    assert whole["levels"]["100W"]["cap"]["levels"] == ["100W", "as-is"]
    assert any("levels 100W, as-is" in line for line in err)
    assert cpubench(capsys, "validate", "r")[0] == 0
    code, out, _ = cpubench(capsys, "tasks", "show", "r")
    assert (code, "Under 100W: " in out, "Under as-is: as_found" in out) == (0, True, True)
    assert max(map(len, out.splitlines())) <= 80
    assert cpubench(capsys, "tasks", "show", "r/100W", "--trace", "t.json")[0] == 0
    code, _, err = cpubench(capsys, "tasks", "show", "r", "--trace", "t.json")
    assert (code, "name the folder of one, such as 100W" in err[-1]) == (2, True)


def test_one_level_is_in_the_runs_own_folder(capsys, tmp_path, root, before):
    code, _, err = capped(capsys, root, "--cap", "100W", "--meter", "none")
    assert code == 0, err
    run = load_tasks(tmp_path / "r")
    assert (run.cap, run.level.state, run.meter) == ("100W", "set_unverified", "")
    assert limit_trees.limits(root) == before


def test_a_cap_from_outside_is_told_and_nothing_is_written(capsys, tmp_path, root, before):
    code, _, err = capped(capsys, root, "--cap-external", "90W:wall", "--meter", "none")
    assert code == 0, err
    run = load_tasks(tmp_path / "r")
    assert (run.cap, run.capped, run.level.watts) == ("external=90W:wall", True, 90.0)
    assert limit_trees.limits(root) == before


@pytest.mark.parametrize("level", ["100W", "as-is"])
def test_a_limit_that_somebody_changes_ends_the_run_and_what_was_done_stays(capsys, tmp_path, root, monkeypatch, level):
    real, calls = runs.run_child, []

    def meddled(*given):
        real(*given)
        calls.append((root / live_tree.LIMIT).read_text().strip())
        if len(calls) == 3:
            (root / live_tree.LIMIT).write_text("123000000\n")

    monkeypatch.setattr(runs, "run_child", meddled)
    code, _, err = capped(capsys, root, "--cap", level, "--cap", "as-is" if level != "as-is" else "100W",
                          "--meter", "none")  # fmt: skip
    assert len(calls) == 3
    assert code == (70 if calls[2] == "100000000" else 2)
    assert "holds 123000000" in err[-1]
    assert re.search(f"kept in ({tmp_path}/)?r$", err[-1])
    assert {load_tasks(file.parent).stopped for file in (tmp_path / "r").glob("*/tasks.json")} == {"failed"}


@pytest.mark.parametrize(("arguments", "text"), [
    (["--meter", "csv"], "watts that come later are merged into runs of kernels only"),
    (["--cap", "100W", "--cap", "as-is", "--trace", "t.json"], "is of one level"),
    (["--cap", "100W", "--cap", "100W"], "100W is given twice"),
    (["--cap", "5000W", "--meter", "none"], "above the maximum"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_done(capsys, tmp_path, root, before, arguments, text):
    code, _, err = capped(capsys, root, *arguments)
    assert (code, text in err[-1]) == (2, True), err
    assert not (tmp_path / "r").exists()
    assert limit_trees.limits(root) == before


def test_limits_that_were_left_in_force_are_found(capsys, tmp_path, root):
    assert cpubench(capsys, "power", "set", "--watts", "200", "--root", root)[0] == 0
    code, _, err = capped(capsys, root)
    assert (code, "limits set by `cpubench power set` are in force" in err[-1]) == (2, True)
    assert not (tmp_path / "r").exists()


LEVELS = [Level(name="100W", state="verified", text="holds", watts=100.0, value=100_000_000, scope="package"),
          Level(name="as-is", state="as_found", text="limits as found")]  # fmt: skip


def under(document, cap="100W", asked=100_000_000, after=None, **power):
    """The document as one level of a run under caps."""
    limits = {"settle_ns": 10**10, "asked": {KEY: asked}, "steps": {KEY: 125_000}, "before": {KEY: asked},
              "after": {KEY: asked if after is None else after}}  # fmt: skip
    for row in document["tasks"]:
        for one in row["repeats"]:
            one["limits"] = limits
    told = msgspec.to_builtins(made_power(LEVELS, **power))
    return sealed(document | {"cap": cap, "power": told, "meter": "powercap", "meter_scope": "package"})


FAULTS = {
    "a level of no run": ({"cap": "70W"}, "the cap level '70W' is none of the run's"),
    "another limit than the level's": ({"asked": 200_000_000}, "are not the 100000000 of the level"),
    "a limit that did not stay": ({"after": 350_000_000}, "holds 350000000, not 100000000, after it"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_whose_limits_do_not_fit_is_refused(capsys, tmp_path, name):
    told, text = FAULTS[name]
    code, _, err = cpubench(capsys, "validate", written(tmp_path / "t", under(true_run(), **told)))
    assert (code, text in err[-1]) == (2, True), err


def test_a_file_without_limits_or_of_a_level_without_caps_is_refused(capsys, tmp_path):
    bare = under(true_run())
    for row in bare["tasks"]:
        for one in row["repeats"]:
            del one["limits"]
    code, _, err = cpubench(capsys, "validate", written(tmp_path / "a", sealed(bare)))
    assert (code, "nobody looked at the limits" in err[-1]) == (2, True)
    code, _, err = cpubench(capsys, "validate", written(tmp_path / "b", sealed(true_run() | {"cap": "100W"})))
    assert (code, "is none of the run's" in err[-1]) == (2, True)


def levels(tmp_path, watts=90.0, factor=2.0):
    """Two levels of one run: under the cap each task takes twice as long."""
    low, free = made_run(factors=(factor, 1.1 * factor)), made_run(factors=(1.0, 1.1))
    for one in low["tasks"][1]["repeats"]:
        one["mean_w"] = watts
    written(tmp_path / "100W", under(low))
    written(tmp_path / "as-is", under(free, cap="as-is", asked=350_000_000))
    return tmp_path


def test_levels_are_compared_repeat_by_repeat(capsys, tmp_path):
    whole = json.loads(cpubench(capsys, "tasks", "show", levels(tmp_path), "--json")[1])
    (row,) = whole["ratios"]
    assert (row["task"], row["level"], row["over"]) == (SOLO.name, "100W", "as-is")
    assert row["ratio"]["value"] == pytest.approx(0.5, rel=1e-3)
    assert row["ratio"]["high"] / row["ratio"]["low"] == pytest.approx(1, abs=1e-3)
    assert whole["levels"]["100W"]["cap"]["state"] == "verified"
    out = cpubench(capsys, "tasks", "show", tmp_path)[1]
    assert "0.500" in out


def test_a_host_that_draws_more_than_its_cap_is_over_it(capsys, tmp_path):
    whole = json.loads(cpubench(capsys, "tasks", "show", levels(tmp_path, watts=120.0), "--json")[1])
    told = whole["levels"]["100W"]
    assert (told["cap"]["state"], told["cap"]["repeats_over"]) == ("over_cap", 2)
    assert told["cap"]["text"] == "in 2 repeats the host drew more than 100.0 W; before them: holds"


def test_runs_of_several_times_are_not_levels_of_one(capsys, tmp_path):
    levels(tmp_path)
    written(tmp_path / "as-is", under(made_run() | {"seed": 9}, cap="as-is", asked=350_000_000))
    code, _, err = cpubench(capsys, "tasks", "show", tmp_path)
    assert (code, "holds 2 runs of tasks: name the folder of one" in err[-1]) == (2, True)


def test_a_score_under_a_cap_says_so_and_is_no_reference(capsys, tmp_path):
    levels(tmp_path)
    reference = load_task_reference(None)
    found = task_score(load_tasks(tmp_path / "100W"), reference, pick(load_scenarios(), "equal"))
    assert found["cap"] == "100W"
    assert "done under the cap 100W: verified (holds)" in found["notes"]
    code, _, err = cpubench(capsys, "reference", tmp_path / "100W", "--name", "x", "-o", tmp_path / "x.json")
    assert (code, "a reference is of a host without a cap" in err[-1]) == (2, True)


def test_repeats_that_only_one_level_did_are_in_no_ratio(capsys, tmp_path):
    levels(tmp_path)
    free = made_run(factors=(1.0,))
    written(tmp_path / "as-is", under(free, cap="as-is", asked=350_000_000))
    (row,) = json.loads(cpubench(capsys, "tasks", "show", tmp_path, "--json")[1])["ratios"]
    assert (row["ratio"]["passes"], row["ratio"]["low"]) == (1, None)
    assert math.isclose(row["ratio"]["value"], 0.5, rel_tol=1e-3)
    lone = made_row(Task("T2", ("server",)), [("a.0", "a", "db")], [made_repeat([made_span(0, 0, 10**9, 10)])])
    written(tmp_path / "100W", under(made_run([*made_run()["tasks"], lone])))
    ratios = json.loads(cpubench(capsys, "tasks", "show", tmp_path, "--json")[1])["ratios"]
    assert ratios[1]["ratio"]["reason"] == "was not done at both levels"


def test_a_full_disk_at_the_second_levels_first_file_says_so_and_keeps_the_first(capsys, tmp_path, root, monkeypatch):
    from cpubench.tasks import levels as files

    real, done = files.place.write_json, []

    def full(path, document):
        if path.name == "tasks.json" and path.parent.name not in {"r", *done[:1]}:
            done.append(path.parent.name)
            if len(set(done)) > 1:
                raise UsageError("write", "cannot be written: No space left on device", str(path))
        real(path, document)

    monkeypatch.setattr(files.place, "write_json", full)
    code, _, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--meter", "none")
    assert (code, "No space left on device" in err[-1], "is gone" in err[-1]) == (2, True, False)
    assert [path.name for path in (tmp_path / "r").iterdir()] == done[:1]
    assert load_tasks(tmp_path / "r" / done[0]).stopped == "failed"
    assert cpubench(capsys, "tasks", "show", "r")[0] == 0  # the one level that there is


def test_where_nothing_can_be_done_no_load_runs(capsys, tmp_path, root, before, monkeypatch):
    monkeypatch.setattr(runs, "levels_of", None)
    arguments = [*RUN, "--root", root, "--times", SHORT, "--cap", "100W"]
    arguments[arguments.index("T0")] = "T4"
    code, _, err = cpubench(capsys, *arguments, "--agents", "90000")
    assert (code, "none of them can be done here: 90000 agents may need" in err[-1]) == (2, True)
    assert not (tmp_path / "r").exists()


def test_a_folder_of_runs_leaves_out_no_level(capsys, tmp_path):
    (tmp_path / "all").mkdir()
    written(tmp_path / "all" / "old", true_run())
    (tmp_path / "all" / "capped").mkdir()
    written(tmp_path / "all" / "capped" / "100W", true_run() | {"seed": 7})
    code, _, err = cpubench(capsys, "validate", tmp_path / "all")
    assert (code, "capped/100W" in err[-1]) == (2, True)


def test_ratios_are_not_of_the_repeats_that_a_timeout_spared(capsys, tmp_path):
    levels(tmp_path)
    low = made_run(factors=(2.0, 2.2))
    low["tasks"][1]["repeats"][1]["failures"] = ["test.1: not done after 120 s"]
    written(tmp_path / "100W", under(low))
    (row,) = json.loads(cpubench(capsys, "tasks", "show", tmp_path, "--json")[1])["ratios"]
    why = "1 of 2 repeats failed: test.1: not done after 120 s"
    assert row["ratio"]["reason"] == why
    text = cpubench(capsys, "tasks", "show", tmp_path)[1]
    assert why in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_a_repeat_before_which_a_limit_was_changed_does_not_count(tmp_path):
    low = under(made_run())
    first = low["tasks"][1]["repeats"][0]
    first["limits"] = first["limits"] | {"before": {KEY: 350_000_000}}
    run = load_tasks(written(tmp_path / "t", sealed(low)))
    row = next(one for one in tasks_document(run)["tasks"] if one["task"] == SOLO.name)
    assert (row["failures"], row["tasks_per_hour"]["value"]) == (1, None)
    assert row["tasks_per_hour"]["reason"].startswith("1 of 3 repeats failed: a limit was changed")
    assert any("a limit was changed" in text for text in tasks_document(run)["failed"])
