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
from cpubench.entry import main
from cpubench.results.files import sealed
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


def folders(tmp_path, name, factors=None, times=(1.0, 1.1, 0.9), **tasks_other):
    kernels = written(tmp_path / f"{name}-kernels", made_kernels(8, variants=variants(), factors=factors))
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
    assert (found["paths"], found["reason"]) == (None, "no repeat that counts")


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
