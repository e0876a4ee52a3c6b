"""How runs begin and end, with blocks that are made up: what is kept, what is said, and what is removed."""

import json
import os
import time
from pathlib import Path

import made
import msgspec
import pytest
from stand_ins import cpubench

from cpubench import finish
from cpubench.analysis.reference import load_reference, make_reference
from cpubench.analysis.score import score
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.host.facts import collect
from cpubench.measure import child as processes
from cpubench.measure import draft, runner
from cpubench.measure import passes as passing
from cpubench.results import load
from cpubench.results.files import sealed
from cpubench.results.load import load_run

RUN = ["run", "--profile", "quick", "--families", "file", "--seed", "7"]
ENDS = [
    (KeyboardInterrupt(), 130, "interrupted", "cpubench: interrupted; "),
    (UsageError("child_failed", "no memory", "block"), 2, "failed", "cpubench: block: no memory; "),
]


@pytest.mark.parametrize(("end", "code", "by", "line"), ENDS)
@pytest.mark.parametrize("passes", [1, 9])
def test_a_run_that_ends_early_keeps_its_passes_and_says_how_to_go_on(capsys, children, end, code, by, line, passes):
    children.ends[passes] = end
    got, out, err = cpubench(capsys, *RUN, "--out", "a b", "--json")
    folder = Path("a b").resolve()
    kept = "1 pass is kept" if passes == 1 else "9 passes are kept"
    assert got == code
    assert err[-1] == f"{line}{kept}; go on with `cpubench run --resume '{folder}'`"
    assert json.loads(out)["error"]["text"] in err[-1]
    assert err[-2] == f"{passes} passes, {'interrupted' if code == 130 else 'given up'}"
    assert children.started.count(passes) == (1 if code == 130 else passing.GIVE_UP)
    run = load_run(folder)
    assert (run.stopped.by, run.stopped.passes) == (by, passes)
    exported = json.loads((folder / "pytest-benchmark.json").read_text())["benchmarks"]
    assert len(exported) == len(run.plan.variants) - 2  # without the control kernel
    assert cpubench(capsys, "validate", folder)[0] == 0

    del children.ends[passes]
    got, out, _ = cpubench(capsys, "run", "--resume", folder, "--json")
    assert (got, json.loads(out)["stopped"]["by"]) == (0, "target")


@pytest.mark.parametrize("passes", [1, 2])
def test_a_block_that_was_written_when_the_interrupt_came_is_a_pass(capsys, children, monkeypatch, passes):
    """A block's process lives on for a moment after its file is there."""

    def child(module, arguments, *rest):
        children(module, arguments, *rest)
        if arguments[1] == str(passes - 1):
            raise KeyboardInterrupt

    monkeypatch.setattr(processes, "run_child", child)
    code, _, err = cpubench(capsys, *RUN, "--out", "r")
    assert code == 130
    assert f"{passes} pass" in err[-1]
    assert load.validate(Path("r"))["passes"] == passes


@pytest.mark.parametrize(("end", "code", "by", "line"), ENDS)
@pytest.mark.parametrize("when", [-1, 0])
def test_of_a_run_without_a_pass_nothing_is_left(capsys, tmp_path, children, end, code, by, line, when):
    children.ends[when] = end
    (tmp_path / "there").mkdir()
    for out in (["--out", "not/there"], ["--out", "there"], []):
        got, _, err = cpubench(capsys, *RUN, *out)
        assert got == code
        assert err[-1].startswith(line.removesuffix("; "))
        assert err[-1].endswith("; nothing was measured") or (code, when) == (2, -1)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_what_was_given_up_is_not_publishable():
    whole = msgspec.convert(made.made_run(), load.Run)
    reference = make_reference(whole, "made")
    document = made.made_run()
    assert score(whole, reference)["publishable"]
    for by, publishable in (("failed", False), ("interrupted", True), ("budget", True)):
        stopped = msgspec.convert(document | {"stopped": document["stopped"] | {"by": by}}, load.Run)
        scored = score(stopped, reference)
        assert scored["publishable"] is publishable
        assert ("given_up" in {note["code"] for note in scored["notes"]}) is not publishable


def test_a_full_disk_at_the_run_file_is_said_with_the_way_on(capsys, children, monkeypatch):
    def full(state, side, by):
        raise UsageError("write", "cannot be written: No space left on device", "run.json")

    monkeypatch.setattr(passing, "write_run", full)
    code, _, err = cpubench(capsys, *RUN, "--out", "r")
    assert code == 2
    assert err[-1].startswith("cpubench: run.json: cannot be written: No space left on device; 12 passes are kept; go")


@pytest.mark.parametrize("at", ["load_run", "to_pytest_benchmark", "write_json", "load_reference", "score"])
@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        (UsageError("version", "is another", "x"), 2, "cpubench: x: is another; the run is kept in {}"),
        (KeyboardInterrupt(), 130, "cpubench: interrupted; the finished run is kept in {}"),
        (ValueError("our fault"), None, "cpubench: the run is kept in {}"),
    ],
)
def test_whatever_goes_wrong_after_measuring_names_the_kept_run(capsys, children, monkeypatch, at, fault, code, line):
    def wrong(*_):
        raise fault

    monkeypatch.setattr(finish, at, wrong)
    if code is None:
        with pytest.raises(ValueError, match="our fault"):
            main([*RUN, "--out", "r", "--json"])
    else:
        assert main([*RUN, "--out", "r", "--json"]) == code
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == line.format(Path("r").resolve())
    if code is not None:
        assert json.loads(told.out)["error"]["text"] in told.err.splitlines()[-1]
    assert load_run(Path("r")).stopped.by == "target"


