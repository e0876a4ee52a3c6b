"""Flagged blocks are measured once more, and two sides take turns: with blocks that are made up, and with real ones."""

import json
import subprocess
import sys
from pathlib import Path

import made
import msgspec
import pytest
from pools import CPUS
from stand_ins import Children, block, cpubench

from cpubench.errors import UsageError
from cpubench.measure import child as processes
from cpubench.measure import plan as planning
from cpubench.measure.sides import settings_of
from cpubench.results.files import sealed
from cpubench.results.load import load_run
from cpubench.results.records import Plan

COMMAND = [sys.executable, "-I", "-m", "cpubench"]
RUN = ["run", "--profile", "quick", "--families", "file", "--seed", "7", "--out", "r"]
LONG = ["--budget", "20m"]  # two sides of passes of eleven seconds, as the stand-in of calibration has it
S = 10**9


def disturbed(plan, index, took_ns=5 * S):
    """A block in whose ten seconds somebody else took five of each CPU."""
    at = 100 * S * index + took_ns
    before = {"t_ns": at, "others_ns": 0}
    after = {"t_ns": at + 10 * S, "others_ns": took_ns * len(plan.cpus)}
    one = {key: value for key, value in block(plan, index).items() if key != "sha256"}
    return sealed(one | {"environment": {"before": before, "after": after, "busiest": [], "reasons": {}}})


class Disturbed(Children):
    """The first blocks of some passes are disturbed, and those that are measured again where ``still`` is set."""

    def __init__(self, indexes, still=False):
        super().__init__()
        self.indexes, self.still, self.files, self.where = indexes, still, [], []

    def __call__(self, module, arguments, workdir, rng, installed=None):
        super().__call__(module, arguments, workdir, rng, installed)
        if module.endswith(".block"):
            file, index = Path(arguments[3]), int(arguments[1])
            self.files.append(file.name)
            self.where.append((file.parent.name, index, installed))
            if index in self.indexes and ("again" not in file.name or self.still):
                plan = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Plan)
                took_ns = 4 * S if "again" in file.name else 5 * S
                file.write_text(json.dumps(disturbed(plan, index, took_ns)))


@pytest.fixture
def disturb(children, monkeypatch):
    def start(indexes, still=False):
        made_up = Disturbed(indexes, still)
        monkeypatch.setattr(processes, "run_child", made_up)
        return made_up

    return start


@pytest.mark.parametrize("still", [False, True])
def test_a_flagged_block_is_measured_again_once_and_the_second_counts(capsys, disturb, still):
    made_up = disturb({3}, still)
    code, _, err = cpubench(capsys, *RUN)
    assert code == 0
    assert made_up.files.count("block-003-as-is-again.json") == 1
    assert [name for name in made_up.files if "again" in name] == ["block-003-as-is-again.json"]
    assert "measured again: pass 4, contended" in err
    run = load_run(Path("r"))
    assert [len(one.set_aside) for one in run.passes] == [int(index == 3) for index in range(12)]
    (aside,), (counts,) = run.passes[3].set_aside, run.passes[3].blocks
    assert aside.environment.after.others_ns > 0
    assert (counts.environment.after is not None) is still
    assert cpubench(capsys, "validate", "r")[0] == 0


def test_a_host_that_is_always_disturbed_is_measured_as_it_is(capsys, disturb):
    made_up = disturb(range(100))
    assert cpubench(capsys, *RUN)[0] == 0
    again = [name for name in made_up.files if "again" in name]
    assert 1 <= len(again) <= 2
    assert len(load_run(Path("r")).passes) == 12


