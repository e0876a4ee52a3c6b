"""The program on this machine with other files mounted over its own, in mount namespaces and control groups of its own.

Each needs root; nothing is mounted outside of the namespace, and each control group is removed again.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host import trees
from hosts import machines
from hosts.surroundings import control_group, may_unshare

Json = dict[str, Any]
CPU = "/sys/devices/system/cpu"
ALLOWED = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(not may_unshare(), reason="needs root and mount namespaces")


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """The mounts of this machine are afterwards what they were."""
    before = Path("/proc/self/mountinfo").read_text()
    yield
    assert Path("/proc/self/mountinfo").read_text() == before


def host(*commands: str, group: str = "") -> Json:
    """What ``cpubench host --json`` says after these commands in a mount namespace, in a control group."""
    join = f"echo $$ > {shlex.quote(group)}/cgroup.procs; " if group else ""
    program = f"exec {shlex.quote(sys.executable)} -m cpubench host --json"
    script = join + "; ".join(["mount --make-rprivate /", *commands, program])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", script], capture_output=True, text=True, cwd="/", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document: Json = json.loads(done.stdout)
    for part in ("stable", "volatile"):
        assert all((value is None) == (key in document["reasons"]) for key, value in document[part].items())
    return document


def over(fake: Path, real: str) -> str:
    return f"mount --bind {shlex.quote(str(fake))} {real}"


def test_another_cpu_tree_with_a_cap_isolated_cpus_and_unknown_packages(tmp_path: Path) -> None:
    """H1: of 32 CPUs that sysfs has, those of the real mask are used, on cores whose siblings are not allowed."""
    root = machines.xeon_2s_smt(tmp_path)
    trees.write(root, {f"{CPU[1:]}/isolated": "1"})
    facts = host(over(tmp_path / CPU[1:], CPU))["stable"]
    assert facts["cores"] == [[cpu] for cpu in ALLOWED if cpu < 32]
    assert facts["cpu_lists"]["isolated"] == "1"
    assert facts["cpu_lists"]["possible"] == "0-31"
    assert {(row["hardware_max_khz"], row["policy_max_khz"]) for row in facts["frequency"]} == {(3900000, 1600000)}
    trees.write(root, machines.each_cpu(range(32), {"topology/physical_package_id": "-1"}))
    document = host(over(tmp_path / CPU[1:], CPU))
    assert document["stable"]["packages"] is None
    assert "-1" in document["reasons"]["packages"]


def test_a_frequency_folder_with_limits_only_says_what_is_missing(tmp_path: Path) -> None:
    """H1: psutil raises where min and max are there without a current frequency (psutil#1071)."""
    root = trees.cpus(tmp_path, [(0, "L3", (cpu,)) for cpu in ALLOWED])
    files = machines.each_cpu(range(ALLOWED[-1] + 1), {"cpufreq/scaling_min_freq": "800000",
                                                       "cpufreq/scaling_max_freq": "2000000"})  # fmt: skip
    trees.write(root, files)
    document = host(over(tmp_path / CPU[1:], CPU))
    (row,) = document["stable"]["frequency"]
    assert (row["policy_max_khz"], row["hardware_max_khz"], row["governor"]) == (2000000, None, None)
    assert "cpufreq/scaling_driver: no such file" in document["notes"]["frequency"]
    assert document["stable"]["governor"] is None


def test_contradicting_lists_of_cpus_are_told(tmp_path: Path) -> None:
    """H1: online says CPU 0, 32 are present, the mask is the real one."""
    trees.cpus(tmp_path, [(0, "L3", (cpu,)) for cpu in range(32)], online="0", present="0-31")
    document = host(over(tmp_path / CPU[1:], CPU))
    assert document["stable"]["cores"] == [[cpu] for cpu in ALLOWED]
    assert "neither online nor offline" in document["notes"]["cpus_allowed"]


def test_a_tree_without_caches_is_no_guess(tmp_path: Path) -> None:
    """H1: stress-ng took 2 MiB in silence (stress-ng#402)."""
    trees.cpus(tmp_path, [(0, None, (cpu,)) for cpu in ALLOWED], caches=False)
    document = host(over(tmp_path / CPU[1:], CPU))
    assert document["stable"]["llc_bytes"] is document["stable"]["caches"] is None
    assert "cache: no such folder" in document["reasons"]["llc_bytes"]


@pytest.mark.parametrize(
    ("parts", "vendor", "model"),
    [([("0x41", "0xd4f")], "Arm", "Neoverse-V2"), ([("0x7e", "0x001")], "unknown(0x7e)", "unknown(0x7e/0x001)")],
)
def test_an_arm_cpuinfo_names_the_core_by_implementer_and_part(
    tmp_path: Path, parts: list[tuple[str, str]], vendor: str, model: str
) -> None:
    """H2: the key of the brand is absent there (hiq#28)."""
    trees.arm_cpuinfo(tmp_path, *parts)
    facts = host(over(tmp_path / "proc/cpuinfo", "/proc/cpuinfo"))["stable"]
    assert (facts["cpu_vendor"], facts["cpu_model"], facts["cpu_ids"]) == (vendor, model, "/".join(parts[0]))


def test_an_empty_cpuinfo_takes_nothing_but_the_names(tmp_path: Path) -> None:
    """H2: counted from such a text, a machine has no CPU (byte-unixbench#2)."""
    (tmp_path / "cpuinfo").write_text("")
    document = host(over(tmp_path / "cpuinfo", "/proc/cpuinfo"))
    assert document["stable"]["cpu_model"] is None
    assert sorted(cpu for core in document["stable"]["cores"] for cpu in core) == ALLOWED


def test_an_empty_sys_leaves_the_mask_and_reasons() -> None:
    """H3: what psutil answers with None there ends in a TypeError behind it (psutil#1078)."""
    document = host("mount -t tmpfs none /sys")
    facts = document["stable"]
    assert facts["cores"] == [[cpu] for cpu in ALLOWED]
    assert "each counts as a core" in document["notes"]["cores"]
    for name in ("smt", "caches", "frequency", "governor", "numa_nodes", "core_classes"):
        assert facts[name] is None, name


def test_the_clock_source_is_what_the_kernel_says(tmp_path: Path) -> None:
    """H5"""
    (tmp_path / "clock").write_text("hpet\n")
    place = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    if not Path(place).exists():
        pytest.skip("no clock source in sysfs")
    assert host(over(tmp_path / "clock", place))["stable"]["clocksource"] == "hpet"


def test_a_cpuset_without_cpu_0_is_where_copies_run() -> None:
    """H9: ids stay those of the host, and pinning to CPU 0 would fail (libcuckoo#171)."""
    if len(ALLOWED) < 2:
        pytest.skip("one CPU only")
    with control_group("cpuset") as group:
        (group / "cpuset.cpus").write_text(str(ALLOWED[-1]))
        (group / "cpuset.mems").write_text("0")
        document = host(group=str(group))
    assert document["stable"]["cores"] == [[ALLOWED[-1]]]
    assert str(ALLOWED[0]) in document["stable"]["cpus_not_allowed"]
    assert document["stable"]["cpu_lists"]["cpus_allowed"] == str(ALLOWED[-1])


@pytest.mark.parametrize("inner", [(), ("a", "b")])
def test_a_quota_is_found_in_the_own_group_and_above_it(inner: tuple[str, ...]) -> None:
    """H10: neither the affinity mask nor os.cpu_count() knows of it (cpython#149452, livekit/agents#3239)."""
    with control_group("cpu", *inner) as group:
        if not (group / "cpu.cfs_quota_us").exists():
            pytest.skip("this kernel has no quotas")
        (group / "cpu.cfs_quota_us").write_text("50000")
        document = host(group=str(group.joinpath(*inner)))
    assert document["stable"]["quota_cpus"] == 0.5
    assert document["stable"]["divisor"] == {"kind": "granted_cpu", "n": 0.5}


@pytest.mark.parametrize("memory_node", [False, True])
def test_nodes_without_cpus_and_no_nodes_at_all(tmp_path: Path, memory_node: bool) -> None:
    """H17: a node of memory alone broke bindings and indexes (superbenchmark#658); no node is one implicit node."""
    place = "/sys/devices/system/node"
    if not Path(place).exists():
        pytest.skip("this kernel has no nodes")
    fake = tmp_path / place[1:]
    fake.mkdir(parents=True)
    if memory_node:
        machines.nodes(tmp_path, ("0-1", 8000000), ("", 4000000))
    document = host(over(fake, place))
    if memory_node:
        assert [node["cpus"] for node in document["stable"]["numa_nodes"]] == ["0-1", ""]
        assert "node 1: memory and no CPU" in document["notes"]["numa_nodes"]
    else:
        assert document["stable"]["numa_nodes"] is None
        assert "one implicit node" in document["reasons"]["numa_nodes"]
