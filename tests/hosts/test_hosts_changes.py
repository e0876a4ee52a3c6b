"""What changes while a machine is measured: its CPUs, its memory, its folders, its clocks, and who may do what."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from blocks import WORK, plan_of, run_block, variant
from hosts import short
from hosts.surroundings import after, as_nobody, control_group, joining, may_unshare
from pools import CPUS, children, lived

from cpubench.analysis.flags import Flag, block_flags
from cpubench.errors import UsageError
from cpubench.host.noise import environment, snapshot
from cpubench.measure import copies as pool
from cpubench.measure.room import tasks_needed
from cpubench.results.load import load_plan
from cpubench.results.records import Block, Environment

SHORT = [sys.executable, "-I", str(Path(short.__file__))]
needs_root = pytest.mark.skipif(not may_unshare(), reason="needs root and mount namespaces")
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU only")


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return value


@needs_root
@needs_two
def test_a_cpuset_that_shrinks_is_an_error_of_the_rows_that_lost_their_cpu(tmp_path: Path) -> None:
    """H9, and what a CPU that goes offline does to its tasks: one that is pinned there goes on elsewhere."""
    first, last = CPUS[0], CPUS[-1]
    chase = variant("mem_chase", "set=16K", ops=2_000_000)
    variants = [chase, msgspec.structs.replace(variant("mem_chase", "set=256K", ops=1_000_000), groups=[[first]]),
                variant("lock_mutex", "cs=200ns", ops=20_000)]  # fmt: skip
    plan = plan_of(variants, samples=150)
    with control_group("cpuset", cpus=f"{first},{last}", mems="0") as group:

        def shrink() -> None:
            until(lambda: [pid for pid in (group / "cgroup.procs").read_text().split() if "copy" in name_of(int(pid))])
            time.sleep(0.3)
            (group / "cpuset.cpus").write_text(str(first))

        shrinking = threading.Thread(target=shrink)
        shrinking.start()
        block = run_block(tmp_path, plan, group / "cgroup.procs")
        shrinking.join()
        (tmp_path / "block.json").unlink()
        with pytest.raises(UsageError, match=rf"copy on CPU {last}: sched_setaffinity: Invalid argument"):
            run_block(tmp_path, plan, group / "cgroup.procs")
    moved, stayed, pair = block.cells
    assert moved.error == f"mem_chase[set=16K]: copy was moved from CPU {last} to CPU {first}"
    assert pair.error == f"lock_mutex[cs=200ns]: CPU {last} is no longer online or allowed"
    assert (stayed.error, len(stayed.samples.ops)) == (None, 150)
    assert all(0 < len(cell.samples.ops) < 150 and not sum(cell.samples.moved) for cell in (moved, pair))
    assert Flag.CPUS in block_flags(plan, block)


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@needs_two
def test_a_copy_that_somebody_moves_or_sets_free_is_an_error_of_its_row(tmp_path: Path) -> None:
    """On kernels before 6.2 any write to a cpuset sets its tasks free; node agents write there every few seconds."""
    work = msgspec.to_builtins(variant(*WORK, ops=100))
    copies = pool.start({"variants": [work], "llc_bytes": None}, tmp_path, 1)
    try:
        pool.prepare(copies)
        assert pool.sample(copies, work, 100, 0, 10**10)
        (copy,) = children()
        moved = f"test_work[steps=1000]: copy was moved from CPU {CPUS[-1]} to CPU {CPUS[0]}"
        loose = f"test_work[steps=1000]: copy on CPU {CPUS[-1]} is pinned there no more"
        for cpus, errors in (({CPUS[0]}, {moved}), (set(CPUS), {loose, moved}), ({CPUS[-1]}, set())):
            copies.errors.clear()
            os.sched_setaffinity(copy, cpus)
            assert bool(pool.sample(copies, work, 100, 0, 10**10)) is not bool(errors)
            assert set(copies.errors.values()) <= errors
    finally:
        copies.pool.close()


def test_a_block_without_a_row_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no row got through; the first: test_fault\[how=fail\]: open EPERM"):
        run_block(tmp_path, plan_of([variant("test_fault", "how=fail", ops=1)]))
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@needs_root
def test_a_kernel_that_runs_out_of_memory_is_a_row_that_says_so(tmp_path: Path) -> None:
    """H12: the OOM killer takes the largest, and the limit was lowered after the plan was made."""
    plan = plan_of([variant("mem_chase", "set=256M"), variant("switch_pipe", "place=same", ops=100)])
    with control_group("memory", limit_in_bytes="120M") as group:
        if (group / "memory.memsw.limit_in_bytes").exists():
            (group / "memory.memsw.limit_in_bytes").write_text("120M")
        block = run_block(tmp_path, plan, group / "cgroup.procs")
    chase, pipe = block.cells
    assert chase.error == f"mem_chase[set=256M]: copy on CPU {CPUS[-1]} killed by SIGKILL (9)"
    assert (chase.copy_ops, chase.samples.ops) == ([0], [])
    assert (pipe.error, len(pipe.samples.ops)) == (None, 2)


@needs_root
@needs_two
def test_as_many_tasks_as_a_plan_needs_are_enough_and_fewer_are_refused(tmp_path: Path) -> None:
    """H11. Of all that a real block has at once none is at the limit, which would be rows without a number."""
    names = ["lock_mutex[cs=200ns]@cores", "lock_all[threads=1]@1", "switch_pipe[place=other]@1", "spawn_shell@cores",
             "spawn_reap[child=64M]@1"]  # fmt: skip
    command = [*SHORT, ",".join(names), "run", "--profile", "quick", "--json", "--out"]
    done = subprocess.run([*command, tmp_path / "r"], capture_output=True, text=True, check=True)
    need = tasks_needed(load_plan(tmp_path / "r/plan.json").variants)
    with control_group("pids", max=str(need + 1)) as group:  # and the command itself
        done = subprocess.run([*joining(group), *command, tmp_path / "s"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["failed"] == json.loads(done.stdout)["skipped"] == []
    with control_group("pids", max=str(need)) as group:
        done = subprocess.run([*joining(group), *command, tmp_path / "t"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"pids.max: leaves {need - 1} more processes and threads, and {need} are needed at once" in done.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_run_whose_folder_vanishes_ends_in_one_line_and_leaves_no_process(tmp_path: Path, how: str) -> None:
    out = tmp_path / "r"
    command = [*SHORT, "test_work[steps=1000]@1,file_create@1", "run", "--profile", "quick", "--out", str(out)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "SHORT_PASSES": "60"}
    ) as process:
        until(lambda: (out / "block-001-as-is.json").exists())
        pids = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        out.rename(tmp_path / "away")
        if how == "replaced":  # as below a mount point
            out.mkdir()
        else:
            shutil.rmtree(tmp_path / "away", ignore_errors=True)
        _, complaint = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "Traceback" not in complaint
    last = complaint.splitlines()[-1]
    assert last.startswith(f"cpubench: {out}: is gone (removed, renamed or unmounted), and with it ")
    until(lambda: not [pid for pid in pids if lived(pid)])
    assert list(out.glob("*")) == []


@needs_root
def test_another_users_folders_are_refused_and_left_alone() -> None:
    command = [*as_nobody(), *SHORT, "test_work[steps=1000]@1", "run", "--profile", "quick", "--out"]
    with tempfile.TemporaryDirectory(prefix="cpubench-test-") as made:  # not below a folder of root's alone
        folder, mine = Path(made), Path(made, "mine")
        mine.mkdir()
        folder.chmod(0o777)
        for arguments, text in (
            ([mine], "cannot be written: Permission denied"),
            ([mine / "r"], "cannot be made: Permission denied"),
            ([folder / "no", "--workdir", mine], "cannot be written: Permission denied"),
        ):
            words = map(str, arguments)
            done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd="/")
            assert done.returncode == 2
            assert text in done.stderr.splitlines()[-1]
            assert "Traceback" not in done.stderr
        assert [path.name for path in folder.rglob("*")] == ["mine"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a time namespace")
def test_a_machine_that_slept_flags_the_block() -> None:
    """In a time namespace whose CLOCK_BOOTTIME is 5 s ahead (time_namespaces(7)); the other clocks are ours."""
    code = "import json; from cpubench.host import noise; print(json.dumps(noise.snapshot([], 0)['suspended_ns']))"
    ahead = ["unshare", "--fork", "--time", "--boottime", "5", sys.executable, "-I", "-c", code]
    done = subprocess.run(ahead, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no time namespaces")
    now, slept_ns = snapshot([], os.getsid(0)), int(done.stdout)
    assert 4.9e9 < slept_ns - now["suspended_ns"] < 5.1e9
    plan = plan_of([variant(*WORK)])
    assert Flag.SUSPENDED not in block_flags(plan, block_of(environment(now, snapshot([], os.getsid(0)))))
    assert Flag.SUSPENDED in block_flags(plan, block_of(environment(now, now | {"suspended_ns": slept_ns})))


def block_of(around: dict[str, Any]) -> Block:
    import made

    document = made.made_run(1)["passes"][0]["blocks"][0]
    return msgspec.structs.replace(msgspec.convert(document, Block), environment=msgspec.convert(around, Environment))


def test_numpy_starts_no_thread_for_each_cpu() -> None:
    """At a limit of processes OpenBLAS floods stderr or ends in a segmentation fault (OpenBLAS#4762)."""
    code = (
        "import os; from cpubench.entry import main; main(['--version']); import numpy, scipy.linalg\n"
        "numpy.ones((99, 99)) @ numpy.ones((99, 99)); print(len(os.listdir('/proc/self/task')))"
    )
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split()[-1] == "1"


@needs_root
def test_a_file_system_that_is_unmounted_in_mid_run_takes_the_run_with_it(tmp_path: Path) -> None:
    out = tmp_path / "disk"
    out.mkdir()
    command = [*SHORT, "file_create@1", "run", "--profile", "quick", "--out", str(out / "r")]
    script = 'for i in $(seq 999); do [ -e "$0/r/block-001-as-is.json" ] && exec umount -l "$0"; sleep 0.02; done'
    mounts = (f"mount -t tmpfs none '{out}'", f"{{ sh -c '{script}' '{out}' & }}")
    done = subprocess.run(
        [*after(*mounts), *command], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "SHORT_PASSES": "60"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "is gone (removed, renamed or unmounted)" in done.stderr.splitlines()[-1]
    assert list(out.iterdir()) == []
