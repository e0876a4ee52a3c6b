"""What kernels need, and whether a host has it: on made-up hosts."""

import pytest
from pools import KERNELS

from cpubench import _native
from cpubench.host.topology import Core
from cpubench.measure.catalogue import catalogue
from cpubench.measure.variants import Host

CACHES = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}


def listed(cores, threads=1, memory_bytes=64 << 30, caches=CACHES):
    cpus = [tuple(range(i * threads, (i + 1) * threads)) for i in range(cores)]
    host = Host([Core(of, 0, 0, 0) for of in cpus], caches, memory_bytes)
    kernels = catalogue(_native.kernels(), host)
    return {(k["name"], p["label"]): p for k in kernels for p in k["params"]}


def test_a_large_host_can_run_everything():
    assert {key: p["here"] for key, p in listed(8, threads=2).items() if p["here"]} == {}


def test_what_one_core_cannot_have_is_said():
    found = listed(1, caches={"L1": 32 << 10, "L2": 1 << 20, "L3": None})
    assert found["switch_pipe", "place=same"]["here"] is None
    assert found["switch_pipe", "place=other"]["here"] == "needs 2 cores of one package, 1 allowed"
    assert found["switch_pipe", "place=sibling"]["here"] == "no core has two allowed hardware threads"
    assert found["lock_mutex", "cs=200ns,threads=4"]["here"] == "needs 4 cores of one package, 1 allowed"
    assert found["mem_chase", "set=L3/2"]["here"] == "the size of L3 is not known on this host"


@pytest.mark.parametrize(
    ("cores", "here"),
    [
        ([Core((0,), 0, 0, 0)], "needs two hardware threads, 1 allowed"),
        ([Core((0, 1), 0, 0, 0)], None),  # siblings
        ([Core((0,), 0, 0, 0), Core((1,), 1, 0, 1)], None),  # in two packages
    ],
)
def test_a_line_is_handed_over_between_any_two_hardware_threads(cores, here):
    kernels = catalogue(_native.kernels(), Host(cores, CACHES, 64 << 30))
    (line,) = [p for k in kernels for p in k["params"] if k["name"] == "lock_line"]
    assert line["here"] == here


def test_what_little_memory_cannot_hold_is_said():
    found = listed(2, memory_bytes=1 << 30)
    assert found["spawn_fork_exec", "rss=1G"]["here"].startswith("needs 1024 MiB")


def test_every_value_says_what_it_needs():
    found = listed(2)
    assert found["switch_pipe", "place=other"]["needs"] == ["2 cores"]
    assert found["file_create", ""]["needs"][0] == "a tmpfs"
    assert found["storage_create", ""]["needs"][0] == "a disk at --workdir"
    assert found["mem_chase", "set=256M"]["needs"] == ["256 MiB"]
    assert found["lock_mutex", "cs=200ns,threads=4"]["needs"] == ["4 cores"]
    assert found["lock_line", "cpus=A-B"]["needs"] == ["two hardware threads"]
    assert found["lock_all", "threads=N"]["needs"] == []  # its curve begins with one
    assert set(found) == {(k["name"], p["label"]) for k in KERNELS.values() if "hidden" not in k["flags"]
                          for p in k["params"]}  # fmt: skip