def test_a_block_is_not_measured_again_where_the_budget_has_no_room():
    plan = msgspec.structs.replace(msgspec.convert(made.made_run()["plan"], Plan), budget_ns=100 * S)
    assert planning.may_repeat(plan, 1, 1, 50 * S, 10 * S)
    assert not planning.may_repeat(plan, 1, 1, 95 * S, 10 * S)
    assert not planning.may_repeat(plan, 3, 4, 50 * S, 10 * S)
    assert planning.may_repeat(plan, 3, 10, 50 * S, 10 * S)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_repetition_keeps_the_block_that_it_was_for(capsys, disturb, monkeypatch, when):
    made_up = disturb({3})

    def child(module, arguments, *rest):
        if when == "before" and "again" in arguments[-1]:
            raise KeyboardInterrupt
        made_up(module, arguments, *rest)
        if "again" in arguments[-1]:
            raise KeyboardInterrupt

    monkeypatch.setattr(processes, "run_child", child)
    assert cpubench(capsys, *RUN)[0] == 130
    run = load_run(Path("r"))
    assert len(run.passes) == 4
    assert len(run.passes[3].set_aside) == (when == "after")
    first = Path("r/block-003-as-is.json").read_bytes()
    monkeypatch.setattr(processes, "run_child", made_up)
    assert cpubench(capsys, "run", "--resume", "r")[0] == 0
    assert Path("r/block-003-as-is.json").read_bytes() == first
    assert len(load_run(Path("r")).passes[3].set_aside) == (when == "after")
    assert cpubench(capsys, "validate", "r")[0] == 0


def test_a_repetition_that_fails_leaves_its_first_block_and_the_width_of_all(capsys, disturb, monkeypatch):
    made_up = disturb({11})  # the last one

    def child(module, arguments, *rest):
        if "again" in arguments[-1]:
            raise UsageError("child_failed", "no memory", "block")
        made_up(module, arguments, *rest)

    monkeypatch.setattr(processes, "run_child", child)
    assert cpubench(capsys, *RUN)[0] == 0
    run = load_run(Path("r"))
    assert (len(run.passes), run.passes[11].set_aside) == (12, [])
    assert cpubench(capsys, "validate", "r")[0] == 0


def test_a_file_that_holds_another_block_is_not_gone_on_from(capsys, disturb):
    made_up = disturb(())
    made_up.ends[5] = KeyboardInterrupt()
    assert cpubench(capsys, *RUN)[0] == 130
    Path("r/block-005-as-is.json").write_bytes(Path("r/block-000-as-is.json").read_bytes())
    made_up.ends.clear()
    code, _, err = cpubench(capsys, "run", "--resume", "r")
    assert (code, "block-005-as-is.json: holds the block of pass 0 at as-is" in err[-1]) == (2, True)
    Path("r/block-005-as-is.json").unlink()
    assert cpubench(capsys, "run", "--resume", "r")[0] == 0


def test_two_sides_take_turns_in_every_pass_with_the_same_sizes(capsys, disturb):
    made_up = disturb(())
    code, out, _ = cpubench(capsys, *RUN, *LONG, "--ab-set", "GLIBC_TUNABLES=glibc.malloc.check=0", "--json")
    assert code == 0
    runs = [load_run(Path("r", label)) for label in "ab"]
    a, b = (run.plan for run in runs)
    assert (a.side.label, b.side.label, a.side.pair) == ("a", "b", b.side.pair)
    assert (a.side.settings, b.side.settings) == ({}, {"GLIBC_TUNABLES": "glibc.malloc.check=0"})
    assert a.variants == b.variants
    assert a.id != b.id
    order = [(label, index) for label, index, _ in made_up.where]
    assert [index for _, index in order] == sorted(index for _, index in order)
    firsts = {label for label, index in order[::2]}
    assert firsts == {"a", "b"}  # in random turns
    for label, _, installed in made_up.where:
        assert bool(installed.settings) is (label == "b")
    document = json.loads(out)
    assert document["run"] == str(Path("r").resolve())
    assert document["compare"]["rows"][0]["paired"] is True
    assert cpubench(capsys, "validate", "r/a")[0] == cpubench(capsys, "validate", "r/b")[0] == 0


