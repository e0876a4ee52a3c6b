"""Runs under caps on a host of files: which limits stand while a block runs, and that all of them are given back.

Blocks are made up, sessions of caps and meters are the real ones."""

import json
from pathlib import Path

import made
import made_watts
import msgspec
import pytest
from power import limit_trees, live_tree
from stand_ins import TIMES, Children, cpubench

from cpubench.errors import UsageError
from cpubench.measure import child as processes
from cpubench.results.files import sealed
from cpubench.results.load import load_run
from cpubench.results.orders import level_order, orders
from cpubench.results.records import Plan

SHORT = "settle=0.02,idle=0.3,uncapped=1,verify=1,total=0.4,least=0.05"
RUN = [
    "run",
    "--profile",
    "quick",
    "--families",
    "file",
    "--seed",
    "7",
    "--out",
    "r",
    "--budget",
    "30m",
    "--times",
    SHORT,
]


class Blocks(Children):
    """Makes blocks up, and notes which limit stood in the tree of ``root`` at that moment."""

    def __init__(self, root):
        super().__init__()
        self.root, self.seen, self.told, self.during = root, [], [], {}

    def __call__(self, module, arguments, workdir, rng, installed=None):
        if not module.endswith(".block"):
            return super().__call__(module, arguments, workdir, rng, installed)
        plan = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Plan)
        index, cap, told = int(arguments[1]), arguments[2], json.loads(arguments[3])
        self.seen.append((index, cap, int((self.root / live_tree.LIMIT).read_text()) // 10**6))
        self.told.append(told)
        self.during.get((index, cap), lambda: None)()
        Path(arguments[-1]).write_text(json.dumps(block(plan, index, cap, told)))
        return None


def block(plan, index, cap, told):
    free = cap == "as-is"
    cells = [made.made_cell(variant, plan.samples, 1.0) for variant in plan.variants] if free else []
    windows = [made_watts.made_window(w.family, plan.variants, 10**12, 100.0, 1.0) for w in plan.windows]
    if not told["meter"]:
        for window in windows:
            del window["log"]
    limits = told["limits"]
    rest = {}
    if limits is not None:
        asked, steps = limits["asked"], {key: limits["steps"][key] for key in limits["asked"]}
        rest["limits"] = {
            "settle_ns": limits["settle_ns"],
            "asked": asked,
            "steps": steps,
            "before": asked,
            "after": asked,
        }
    return sealed({
        "schema": "cpubench.block/1", "plan_id": plan.id, "index": index, "cap": cap, "environment": {},
        "windows": windows, "times": TIMES | {"timed_ns": made.made_times(cells)["timed_ns"]}, "cells": cells,
        "rounds": orders(msgspec.to_builtins(plan), index, cap) if free else [], **rest,
    })  # fmt: skip


@pytest.fixture
def root(tmp_path):
    return live_tree.host(tmp_path / "host")


@pytest.fixture
def blocks(children, monkeypatch, root):
    made_up = Blocks(root)
    monkeypatch.setattr(processes, "run_child", made_up)
    return made_up


@pytest.fixture
def before(root):
    return limit_trees.limits(root)


def capped(capsys, root, *arguments):
    return cpubench(capsys, *RUN, "--root", root, *arguments)


def test_each_block_runs_at_its_level_and_all_is_given_back(capsys, blocks, root, before):
    with live_tree.drawing(root):
        code, out, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--cap", "80%", "--json")
    assert code == 0, err
    assert limit_trees.limits(root) == before
    assert not list((root / "run/cpubench").glob("cap-*"))
    run = load_run(Path("r"))
    third = run.plan.power.levels[2]
    assert {cap: watts for _, cap, watts in blocks.seen} == {"100W": 100, "as-is": 350, "80%": third.value // 10**6}
    assert third.watts == pytest.approx(0.8 * third.uncapped_w, rel=0.01)
    assert third.uncapped_w == pytest.approx(live_tree.FREE_W, rel=0.1)
    assert [level.name for level in run.plan.power.levels] == ["100W", "as-is", "80%"]
    # The load is as fast as without, unless others disturb it just then: nothing slows it down here.
    assert {level.state for level in run.plan.power.levels} <= {"set_unverified", "verified", "as_found"}
    assert run.plan.power.levels[0].drawn_w == pytest.approx(97, rel=0.1)
    assert len(run.passes) >= 8
    assert all(len(one.blocks) == 3 for one in run.passes)
    assert [b.cap for one in run.passes for b in one.blocks] == [cap for _, cap, _ in blocks.seen]
    assert all(b.limits.asked["intel-rapl/package-0/long_term"] == 100_000_000
               for one in run.passes for b in one.blocks if b.cap == "100W")  # fmt: skip
    assert err[1].startswith("levels 100W, as-is, 80%: 0:0")
    assert cpubench(capsys, "validate", "r")[0] == 0
    document = json.loads(cpubench(capsys, "score", "r", "--json")[1])
    assert document["power"]["idle"]["before_watts"] == pytest.approx(live_tree.IDLE_W, rel=0.2)
    assert [row["level"] for row in document["power"]["levels"]] == ["100W", "as-is", "80%"]
    code, out, _ = cpubench(capsys, "score", "r")
    assert max(map(len, out.splitlines())) <= 80
    assert "powercap:package: watts of package, measured" in " ".join(out.split())


def test_watts_that_come_later_judge_no_cap(capsys, blocks, root, before):
    code, _, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--meter", "csv")
    assert code == 0, err
    assert any("watts are to be merged" in line for line in err)
    assert limit_trees.limits(root) == before
    run = load_run(Path("r"))
    assert {told["meter"] for told in blocks.told} == {"csv"}
    assert [level.state for level in run.plan.power.levels] == ["set_unverified", "as_found"]
    for log in (run.plan.power.idle, run.idle_after):
        assert (log.meter, log.readings, len(log.clock)) == ("csv", [], 2)
        assert 0.3 <= (log.clock[1][1] - log.clock[0][1]) / 1e9 < 60


def test_without_a_meter_a_cap_is_set_and_not_shown_to_hold(capsys, blocks, root, before):
    (root / live_tree.ZONE / "energy_uj").unlink()
    code, _, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is")
    assert code == 0, err
    assert err[0].startswith("warning: no meter: ")
    run = load_run(Path("r"))
    assert (run.plan.power.meter, run.plan.power.levels[0].state) == ("", "set_unverified")
    assert all(told["meter"] == "" for told in blocks.told)
    assert limit_trees.limits(root) == before
    assert cpubench(capsys, "validate", "r")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cap", "70%", "--meter", "none"], "per cent need a meter"),
        (["--cap", "400W"], "above the maximum of 350 W"),
        (["--cap", "20W"], "below the idle power"),
        (["--cap", "100W", "--meter", "hsmp"], "--meter hsmp: "),
        (["--meter", "cmd:true"], "--meter"),
        (["--cap", "100W", "--ab-set", "A=1"], "two sides are compared without caps and meters so far"),
        (["--cap", "100W", "--copies", "1"], "rates under a cap are of scored variants on all cores"),
        (["--cap", "100W", "--budget", "20s"], "cannot hold 8 passes"),
        (["--cap", "proxy:freq=2GHz"], "no cap can be set"),
    ],
)
def test_what_cannot_be_capped_is_refused_before_anything_is_measured(capsys, blocks, root, before, arguments, text):
    with live_tree.drawing(root):
        code, _, err = capped(capsys, root, *arguments)
    assert (code, text in err[-1]) == (2, True), err
    assert limit_trees.limits(root) == before
    assert blocks.seen == []
    assert not Path("r").exists()


def test_per_cent_where_no_meter_is_found_is_refused(capsys, blocks, root, before):
    (root / live_tree.ZONE / "energy_uj").unlink()
    code, _, err = capped(capsys, root, "--cap", "70%")
    assert (code, "70% needs a meter of the cap's own scope" in err[-1]) == (2, True), err
    assert limit_trees.limits(root) == before


def test_a_register_that_ignores_a_cap_is_refused_by_the_state(capsys, blocks, root, monkeypatch):
    from cpubench.power import registers

    monkeypatch.setattr(registers.Host, "__init__", made_host(lambda path, text: None))
    code, _, err = capped(capsys, root, "--cap", "100W", "--meter", "none")
    assert (code, "--cap 100W: the write was taken, and the register still holds its old value" in err[-1]) == (2, True)
    assert not Path("r").exists()


def made_host(write):
    """The constructor of a host whose registers are written so."""

    def init(self, root=Path("/"), write_=None, ioctl=None):
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "write", write)
        object.__setattr__(self, "ioctl", ioctl)

    return init


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), UsageError("child_failed", "no memory", "block")])
def test_whatever_ends_a_run_gives_the_limits_back_and_keeps_whole_passes(capsys, blocks, root, before, fault, turn):
    def fail():
        raise fault

    blocks.during = {(3, level_order(7, ["100W", "as-is"], 3)[turn]): fail}
    code, _, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--meter", "none")
    assert code == (130 if isinstance(fault, KeyboardInterrupt) else 2)
    assert "3 passes are kept" in err[-1]
    assert limit_trees.limits(root) == before
    run = load_run(Path("r"))
    assert [len(one.blocks) for one in run.passes] == [2, 2, 2] + [1] * turn
    assert cpubench(capsys, "validate", "r")[0] == 0
    files = {path.name: path.read_bytes() for path in Path("r").glob("block-*.json")}
    blocks.during = {}
    code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root)
    assert code == 0, err
    assert {name: Path("r", name).read_bytes() for name in files} == files
    assert len(load_run(Path("r")).passes) >= 8
    assert limit_trees.limits(root) == before
    assert cpubench(capsys, "validate", "r")[0] == 0


