"""Inside of two sockets of two cores with two threads, of two nodes: what `cpubench host` makes of a real kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab import guest
from lab.guest import cpubench

CPUS, GROUPS = Path("/sys/devices/system/cpu"), Path("/sys/fs/cgroup")


def host():
    return cpubench("host", "--json").json["stable"]


def test_sockets_cores_threads_and_nodes():
    found = host()
    assert found["cores"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert (found["packages"], found["dies"], found["smt"], found["virtual"]) == (2, 2, True, True)
    assert [(node["id"], node["cpus"]) for node in found["numa_nodes"]] == [(0, "0-3"), (1, "4-7")]
    caches = {(one["level"], one["kind"]): one["shared_cpus"] for one in found["cache_instances"]}
    assert caches[3, "Unified"] == ["0-3", "4-7"]
    first = {path.read_text().strip() for path in CPUS.glob("cpu[0-7]/cache/index0/shared_cpu_list")}
    assert caches[1, "Data"] == sorted(first)  # QEMU gives each thread one


def test_cpus_that_are_off_or_not_allowed_are_left_out():
    off = CPUS / "cpu7/online"
    off.write_text("0")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0, 2, 4, 6})
    try:
        found = host()
    finally:
        os.sched_setaffinity(0, allowed)
        off.write_text("1")
    assert (found["cores"], found["cpus_allowed"], found["smt"]) == ([[0], [2], [4], [6]], "0,2,4,6", False)


def test_a_quota_is_found_in_the_groups_above():
    guest.mount_groups()
    inner = GROUPS / "outer/inner"
    inner.mkdir(parents=True)
    (GROUPS / "cgroup.subtree_control").write_text("+cpu")
    (GROUPS / "outer/cpu.max").write_text("150000 100000")
    (inner / "cgroup.procs").write_text(str(os.getpid()))
    try:
        assert host()["quota_cpus"] == pytest.approx(1.5)
    finally:
        (GROUPS / "cgroup.procs").write_text(str(os.getpid()))


def test_meters_in_a_virtual_machine_are_estimates():
    guest.load()
    document = cpubench("power", "probe", "--json").json
    (row,) = (row for row in document["meters"] if row["name"] == "powercap:package")
    assert (row["usable"], row["provenance"]) == (False, "estimated")
    assert cpubench("power", "show", "--json").json["watts"] == []
