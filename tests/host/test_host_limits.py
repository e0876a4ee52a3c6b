from __future__ import annotations

from pathlib import Path

import pytest
from host import trees

from cpubench.host.limits import cgroup_memory_bytes, cpu_quota, total_memory_bytes, usable_memory_bytes

V2 = ("/sys/fs/cgroup", "/", "cgroup2", "rw,nsdelegate")
V1_CPU = ("/sys/fs/cgroup/cpu,cpuacct", "/", "cgroup", "rw,cpu,cpuacct")
V1_MEMORY = ("/sys/fs/cgroup/memory", "/", "cgroup", "rw,memory")
CPU1, MEM1, ALL = "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory", "sys/fs/cgroup"


def v1_quota(folder: str, quota_us: int, period_us: int = 100_000) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": str(quota_us), f"{folder}/cpu.cfs_period_us": str(period_us)}


def test_v2_quota_of_half_a_cpu_in_a_parent_group(tmp_path: Path) -> None:
    files = {
        f"{ALL}/a/b/c/cpu.max": "max 100000",
        f"{ALL}/a/b/cpu.max": "50000 100000",
        f"{ALL}/a/cpu.max": "200000 100000",
    }
    trees.cgroups(tmp_path, "0::/a/b/c", [V2], files)
    assert cpu_quota(tmp_path).value == 0.5
    assert cpu_quota(tmp_path).reason is None


def test_the_tightest_of_several_quotas_counts_and_periods_differ(tmp_path: Path) -> None:
    trees.cgroups(tmp_path, "0::/a/b", [V2], {f"{ALL}/a/b/cpu.max": "30000 20000", f"{ALL}/a/cpu.max": "250000 100000"})
    assert cpu_quota(tmp_path).value == 1.5


def test_v1_quota_in_us_and_minus_one_is_none(tmp_path: Path) -> None:
    membership = "4:memory:/\n3:cpu,cpuacct:/docker/x"
    trees.cgroups(tmp_path, membership, [V1_CPU], v1_quota(f"{CPU1}/docker/x", 150_000) | v1_quota(CPU1, -1))
    assert cpu_quota(tmp_path).value == 1.5
    trees.write(tmp_path, v1_quota(f"{CPU1}/docker/x", -1))
    assert cpu_quota(tmp_path).value is None
    assert cpu_quota(tmp_path).reason == "no CPU quota: all 2 limit file(s) say so"


def test_hybrid_trees_take_the_tighter_of_v1_and_v2(tmp_path: Path) -> None:
    unified = ("/sys/fs/cgroup/unified", "/", "cgroup2", "rw")
    trees.cgroups(tmp_path, "3:cpu,cpuacct:/x\n1:name=systemd:/x\n0::/y", [V1_CPU, unified],
                  v1_quota(f"{CPU1}/x", 80_000) | {f"{ALL}/unified/y/cpu.max": "max 100000"})  # fmt: skip
    assert cpu_quota(tmp_path).value == 0.8
    trees.write(tmp_path, {f"{ALL}/unified/y/cpu.max": "40000 100000"})
    assert cpu_quota(tmp_path).value == 0.4


def test_a_container_that_sees_its_own_group_as_the_mount_is_read_there(tmp_path: Path) -> None:
    """Without a cgroup namespace the path is the host's, and the mount shows the group itself."""
    mount = ("/sys/fs/cgroup/cpu,cpuacct", "/docker/abc", "cgroup", "ro,cpu,cpuacct")
    trees.cgroups(tmp_path, "3:cpu,cpuacct:/docker/abc/inner", [mount],
                  v1_quota(CPU1, 50_000) | v1_quota(f"{CPU1}/inner", 70_000))  # fmt: skip
    assert cpu_quota(tmp_path).value == 0.5


@pytest.mark.parametrize("path", ["/../other", "/kubepods/pod1/x"])
def test_a_group_outside_of_the_mount_is_read_at_the_mount_and_doubted(tmp_path: Path, path: str) -> None:
    mount = ("/sys/fs/cgroup", "/" if ".." in path else "/kubepods/pod2", "cgroup2", "ro")
    trees.cgroups(tmp_path, f"0::{path}", [mount], {f"{ALL}/cpu.max": "20000 100000"})
    assert cpu_quota(tmp_path).value == 0.2
    assert f"cgroup {path} is not below" in (cpu_quota(tmp_path).reason or "")