def test_two_sides_go_on_where_they_were_interrupted(capsys, disturb, monkeypatch):
    made_up = disturb(())
    made_up.ends[5] = KeyboardInterrupt()
    code, _, err = cpubench(capsys, *RUN, *LONG, "--ab-set", "A=1")
    assert (code, "5 passes are kept" in err[-1]) == (130, True)
    assert all(load_run(Path("r", label)).stopped.by == "interrupted" for label in "ab")
    made_up.ends.clear()
    monkeypatch.setenv("A", "1")
    code, _, err = cpubench(capsys, "run", "--resume", "r")
    assert (code, "A has that value already: both sides would be alike" in err[-1]) == (2, True)
    monkeypatch.delenv("A")
    turns = Path("r/turns.json").read_text()
    Path("r/turns.json").write_text(turns.replace('"1"', '"4"'))
    code, _, err = cpubench(capsys, "run", "--resume", "r")
    assert (code, "its settings {'A': '4'} are not those of the plan, {'A': '1'}" in err[-1]) == (2, True)
    Path("r/turns.json").write_text(turns)
    assert cpubench(capsys, "run", "--resume", "r")[0] == 0
    runs = [load_run(Path("r", label)) for label in "ab"]
    assert [len(run.passes) for run in runs] == [12, 12]
    assert made_up.where[-1][2].settings in ({}, {"A": "1"})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--ab", "nowhere"], "nowhere: is no prefix of a cpubench: it has no bin/python"),
        (["--ab", "\udcff"], "--ab: \\udcff holds bytes that are no UTF-8"),
        (["--ab", "empty"], "empty: holds no cpubench that can take turns with this one: "),
        (["--ab-set", "noequals"], "--ab-set: 'noequals' is not like NAME=VALUE"),
        (["--ab-set", "=1"], "--ab-set: '=1' is not like NAME=VALUE"),
    ],
)
def test_another_build_that_is_none_is_refused_and_nothing_is_left(capsys, children, tmp_path, arguments, text):
    (tmp_path / "empty" / "bin").mkdir(parents=True)
    python = tmp_path / "empty" / "bin" / "python"
    python.write_text("#!/bin/sh\necho no such module >&2; exit 1\n")
    python.chmod(0o755)
    code, _, err = cpubench(capsys, *RUN, *arguments)
    assert (code, text in err[-1]) == (2, True), err
    assert not Path("r").exists()


def test_another_build_with_other_work_is_refused_by_name(capsys, children, tmp_path):
    told = {"suite": 2, "cpubench": "0.0.1", "build": {}, "packages": "/nowhere", "versions": {"file_create": 77}}
    (tmp_path / "p" / "bin").mkdir(parents=True)
    python = tmp_path / "p" / "bin" / "python"
    python.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\n")
    python.chmod(0o755)
    code, _, err = cpubench(capsys, *RUN, "--ab", "p")
    assert code == 2
    assert "has version 77 of file_create, which is version" in err[-1]


def test_settings_may_hold_equals_signs_and_blanks():
    assert settings_of(["A=b=c d", "E="]) == {"A": "b=c d", "E": ""}


@pytest.mark.skipif(len(CPUS) < 2, reason="one core: a group has no place")
def test_a_real_run_of_one_build_in_two_settings_is_compared_pass_by_pass(tmp_path):
    two = ["--ab", sys.prefix, "--ab-set", "CPUBENCH_SIDE=b"]
    command = [*COMMAND, *RUN, "--families", "lock", "--budget", "25s", *two, "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)["compare"]
    row = next(row for row in document["rows"] if row["name"] == "lock_mutex[cs=200ns]")
    assert row["paired"] is True
    assert 0.7 < row["ratio"]["value"] < 1.4


def test_a_setting_that_both_sides_would_have_is_refused(monkeypatch):
    monkeypatch.setenv("SAME", "1")
    with pytest.raises(UsageError, match="SAME has that value already"):
        settings_of(["SAME=1"])
    assert settings_of(["SAME=2"]) == {"SAME": "2"}
    with pytest.raises(UsageError, match=r"B=\\udcff holds bytes that are no UTF-8"):
        settings_of(["B=\udcff"])
    with pytest.raises(UsageError, match="PYTHONHASHSEED does not reach"):
        settings_of(["PYTHONHASHSEED=1"])
