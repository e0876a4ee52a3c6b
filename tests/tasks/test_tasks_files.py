"""``tasks.json`` that somebody else made: refused in one line, or valid and printed without harm."""

import copy
import json
import os

import msgspec
import pytest
from tasks_run import SOLO, made_repeat, made_row, made_run, made_span

from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.recheck import validated
from cpubench.results.files import sealed
from cpubench.results.load_tasks import load_tasks
from cpubench.tasks import inputs
from cpubench.tasks.catalogue import Task, fleets
from cpubench.tasks.plan import PROFILES
from cpubench.tasks.steps import Place

DEEP = json.loads("[" * 600 + "]" * 600)
ESCAPE = "\x1b[2J\x7f\u202e<script>"


def steps_of(task):
    kept = ("label", "kind", "phase", "pythons", "shells")
    found = [msgspec.structs.asdict(one) if isinstance(one, msgspec.Struct) else vars(one) for one in
             task.steps(Place("", "", "", "", ""))]  # fmt: skip
    return [{name: one[name] for name in kept} for one in found]


def true_row(task, repeats, wall_ns=10**7):
    """A row of a real task: its steps one after the other, each of them with 1 ms of CPU time."""
    steps = steps_of(task)
    spans = [made_span(at, at * wall_ns, wall_ns, 900) for at in range(len(steps))]
    window = {"wall_ns": 20 * 10**9, "window_ns": 20 * 10**9} if task.task == "T4" else {}
    made = [made_repeat(spans, index, tools_us=1000 * len(steps), **window) for index in range(repeats)]
    return made_row(task, [], made) | {"steps": steps, "version": task.version, "tools": list(task.tools)}


def true_run():
    """A run of the profile quick as it could have been."""
    rows = [true_row(Task("T0"), 3), true_row(SOLO, 3), true_row(fleets([2])[0], 1)]
    return sealed(made_run(rows) | {"inputs_sha256": inputs.pinned(), "suite": "tasks-1"})


def written(folder, document):
    folder.mkdir(exist_ok=True)
    (folder / "tasks.json").write_text(json.dumps(document))
    return folder


def test_a_true_run_is_valid_and_what_is_told_of_it_is_true(tmp_path, capsys):
    folder = written(tmp_path / "t", true_run())
    found = validated(folder)
    assert found == validated(folder / "tasks.json") | {"file": str(folder / "tasks.json")}
    assert (found["tasks"], found["repeats"], found["failed"], found["stopped"]) == (3, 7, 0, "done")
    assert main(["validate", str(folder)]) == 0
    assert f"{folder}/tasks.json: valid: 3 tasks, 7 repeats, 0 of them failed\n" in capsys.readouterr().out
    killed = true_run() | {"stopped": "running"}
    killed["tasks"][1]["repeats"].pop()
    written(folder, sealed(killed))
    assert main(["validate", str(folder)]) == 0
    assert "it was killed before its end" in capsys.readouterr().out
    (folder / "tasks.json.sig").write_text("x")
    assert "the signature: give --signers FILE" in validated(folder)["unchecked"][-1]


def test_a_folder_of_runs_leaves_out_no_run_of_tasks(tmp_path):
    import made

    written(tmp_path / "b", true_run())
    made.written(tmp_path / "a", made.truthful(made.made_run(2)))
    found = validated(tmp_path)
    assert [set(one) >= {"passes"} for one in found["runs"]] == [True, False]
    written(tmp_path / "a", true_run())  # both in one folder
    assert len(validated(tmp_path / "a")["runs"]) == 2
    assert len(validated(tmp_path)["runs"]) == 3


def first(document, row=1):
    return document["tasks"][row]["repeats"][0]