def test_a_limit_that_somebody_else_changes_ends_the_run_and_is_left_alone(capsys, blocks, root, before):
    def meddle():
        (root / live_tree.LIMIT).write_text("123000000\n")

    blocks.during = {(2, "100W"): meddle}
    code, _, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--meter", "none")
    assert code == 70
    assert "holds 123000000, which is neither ours" in err[-1]
    assert f"2 passes are kept in {Path('r').resolve()}" in err[-1]
    assert (root / live_tree.LIMIT).read_text() == "123000000\n"
    assert not Path("r/block-002-100W.json").exists()  # it does not count, and no resume may find it
    assert cpubench(capsys, "validate", "r")[0] == 0
    code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root)
    assert (code, "`cpubench power restore`" in err[-1]) == (2, True)
    assert cpubench(capsys, "power", "restore", "--accept", "--root", root)[0] == 0
    assert load_run(Path("r")).stopped.by == "failed"


def test_a_limit_of_as_is_that_changes_ends_the_run_too(capsys, blocks, root):
    blocks.during = {(1, "as-is"): lambda: (root / live_tree.LIMIT).write_text("300000000\n")}
    code, _, err = capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--meter", "none")
    assert (code, "something else changed a limit" in err[-1]) == (2, True)
    assert "holds 300000000, not 350000000" in err[-1]
    assert (root / live_tree.LIMIT).read_text() == "300000000\n"
    assert not Path("r/block-001-as-is.json").exists()