def test_a_sibling_group_whose_name_starts_alike_is_not_the_own_one(tmp_path: Path) -> None:
    mounts = [("/mnt/other", "/docker/ab", "cgroup2", "rw"), V2]
    files = {"mnt/other/cpu.max": "1000 100000", f"{ALL}/docker/abc/cpu.max": "60000 100000"}
    trees.cgroups(tmp_path, "0::/docker/abc", mounts, files)
    assert cpu_quota(tmp_path).value == 0.6


def test_a_mount_point_with_a_space_is_found(tmp_path: Path) -> None:
    trees.cgroups(tmp_path, "0::/", [("/my\\040groups", "/", "cgroup2", "rw")], {"my groups/cpu.max": "10000 100000"})
    assert cpu_quota(tmp_path).value == 0.1


@pytest.mark.parametrize("junk", ["", "banana", "-1 100000", "0 100000", "50000 0", "50000 100000 1"])
def test_a_spoiled_quota_is_a_reason_and_hides_no_other_limit(tmp_path: Path, junk: str) -> None:
    trees.cgroups(tmp_path, "0::/a", [V2], {f"{ALL}/a/cpu.max": junk})
    alone = cpu_quota(tmp_path)
    assert alone.value is None
    assert "/sys/fs/cgroup/a" in (alone.reason or "")
    trees.write(tmp_path, {f"{ALL}/cpu.max": "300000 100000"})
    assert cpu_quota(tmp_path).value == 3.0
    assert "/sys/fs/cgroup/a" in (cpu_quota(tmp_path).reason or ""), "a tighter limit may hide behind the spoiled file"


def test_no_cgroups_at_all_is_none_with_the_missing_file(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path).value is None
    assert "/proc/self/cgroup: no such file" in (cpu_quota(tmp_path).reason or "")
    trees.cgroups(tmp_path, "0::/", [], {})
    assert cpu_quota(tmp_path).reason == "no cgroup here has a CPU quota file"


def test_memory_limits_of_v2_count_max_and_high_over_all_ancestors(tmp_path: Path) -> None:
    files = {f"{ALL}/a/b/memory.max": "max", f"{ALL}/a/memory.max": str(4 << 30), f"{ALL}/a/b/memory.high": "max"}
    trees.cgroups(tmp_path, "0::/a/b", [V2], files)
    assert cgroup_memory_bytes(tmp_path).value == 4 << 30
    trees.write(tmp_path, {f"{ALL}/a/b/memory.high": str(1 << 30)})
    assert cgroup_memory_bytes(tmp_path).value == 1 << 30
    assert cgroup_memory_bytes(tmp_path).reason is None


@pytest.mark.parametrize(
    "none", ["9223372036854771712", "9223372036854710272", "9223372036854775807", "18446744073709551615", "-1"]
)
def test_the_huge_number_of_v1_is_no_limit(tmp_path: Path, none: str) -> None:
    files = {f"{MEM1}/x/memory.limit_in_bytes": none, f"{MEM1}/memory.limit_in_bytes": none}
    trees.cgroups(tmp_path, "4:memory:/x", [V1_MEMORY], files)
    assert cgroup_memory_bytes(tmp_path).value is None
    assert cgroup_memory_bytes(tmp_path).reason == "no memory limit: all 2 limit file(s) say so"


def test_usable_memory_is_the_least_of_host_and_group(tmp_path: Path) -> None:
    trees.meminfo(tmp_path, 8 << 20, 6 << 20)
    assert total_memory_bytes(tmp_path).value == 8 << 30
    assert usable_memory_bytes(tmp_path).value == 6 << 30
    assert usable_memory_bytes(tmp_path).reason is None
    trees.cgroups(tmp_path, "4:memory:/x", [V1_MEMORY], {f"{MEM1}/x/memory.limit_in_bytes": str(64 << 20)})
    assert usable_memory_bytes(tmp_path).value == 64 << 20


def test_missing_memory_figures_are_reasons(tmp_path: Path) -> None:
    assert usable_memory_bytes(tmp_path).value is None
    assert "/proc/meminfo: no such file" in (usable_memory_bytes(tmp_path).reason or "")
    trees.meminfo(tmp_path, 1024, None)
    assert usable_memory_bytes(tmp_path).value == 1 << 20
    assert usable_memory_bytes(tmp_path).reason == "/proc/meminfo: no MemAvailable"
