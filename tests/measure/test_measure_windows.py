"""Windows of real blocks beside a meter, and real runs under a cap that are ended: the limits come back."""

import json
import random
import signal
import subprocess
import sys
import time

import made
import made_watts
import msgspec
import pytest
from pools import CPUS, KERNELS, groups_of, lived, param
from power import limit_trees, live_tree

from cpubench.analysis.watts import windows_of
from cpubench.measure.child import run_child
from cpubench.results.load import load_block
from cpubench.results.records import Plan, Variant
from cpubench.results.windows import Level, Window

S = 10**9
ROWS = ("file_create", "file_tree_copy", "file_walk")  # the second has hooks


def scored_on_all_cores(kernel):
    label = next(p["label"] for p in KERNELS[kernel]["params"] if p["scored"])
    index, record = param(kernel, label)
    groups = groups_of(kernel, label)
    return Variant(
        kernel=kernel, family="file", params=label, copies="cores", scored=True, version=1, unit="u",
        flags=KERNELS[kernel]["flags"], index=index, value=record["value"], groups=groups, divisor=len(groups),
        held_bytes=record["held_bytes"], ops=1, window_ns=S // 50,
    )  # fmt: skip


def plan_with_window(length_ns=9 * S // 10):
    window = Window(family="file", settle_ns=S // 5, length_ns=length_ns)
    variants = [scored_on_all_cores(kernel) for kernel in ROWS]
    levels = [Level(name=name, state="verified", text="made") for name in ("as-is", "100W")]
    document = made.made_run(0, variants=variants, windows=[window], caps=["as-is", "100W"], cpus=max(CPUS) + 1,
                             power=made_watts.made_power(levels))  # fmt: skip
    return msgspec.convert(document["plan"], Plan)


def measured(folder, plan, cap, told):
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    out = folder / "block.json"
    arguments = [str(folder / "plan.json"), "0", cap, json.dumps(told), str(out)]
    run_child("cpubench.measure.block", arguments, folder, random.Random(1))
    return load_block(out, plan)


@pytest.fixture
def root(tmp_path):
    return live_tree.host(tmp_path / "host")


def told_of(root, meter="powercap:package"):
    asked = {"long": 350_000_000}
    limits = {"settle_ns": 5, "asked": asked, "places": {"long": live_tree.LIMIT}, "steps": {"long": 125_000}}
    return {"root": str(root), "meter": meter, "allow_estimated": False, "limits": limits}


@pytest.mark.parametrize("cap", ["as-is", "100W"])
def test_a_window_has_raw_readings_at_each_edge_and_those_with_hooks_come_last(tmp_path, root, cap):
    plan = plan_with_window()
    with live_tree.drawing(root, live_tree.FREE_W):
        block = measured(tmp_path, plan, cap, told_of(root))
    (window,) = block.windows
    assert [(cell.kernel, cell.metered) for cell in window.cells] == [
        ("file_create", True), ("file_walk", True), ("file_tree_copy", False)]  # fmt: skip
    assert all(cell.error is None and min(cell.copy_ops) > 0 for cell in window.cells)
    assert all(cell.obtained["proven"] for cell in window.cells)
    at = [reading[0][0] for reading in window.log.readings]
    assert at == sorted(at)
    assert at[0] < window.t0_ns < window.t1_ns < at[-1]
    watts = windows_of(plan, [block])
    assert watts.watts["file"][0] == pytest.approx(live_tree.FREE_W, rel=0.2)
    assert watts.metered == {"file_create@cores", "file_walk[files=400]@cores"}
    assert watts.reasons.get("file_create@cores") is None or watts.reasons["file_create@cores"].startswith("edges")
    assert (block.limits.before, block.limits.after, block.changed) == (
        {"long": 350_000_000},
        {"long": 350_000_000},
        [],
    )
    if cap == "as-is":
        assert len(block.cells) == 3
        assert block.around_windows.after.t_ns >= block.environment.after.t_ns
    else:
        assert (block.cells, block.rounds, block.times.timed_ns) == ([], [], 0)
        assert block.environment.after.t_ns - block.environment.before.t_ns >= S


def test_a_meter_that_is_gone_costs_the_watts_and_nothing_else(tmp_path, root):
    plan = plan_with_window(S // 10)
    (root / live_tree.ZONE / "energy_uj").unlink()
    (root / live_tree.LIMIT).write_text("200000000\n")
    block = measured(tmp_path, plan, "100W", told_of(root))
    (window,) = block.windows
    assert window.log.lost.startswith("meter: ")
    assert all(min(cell.copy_ops) > 0 for cell in window.cells)
    assert block.changed == [f"long: holds 200000000, not 350000000, {when} it" for when in ("before", "after")]


def test_a_block_of_a_run_without_a_meter_loads_no_backend(tmp_path):
    code = "import sys, cpubench.measure.block as b; print([m for m in sys.modules if m.startswith('cpubench.power')])"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(json.loads(done.stdout.replace("'", '"'))) == {
        "cpubench.power", "cpubench.power.channel", "cpubench.power.published", "cpubench.power.registers"}  # fmt: skip


@pytest.mark.skipif(len(CPUS) < 2, reason="one core: a group has no place")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_real_run_that_is_ended_leaves_the_limits_as_they_were(tmp_path, root, number):
    before, out = limit_trees.limits(root), tmp_path / "r"
    command = [sys.executable, "-I", "-m", "cpubench", "run", "--profile", "quick", "--families", "lock",
               "--copies", "cores", "--cap", "100W", "--cap", "as-is", "--root", str(root), "--out", str(out),
               "--budget", "20m",
               "--times", "settle=0.05,idle=0.3,uncapped=1,verify=1,total=0.8,least=0.1"]  # fmt: skip
    with (
        live_tree.drawing(root),
        subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path
        ) as process,
    ):
        until(lambda: list(out.glob("block-001-*")) and "100000000" in (root / live_tree.LIMIT).read_text(), 90)
        journal = json.loads(next((root / "run/cpubench").glob("cap-*.json")).read_text())
        assert journal["pid"] == process.pid
        process.send_signal(number)
        _, complaint = process.communicate(timeout=30)
        until(lambda: limit_trees.limits(root) == before and not list((root / "run/cpubench").glob("cap-*")), 10)
    assert process.returncode == (130 if number == signal.SIGINT else -9), complaint
    assert not lived(process.pid)
    if number == signal.SIGINT:
        assert "1 pass is kept" in complaint or "2 passes are kept" in complaint
        assert (out / "run.json").exists()


def until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