@pytest.mark.parametrize("arguments", [[], ["--cap", "100W", "--meter", "none"]])
def test_limits_that_were_left_behind_are_found_at_every_start(capsys, children, blocks, root, arguments):
    assert cpubench(capsys, "power", "set", "--watts", "200", "--root", root)[0] == 0
    code, _, err = capped(capsys, root, *arguments)
    assert (code, "limits set by `cpubench power set` are in force" in err[-1]) == (2, True)
    assert not Path("r").exists()
    assert cpubench(capsys, "power", "restore", "--root", root)[0] == 0


def test_a_cap_of_somebody_else_is_a_level_that_is_not_written(capsys, blocks, root, before):
    with live_tree.drawing(root):
        code, _, err = capped(capsys, root, "--cap-external", "160W:package", "--meter", "powercap")
    assert code == 0, err
    run = load_run(Path("r"))
    assert run.plan.caps == ["external=160W:package"]
    (level,) = run.plan.power.levels
    assert (level.state, level.watts, level.value, level.scope) == ("external_claim", 160, None, "package")
    assert (level.evidence, level.uncapped_w) == (["no_uncapped"], None)  # 150 W, which it draws without a cap too
    assert {watts for _, _, watts in blocks.seen} == {350}
    assert all(told["limits"] is None for told in blocks.told)
    assert cpubench(capsys, "validate", "r")[0] == 0


