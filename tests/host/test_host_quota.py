"""Control groups with a quota: where one can be made, that it holds, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from host.trees import cgroups, write
from pools import lived

from cpubench.host.quota import NAME, Group, parents, quota_group, sweep

V2 = ("/sys/fs/cgroup", "/", "cgroup2", "rw")
V1 = ("/sys/fs/cgroup/cpu", "/", "cgroup", "rw,cpu,cpuacct")
BURN = "while True: pass"


@pytest.fixture
def group() -> Iterator[Group]:
    """A group that may use half a CPU."""
    try:
        with quota_group(0.5) as made:
            yield made
    except OSError as error:
        if error.errno != 95:  # ENOTSUP
            raise
        pytest.skip(f"no quota can be set here: {error.strerror}")


def gone(pid: int) -> bool:
    end = time.monotonic() + 10
    while lived(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not lived(pid)


def test_v2_offers_the_groups_that_hand_the_cpu_controller_down(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/cgroup.subtree_control": "cpuset cpu io", "sys/fs/cgroup/a/cgroup.subtree_control": "cpu",
             "sys/fs/cgroup/a/b/cgroup.subtree_control": "memory cpuset"}  # fmt: skip
    cgroups(tmp_path, "0::/a/b", [V2], files)
    assert parents(tmp_path) == [tmp_path / "sys/fs/cgroup/a", tmp_path / "sys/fs/cgroup"]


def test_v1_offers_its_own_groups_and_a_hybrid_tree_those_of_v1_where_v2_has_no_cpu(tmp_path: Path) -> None:
    unified = ("/sys/fs/cgroup/unified", "/", "cgroup2", "rw")
    cgroups(tmp_path, "1:cpu,cpuacct:/a\n0::/a", [V1, unified], {"sys/fs/cgroup/unified/cgroup.subtree_control": ""})
    assert parents(tmp_path) == [tmp_path / "sys/fs/cgroup/cpu/a", tmp_path / "sys/fs/cgroup/cpu"]


def test_without_a_cpu_controller_the_reason_is_told(tmp_path: Path) -> None:
    cgroups(tmp_path, "0::/", [V2], {"sys/fs/cgroup/cgroup.subtree_control": "memory pids"})
    with pytest.raises(OSError, match="no control group here hands the cpu controller down"), quota_group(1, tmp_path):
        pass
    with pytest.raises(OSError, match="hands the cpu controller down"), quota_group(1, tmp_path / "none"):
        pass


def test_groups_of_makers_that_are_gone_are_swept_and_no_others(tmp_path: Path) -> None:
    cgroups(tmp_path, "1:cpu,cpuacct:/a", [V1], {"proc/77/stat": "77 (python) S"})
    folder = tmp_path / "sys/fs/cgroup/cpu/a"
    for name in (f"{NAME}66", f"{NAME}77", f"{NAME}{os.getpid()}", f"{NAME}x", "somebody"):
        (folder / name).mkdir(parents=True)
    sweep(tmp_path)
    left = [f"{NAME}{os.getpid()}", f"{NAME}77", f"{NAME}x", "somebody"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(left)
    sweep(tmp_path, own=True)
    assert sorted(path.name for path in folder.iterdir()) == sorted(left[1:])


def test_throttled_periods_are_told_or_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"a/cpu.stat": "nr_periods 9\nnr_throttled 7\nthrottled_time 1", "b/cpu.stat": "usage_usec 1"})
    assert [Group(tmp_path / name).throttled() for name in "abc"] == [7, None, None]


def test_a_process_in_the_group_is_held_to_the_quota_and_killed_with_the_group(group: Group) -> None:
    code = f"open({str(group.procs)!r}, 'w').write('0')\n{BURN}"
    with subprocess.Popen([sys.executable, "-I", "-c", code]) as process:
        end = time.monotonic() + 10
        while not group.throttled():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert str(process.pid) in group.procs.read_text().split()
        sweep(own=True)
        assert process.wait(timeout=10) == -signal.SIGKILL
    assert not group.folder.exists()


def test_what_a_killed_maker_left_is_swept(group: Group) -> None:
    maker = (
        "import os, time; from cpubench.host.quota import quota_group\n"
        "with quota_group(0.5) as made: print(made.folder, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-I", "-c", maker], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        assert left.name == f"{NAME}{process.pid}"
        sweep()
        assert left.exists()  # its maker lives
        process.kill()
    assert gone(process.pid)
    sweep()
    assert not left.exists()
    assert group.folder.exists()  # ours
