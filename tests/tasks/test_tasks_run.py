"""Whole tasks with real tools, in short settings: through the command line, and what it leaves behind."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from started import started
from tasks_run import agent_of, spec_of

from cpubench.entry import main
from cpubench.host.facts import collect, divisor
from cpubench.host.topology import read_topology
from cpubench.recheck import validated
from cpubench.results.load_tasks import load_tasks
from cpubench.tasks import bugfix, inputs, programs, toolmix
from cpubench.tasks.catalogue import DOCS, Task, chosen, fleets, solo
from cpubench.tasks.plan import PROFILES, Options, many, planned
from cpubench.tasks.steps import PHASES, Place

CLI = [sys.executable, "-I", "-m", "cpubench"]
NOWHERE = Place("/i", "/r", "/usr/bin/python3", "/cc", "/sh")


@pytest.fixture
def unlocked(monkeypatch):
    """A host where nobody else measures."""
    import contextlib

    from cpubench.tasks import run

    monkeypatch.setattr(run.place, "host_lock", contextlib.nullcontext)


def test_a_bug_is_fixed_with_every_check(generated, tmp_path):
    task = Task("T1", ("read-heavy", "light"))
    found = agent_of(task, generated, tmp_path)
    assert (found["failures"], found["leftovers"]) == ([], [])
    assert found["spans"]["step"] == list(range(len(task.steps(NOWHERE))))
    kinds = [step.kind for step in task.steps(NOWHERE)]
    forks = dict(zip(kinds, found["spans"]["forks"], strict=True))
    assert forks["test"] >= 8  # a shell, an interpreter and six shells of the tests
    assert found["environment"]["before"]["t_ns"] < found["environment"]["after"]["t_ns"]


def test_short_tools_answer_alike_as_processes_and_from_a_server(generated, tmp_path):
    """Both are held to the same pinned outputs; the server's CPU time is all told, with its answers or beside them."""
    found = agent_of(Task("T2", ("server",)), generated, tmp_path)
    assert (found["failures"], found["leftovers"]) == ([], [])
    assert found["spans"]["background"].count(True) == 2
    fresh, served = (toolmix.steps(NOWHERE, channel) for channel in toolmix.CHANNELS)
    calls = [step for step in served if step.action == "ask"]
    assert [step.label for step in calls] == [step.label for step in fresh if step.label in {c.label for c in calls}]
    assert len(calls) == 200
    assert {step.label: step.kind for step in calls}.items() <= {step.label: step.kind for step in fresh}.items()


def test_a_step_that_cannot_write_ends_the_task_as_failed(generated, tmp_path):
    """As a full disk does it: no file may grow beyond a limit."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))"
    found = agent_of(Task("T1", ("read-heavy", "light")), generated, tmp_path, limit)
    assert len(found["failures"]) == 1
    assert found["failures"][0].startswith("copy.1: ended with 1, not 0: ")
    assert len(found["spans"]["step"]) == 1


def test_a_fixed_test_that_passes_too_early_is_a_failure(generated, tmp_path):
    """The tests must fail before the fix: a project that has no bug is refused."""
    whole = tmp_path / "inputs"
    shutil.copytree(generated, whole)
    module = whole / "repo" / "ledger" / "mod_07.py"
    module.write_text(module.read_text().replace("value <= low", "value < low").replace("low + 1", "low"))
    found = agent_of(Task("T1", ("read-heavy", "light")), whole, tmp_path, pins=None)
    assert found["failures"][0].startswith("test.1: ended with 0, not 1")


def test_many_agents_work_in_a_window_from_places_of_their_own(generated, tmp_path):
    found = agent_of(fleets([2])[0], generated, tmp_path, window_ns=1_500_000_000)
    assert found["failures"] == []
    spans = found["spans"]
    assert set(spans["agent"]) == {0, 1}
    ends = [start + wall for start, wall in zip(spans["start_ns"], spans["wall_ns"], strict=True)]
    assert all(0 <= end <= 1_500_000_000 + 50_000_000 for end in ends)
    assert found["harness_us"] > 0
    assert not list((tmp_path / "scratch").glob("agent-*/work/*/nothing"))


def test_an_agent_that_cannot_come_to_its_place_ends_the_window(generated, tmp_path):
    spec = spec_of(fleets([2])[0], generated, tmp_path, window_ns=10**9, python="/nowhere/python3", seed=3)
    (tmp_path / "scratch").mkdir()
    code = (
        f"import sys, json; sys.path[:0] = {sys.path!r}\n"
        + """