def test_a_cap_at_the_wall_is_not_judged_by_a_package_and_no_load_runs(capsys, blocks, root):
    """It would take ten minutes."""
    times = SHORT.replace("verify=1", "verify=600")
    with live_tree.drawing(root):
        code, _, err = capped(capsys, root, "--cap-external", "60W", "--meter", "powercap", "--times", times)
    assert code == 0, err
    run = load_run(Path("r"))
    (level,) = run.plan.power.levels
    assert (level.name, level.state, level.scope) == ("external=60W:wall", "external_claim", "wall")
    assert level.text.endswith("it limits wall, the meter reads package")
    document = json.loads(cpubench(capsys, "score", "r", "--json")[1])
    (row,) = document["power"]["levels"]
    assert (row["state"], row["over_cap_passes"]) == ("external_claim", 0)  # its windows draw 100 W of the package


def test_caps_of_another_boot_are_not_gone_on_with(capsys, blocks, root, before):
    blocks.during = {(3, "100W"): lambda: (_ for _ in ()).throw(KeyboardInterrupt())}
    assert capped(capsys, root, "--cap", "100W", "--cap", "as-is", "--meter", "none")[0] == 130
    assert load_run(Path("r")).plan.power.boot_id == limit_trees.BOOT
    files = {path: path.read_bytes() for path in Path("r").iterdir()}
    (root / "proc/sys/kernel/random/boot_id").write_text(limit_trees.BOOT.replace("1", "9"))
    code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root)
    text = "plan.power.boot_id: the host has booted since the caps were shown to hold: start anew"
    assert (code, text in err[-1]) == (2, True), err
    assert {path: path.read_bytes() for path in Path("r").iterdir()} == files
    assert limit_trees.limits(root) == before


def interrupted(capsys, blocks, root, caps, *arguments):
    """The files of a run that ended in its fourth pass."""
    blocks.during = {(3, level): lambda: (_ for _ in ()).throw(KeyboardInterrupt()) for level in caps}
    levels = [part for level in caps for part in ("--cap", level)]
    with live_tree.drawing(root):
        assert capped(capsys, root, *levels, *arguments)[0] == 130
    blocks.during = {}
    return {path: path.read_bytes() for path in Path("r").iterdir()}


@pytest.mark.parametrize("number", [0, 1])
def test_a_run_goes_on_only_at_the_limits_that_it_found(capsys, blocks, root, before, number):
    """A BMC lowers a limit meanwhile: blocks without a cap would be of two hosts."""
    files = interrupted(capsys, blocks, root, ["100W", "as-is"], "--meter", "none")
    lower = root / live_tree.ZONE / f"constraint_{number}_power_limit_uw"
    old = lower.read_text()
    lower.write_text("250000000\n")
    during = limit_trees.limits(root)
    code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root)
    name = ("long_term", "short_term")[number]
    text = f"limits are not as the run found them: intel-rapl/package-0/{name}: {old.strip()} then, 250000000 now"
    assert (code, text in err[-1]) == (2, True), err
    assert {path: path.read_bytes() for path in Path("r").iterdir()} == files
    assert limit_trees.limits(root) == during
    lower.write_text(old)
    assert cpubench(capsys, "run", "--resume", "r", "--root", root)[0] == 0
    assert cpubench(capsys, "validate", "r")[0] == 0
    assert limit_trees.limits(root) == before