CHANGES = {
    "a task of no suite": (lambda d: d["tasks"][1].update(name="T1[easy]"), "tasks[1]: 'T1[easy]' of version"),
    "another version": (lambda d: d["tasks"][1].update(version=99), "of version 99 is no task of this suite"),
    "steps in another order": (lambda d: d["tasks"][2]["steps"].reverse(), "tasks[2]: are not those of the task"),
    "a step renamed": (lambda d: d["tasks"][0]["steps"][0].update(phase="test"), "tasks[0]: are not those of the task"),
    "other inputs": (lambda d: d.update(inputs_sha256="0" * 64), "inputs_sha256: are not those of this suite"),
    "no estimate": (lambda d: d.update(estimate=False), "estimate: quick makes estimates"),
    "a repeat dropped": (lambda d: d["tasks"][1]["repeats"].pop(0), "tasks[1]: has the repeats [1, 2]"),
    "a window less": (lambda d: d["tasks"][2]["repeats"].pop(), "tasks[2]: has the repeats [] of 1"),
    "a longer window": (lambda d: first(d, 2).update(wall_ns=1), "of 20000000000 ns lasted 1"),
    "two steps at once": (lambda d: first(d)["spans"]["start_ns"].__setitem__(3, 0), "spans[3]: began before"),
    "more CPU time than the tools": (lambda d: first(d).update(tools_us=10), "CPU time, all tools together 10"),
    "a CPU that is not allowed": (lambda d: d["host"].update(cpus_allowed="0"), "CPU 1 of the plan is not allowed"),
    "another divisor": (
        lambda d: d["host"].update(cores=[[0], [1]], quota_cpus=None, virtual=False), "the host's facts say 2 physical",
    ),
    "a profile of no name": (lambda d: d.update(profile=ESCAPE), "is unknown"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_with_a_hash_that_fits_is_found(tmp_path, capsys, name):
    document = true_run()
    change, text = CHANGES[name]
    change(document)
    folder = written(tmp_path / "t", sealed(document))
    assert main(["validate", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line
    assert f"{folder}/tasks.json: " in line
    assert line.isprintable()


def test_a_change_without_one_is_found(tmp_path):
    document = true_run()
    first(document)["wall_ns"] += 1
    with pytest.raises(UsageError, match="does not match its sha256"):
        validated(written(tmp_path / "t", document))


def test_the_rules_of_another_version_are_not_checked_and_that_is_said(tmp_path):
    document = true_run() | {"cpubench": "9.9"}
    document["tasks"][1]["steps"][0]["phase"] = "another"
    assert "steps and inputs of the tasks" in validated(written(tmp_path / "t", sealed(document)))["unchecked"][-1]


HOSTILE = {
    "deep facts": (lambda d: d["host"].update(later=DEEP), "host: is nested more than 20 deep"),
    "deep programs": (lambda d: d["programs"].update(cc={"x": DEEP}), "programs: is nested more than 20 deep"),
    "a deep file system": (lambda d: d["file_system"].update(x=DEEP), "file_system: is nested more than 20 deep"),
    "a time that is none": (lambda d: d.update(created_utc=ESCAPE), "created_utc: is no time"),
    "a month too many": (lambda d: d.update(created_utc="2026-13-01T00:00:00Z"), "created_utc: is no time"),
    "no steps": (lambda d: d["tasks"][2].update(steps=[], repeats=[]), "tasks[2]: there are none"),
    "waits backwards": (lambda d: d.update(think=-1.0), "$.think"),
    "no CPU": (lambda d: d.update(cpus=[]), "cpus: must be CPUs"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("command", [["validate"], ["tasks", "show"], ["tasks", "show", "--json"]], ids=" ".join)
def test_what_cannot_be_printed_is_refused(tmp_path, capsys, name, command):
    document = true_run()
    change, text = HOSTILE[name]
    change(document)
    assert main([*command, str(written(tmp_path / "t", sealed(document)))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def texts(value):
    """Every place of a text that has no rule of its own."""
    fixed = ("schema", "sha256", "inputs_sha256", "created_utc", "stopped", "kind", "task", "name", "profile")
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, str) and key not in fixed:
            yield value, key
        elif isinstance(one, dict | list):
            yield from texts(one)


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--trace", "-"], ["--trace", "-", "--trace-format", "otel"]],
                         ids=" ".join)  # fmt: skip
def test_no_text_of_a_file_reaches_a_terminal_as_it_is(tmp_path, capsys, arguments):
    document = copy.deepcopy(true_run())
    for one in document["tasks"]:
        one["repeats"][0]["failures"] = one["repeats"][0]["leftovers"] = one["repeats"][0]["unknown"] = ["x"]
    document["notes"], document["missing"], document["programs"] = ["x"], {"cc": "x"}, {"sh": {"path": "x"}}
    for place, key in list(texts(document)):
        place[key] = ESCAPE
    for one in document["tasks"]:
        one["name"] = f"{one['name']}{ESCAPE}"
    folder = written(tmp_path / "t", sealed(document))
    assert main(["tasks", "show", str(folder), *arguments]) == 0
    told = capsys.readouterr().out
    assert not {"\x1b", "\x7f", "\u202e"} & set(told)


@pytest.mark.parametrize("name", ["tasks.json", "t"])
def test_pipes_devices_loops_and_odd_paths_are_refused(tmp_path, name):
    folder = tmp_path / "t"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    for target in ("pipe", "/dev/zero", ".", "tasks.json", "/nowhere"):
        (folder / "tasks.json").symlink_to(target)
        with pytest.raises(UsageError, match=r"tasks.json: (is no regular|there is no such|Too many levels)"):
            load_tasks(folder if name == "t" else folder / name)
        (folder / "tasks.json").unlink()
    for path in ("a\0b", "x" * 300):
        with pytest.raises(UsageError, match=r"cannot be read|embedded null"):
            load_tasks(type(tmp_path)(path))


def test_a_file_larger_than_this_machine_is_refused(tmp_path):
    with (tmp_path / "tasks.json").open("wb") as out:
        out.truncate(10 << 30)
    with pytest.raises(UsageError, match="10737418240 bytes; at most"):
        load_tasks(tmp_path)


def test_what_wants_a_run_of_kernels_says_what_this_is(tmp_path, capsys):
    folder = written(tmp_path / "t", true_run())
    assert main(["compare", str(folder), str(folder)]) == 2
    assert "holds a run of tasks, which `cpubench tasks show` tells of" in capsys.readouterr().err
    assert PROFILES["quick"].estimate