from pathlib import Path
from cpubench.tasks import crew
from cpubench.tasks.catalogue import fleets
try:
    crew.work(json.loads(sys.argv[1]), fleets([2])[0], Path(sys.argv[2]))
except OSError as error:
    print(error.strerror)
"""
    )
    done = subprocess.run([sys.executable, "-I", "-c", code, json.dumps(spec), str(tmp_path / "scratch")],
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert "No such file" in done.stdout or "ended with" in done.stdout, done.stderr


def test_the_command_measures_and_prints_and_leaves_nothing(tmp_path, capsys, unlocked):
    out, trace = tmp_path / "run", tmp_path / "trace.json"
    arguments = ["tasks", "run", "--profile", "quick", "--tasks", "T0", "--repeats", "2", "--out", str(out), "--json",
                 "--seed", "5", "--trace", str(trace)]  # fmt: skip
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tasks"][0]["tasks_per_hour"]["passes"] == 2
    assert document["failed"] == []
    assert sorted(path.name for path in out.iterdir()) == ["tasks.json"]
    assert load_tasks(out).stopped == "done"
    assert len([e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]) == 40


def test_what_is_missing_is_a_row_with_its_reason(tmp_path, capsys, unlocked, monkeypatch):
    real = programs.probe

    def bare(scratch, path=programs.PATH, python=None):
        found = real(scratch, path, python)
        for name in ("cc", "venv", "sqlite3"):
            found.paths.pop(name, None)
            found.stored.pop(name, None)
            found.missing[name] = f"there is no {name} here"
        return found

    monkeypatch.setattr(programs, "probe", bare)
    assert main(["tasks", "run", "--profile", "quick", "--repeats", "1", "--out", str(tmp_path / "run"), "--json",
                 "--tasks", "T1,T1b,T2,T4,T5"]) == 0  # fmt: skip
    rows = json.loads(capsys.readouterr().out)["tasks"]
    assert {row["task"]: row["skipped"] for row in rows if row["task"][:3] in ("T1[", "T4[")} == {
        row["task"]: "there is no venv here" for row in rows if row["task"][:3] in ("T1[", "T4[")
    }
    assert [row["skipped"] for row in rows if row["task"].startswith("T2")] == ["there is no sqlite3 here"] * 2
    assert {row["skipped"] for row in rows if row["task"].startswith("T5")} == {"there is no sqlite3 here"}
    assert {row["skipped"] for row in rows if row["task"].startswith("T1b")} == {"there is no cc here"}
    assert [row["tasks_per_hour"]["reason"] for row in rows if row["task"] == "T2[server]"] == [
        "there is no sqlite3 here"
    ]


def test_a_path_without_programs_is_told(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    found = programs.probe(tmp_path, str(tmp_path / "bin"))
    assert found.missing["cc"] == "no compiler: there is no cc along the path"
    (tmp_path / "bin" / "cc").write_text("#!/bin/sh\necho 'stddef.h: no such file' >&2\nexit 1\n")
    (tmp_path / "bin" / "cc").chmod(0o755)
    assert "cannot make a shared library: stddef.h" in programs.probe(tmp_path, str(tmp_path / "bin")).missing["cc"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_scratch_and_no_process(tmp_path, number):
    out = tmp_path / "run"
    command = [*CLI, "tasks", "run", "--profile", "quick", "--tasks", "T0", "--repeats", "500", "--out", out]
    first = last = b""
    with started(command, stderr=subprocess.PIPE, start_new_session=True, stdout=subprocess.DEVNULL) as child:
        for line in child.stderr:
            first = line
            if b"T0, repeat 2" in line:
                break
        if b"another cpubench run" in first:
            pytest.skip("another run is measuring on this host")
        child.send_signal(number)
        *_, last = child.stderr.read().splitlines() or [b""]
        assert child.wait(timeout=30) == (-9 if number == signal.SIGKILL else 130)
    end = time.monotonic() + 20
    while time.monotonic() < end and [path for path in out.iterdir() if path.name != "tasks.json"]:
        time.sleep(0.05)
    assert [path.name for path in out.iterdir()] == ["tasks.json"]
    loaded = load_tasks(out)
    assert loaded.stopped == ("running" if number == signal.SIGKILL else "interrupted")
    kept = len(loaded.tasks[0].repeats)
    assert kept >= 1
    if number != signal.SIGKILL:
        assert last.decode() == f"cpubench: interrupted; {kept} repeats are kept in {out}"
    assert validated(out)["stopped"] == loaded.stopped


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--tasks", "T9"], "there is no task 'T9'"),
        (["--agents", "1,x"], "is no list of numbers"),
        (["--agents", "0"], "is no list of numbers"),
        (["--profile", "swift"], "'swift' is none of quick, standard"),
        (["--tools", "conda"], "'conda' is none of git and pip"),
        (["--window", "soon"], "is no duration"),
        (["--json", "--trace", "-"], "stdout is for its document"),
    ],
)
def test_wrong_use_is_told_before_anything_is_made(tmp_path, capsys, unlocked, arguments, text):
    assert main(["tasks", "run", "--out", str(tmp_path / "run"), *arguments]) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_each_step_has_a_known_phase_a_pin_where_it_is_fixed_and_a_label_of_its_own():
    for task in [*solo(), *fleets([3]), *many("standard", 2, None)]:
        steps, pins = task.steps(NOWHERE), inputs.outputs(task.pinned())
        labels = [step.label for step in steps]
        assert len(set(labels)) == len(labels)
        assert {step.phase for step in steps} <= set(PHASES)
        assert {step.label for step in steps if step.fixed} <= pins.keys()


@pytest.mark.parametrize(
    ("profile", "shares"),
    [("verify-heavy", {"read": 22, "search": 25, "edit": 10, "verify": 30, "test": 10.5}),
     ("read-heavy", {"read": 36, "search": 25, "edit": 15, "verify": 5, "test": 4})],
)  # fmt: skip
def test_profiles_have_the_shares_of_steps_that_traces_have(profile, shares):
    """Of 2,920 trajectories; the full tests of the second are more, since one must fail and one must pass."""
    names = {
        "search": "search",
        "read": "read",
        "edit": "edit",
        "snippet": "verify",
        "target": "verify",
        "test": "test",
    }
    kinds = [names[step.kind] for step in bugfix.steps(NOWHERE, profile, "light") if step.kind in names]
    total = len(kinds) * 100 / sum(shares.values())
    for name, share in shares.items():
        assert abs(100 * kinds.count(name) / total - share) < 6, name


def test_tasks_are_chosen_by_kind_and_by_name():
    every = [*solo(), *fleets([1, 4])]
    assert [one.name for one in chosen(every, ["T4[agents=4]", "T2"])] == [
        "T0", "T2[process]", "T2[server]", "T4[agents=4]",
    ]  # fmt: skip


def test_git_and_pip_make_variants_with_names_of_their_own(generated, tmp_path):
    task = Task("T1", ("read-heavy", "light"), ("git",))
    assert task.name == "T1[read-heavy,light,git]"
    if programs.probe(tmp_path).reason(task):
        pytest.skip("no git here")
    found = agent_of(task, generated, tmp_path)
    assert (found["failures"], found["leftovers"]) == ([], [])


@pytest.mark.parametrize("profile", PROFILES)
def test_the_tasks_of_a_profile_are_listed_with_what_is_missing_here(capsys, profile):
    assert main(["tasks", "list", "--profile", profile, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["task"] for row in document["tasks"]} == set(DOCS)
    assert main(["tasks", "list", "--profile", profile]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    assert page.startswith(f"profile {profile}, ")
    assert Path(document["programs"]["python3"]["path"]).is_file()


@pytest.mark.parametrize("profile", PROFILES)
def test_each_name_that_is_listed_is_one_that_a_run_takes_and_the_other_way_round(capsys, profile):
    facts, tasks = collect(), []
    assert main(["tasks", "list", "--profile", profile, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tasks"]
    here = divisor(facts, len(read_topology().cores))[1], (), facts["memory_bytes"]
    for row in rows:
        named = planned(Options(profile, [row["name"]]), *here)
        tasks += [one.name for one in named if one.name == row["name"]]
    assert tasks == [row["name"] for row in rows]
    usual = [one.name for one in planned(Options(profile), *here)]
    assert [row["name"] for row in rows if not row["named_only"]] == usual


def test_there_is_no_list_of_another_profile(capsys):
    assert main(["tasks", "list", "--profile", "swift"]) == 2
    assert "--profile: 'swift' is none of quick, standard" in capsys.readouterr().err


def test_a_strict_run_of_what_may_not_be_published_ends_with_3_and_says_so(tmp_path, capsys, unlocked):
    command = ["tasks", "run", "--profile", "quick", "--tasks", "T0", "--repeats", "1", "--json"]
    assert main([*command, "--strict", "--out", str(tmp_path / "a")]) == 3
    told = capsys.readouterr()
    assert json.loads(told.out)["failed"] == []
    assert told.err.splitlines()[-1].startswith("cpubench: not publishable: `cpubench score`")
    assert main([*command, "--out", str(tmp_path / "b")]) == 0