def test_no_cap_of_a_run_that_goes_on_raises_a_limit_that_is_in_force(capsys, blocks, root):
    """80 % is 120 W in the plan; what it would be now is not asked."""
    interrupted(capsys, blocks, root, ["80%", "90W"])
    for number in (0, 1):
        (root / live_tree.ZONE / f"constraint_{number}_power_limit_uw").write_text("110000000\n")
    during, seen = limit_trees.limits(root), len(blocks.seen)
    with live_tree.drawing(root):
        code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root)
    assert (code, "above the limit of 110000000 that is in force now: start anew" in err[-1]) == (2, True), err
    assert all(watts == 90 for _, _, watts in blocks.seen[seen:])
    assert limit_trees.limits(root) == during


def test_a_run_with_a_meter_alone_has_windows_and_no_limits(capsys, blocks, root, before):
    with live_tree.drawing(root):
        code, _, err = capped(capsys, root, "--meter", "auto")
    assert code == 0, err
    run = load_run(Path("r"))
    assert (run.plan.caps, run.plan.min_passes, run.plan.power.cap_scope) == (["as-is"], 12, "")
    assert [window.family for window in run.plan.windows] == ["file"]
    assert all(told["limits"] is None and told["meter"] == "powercap:package" for told in blocks.told)
    assert limit_trees.limits(root) == before


def test_a_command_is_not_in_the_files_and_has_to_be_given_again(capsys, blocks, root):
    command = "cmd:while sleep 0.1; do echo $(date +%s.%N) 55; done # secret"
    blocks.ends = {}
    blocks.during = {(3, "as-is"): lambda: (_ for _ in ()).throw(KeyboardInterrupt())}
    assert capped(capsys, root, "--meter", command)[0] == 130
    assert not [path for path in Path("r").iterdir() if b"secret" in path.read_bytes()]
    run = load_run(Path("r"))
    assert (run.plan.power.meter, run.plan.power.scope) == ("cmd", "wall")
    code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root)
    assert (code, "give the meter of this run again: --meter cmd:.." in err[-1]) == (2, True)
    code, _, err = cpubench(capsys, "run", "--resume", "r", "--root", root, "--meter", "powercap")
    assert (code, "this run reads cmd, not powercap" in err[-1]) == (2, True)
    blocks.during = {}
    assert cpubench(capsys, "run", "--resume", "r", "--root", root, "--meter", command)[0] == 0


def test_a_run_without_meter_and_caps_has_the_keys_that_it_had(capsys, children):
    """Files of before there were watts must be as they were, and the arguments of a block too."""
    seen = []

    def noting(module, arguments, *rest):
        seen.append(len(arguments))
        children(module, arguments, *rest)

    processes.run_child, kept = noting, processes.run_child
    try:
        assert cpubench(capsys, "run", "--profile", "quick", "--families", "file", "--seed", "7", "--out", "r")[0] == 0
    finally:
        processes.run_child = kept
    assert set(seen) == {2, 4}
    plan = json.loads(Path("r/plan.json").read_text())
    assert sorted(plan) == [
        "budget_ns", "build", "caps", "cpubench", "cpus", "created_utc", "divisor", "floor_ps", "host_id", "id",
        "llc_bytes", "machine", "max_passes", "min_passes", "predicted_pass_ns", "profile", "sample_ns", "samples",
        "schema", "seed", "side", "skipped", "suite", "target_ppm", "variants", "windows",
    ]  # fmt: skip
    assert (plan["caps"], plan["windows"], plan["budget_ns"]) == (["as-is"], [], 110 * 10**9)
    run = json.loads(Path("r/run.json").read_text())
    assert sorted(run) == ["host", "imported", "notes", "passes", "plan", "schema", "sha256", "stopped"]
    assert sorted(run["passes"][0]["blocks"][0]) == [
        "cap", "cells", "environment", "index", "plan_id", "rounds", "schema", "sha256", "times", "windows",
    ]  # fmt: skip