@pytest.mark.parametrize("change", ["suite", "version", "missing"])
def test_a_reference_that_does_not_fit_is_told_before_measuring(capsys, children, monkeypatch, change):
    def other():
        shipped = load_reference()
        if change == "missing":
            raise UsageError("unreadable", "cannot be read", "reference.json")
        if change == "suite":
            return shipped | {"suite": shipped["suite"] + 1}
        row = shipped["variants"]["file_create"]
        return shipped | {"variants": shipped["variants"] | {"file_create": row | {"version": row["version"] + 1}}}

    monkeypatch.setattr(runner, "load_reference", other)
    code, _, err = cpubench(capsys, *RUN, "--out", "r")  # whose score uses the shipped one all the same
    assert code == 0
    assert err[0].startswith("warning: this run will have no score by itself: reference")
    assert err[1].startswith("calibrating")
    monkeypatch.undo()
    assert load_run(children.workdirs[0]).stopped.by == "target"


def test_a_reference_that_fits_is_not_spoken_of_and_the_run_file_is_parsed_once(capsys, children, monkeypatch):
    read, names = load.read, []
    monkeypatch.setattr(load, "read", lambda path: names.append(path.name) or read(path))
    monkeypatch.setattr(finish, "can_report", lambda: False)  # a report is of files, which it reads itself
    code, _, err = cpubench(capsys, *RUN, "--out", "r")
    assert (code, err[0].startswith("calibrating")) == (0, True)
    assert names.count("run.json") == 1


def test_scratch_folders_lie_in_the_real_workdir_whatever_the_working_folder(capsys, tmp_path, children):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    children.ends[3] = KeyboardInterrupt()
    assert cpubench(capsys, *RUN, "--out", "r", "--workdir", "link")[0] == 130
    assert set(children.workdirs) == {tmp_path / "real"}
    children.ends.clear()
    children.workdirs.clear()
    assert cpubench(capsys, "run", "--resume", "r", "--workdir", "./link")[0] == 0
    assert set(children.workdirs) == {tmp_path / "real"}


def test_a_resumed_run_expects_what_its_blocks_took(children):
    told = {}

    def tell(event, state):
        told.setdefault(event, (state.pass_ns, state.spent_ns))

    options = draft.Options("quick", families=["file"], out=Path("r"))
    children.ends[2] = KeyboardInterrupt()
    with pytest.raises(UsageError, match="2 passes are kept"):
        runner.run(options, tell)
    assert told["planned"][0] > 10**10  # what calibration predicted
    told.clear()
    children.ends.clear()
    runner.resume(Path("r"), tell)
    assert told["planned"][0] == 3 * 10**9
    assert 6 * 10**9 <= told["planned"][1] < 7 * 10**9


def test_cpus_that_are_not_allowed_are_named_before_anything_is_read_of_them(capsys, children, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a topology was read")

    monkeypatch.setattr(draft, "read_topology", never)
    allowed = sorted(os.sched_getaffinity(0))
    listed = ",".join(map(str, allowed))
    began = time.monotonic()
    code, _, err = cpubench(capsys, *RUN, "--cpus", f"{listed},100001-1000000")
    assert time.monotonic() - began < 3
    assert (code, len(err)) == (2, 1)
    assert "--cpus: 900000 CPUs are not allowed here (100001, 100002, 100003, 100004, ..); allowed: " in err[0]
    assert "--cpus: 2 CPUs are not allowed here (100001, 100002);" in cpubench(
        capsys, *RUN, "--cpus", "100001,100002")[2][0]  # fmt: skip
    assert "--cpus: CPU 100001 is not allowed here;" in cpubench(capsys, *RUN, "--cpus", "100001")[2][0]


def test_a_run_goes_on_only_on_the_machine_as_it_was(capsys, children, monkeypatch):
    children.ends[3] = KeyboardInterrupt()
    assert cpubench(capsys, *RUN, "--out", "r")[0] == 130
    del children.ends[3]
    facts = collect()
    changed = facts | {"kernel": "7.7.7", "mitigations": {"spectre_v2": "Vulnerable"}}
    monkeypatch.setattr(runner, "collect", lambda: changed)
    code, _, err = cpubench(capsys, "run", "--resume", "r")
    assert code == 2
    assert "this host is not as it was when the run began (kernel, mitigations): start anew" in err[-1]
    monkeypatch.setattr(runner, "collect", lambda: facts)
    assert cpubench(capsys, "run", "--resume", "r")[0] == 0
    document = json.loads(Path("r/run.json").read_text())
    Path("r/run.json").write_text(json.dumps(sealed(document | {"host": document["host"] | {"kernel": "7.7.7"}})))
    code, _, err = cpubench(capsys, "validate", "r/run.json")
    assert (code, "host.kernel: is not that of the plan: kernel" in err[-1]) == (2, True)


def test_an_interrupt_while_the_run_file_is_written_keeps_it(capsys, children, monkeypatch):
    real, calls = passing.sealed, []

    def cut(document):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(document)

    monkeypatch.setattr(passing, "sealed", cut)
    assert cpubench(capsys, *RUN, "--out", "r")[0] == 130
    assert load_run(Path("r")).stopped.passes == len(load_run(Path("r")).passes) > 0
