"""Whatever /proc and /sys hold, the facts of a host are values or reasons, and the checks have an answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from host import trees
from hypothesis import given
from hypothesis import strategies as st
from many import many

from cpubench.host.checks import checks
from cpubench.host.facts import collect, divisor
from cpubench.host.idle import idle_usage
from cpubench.host.topology import read_topology
from cpubench.results.files import canonical

MACHINES = {
    "quiet": trees.quiet,
    "xeon": trees.xeon,
    "hybrid": trees.hybrid,
    "holes": trees.holes,
    "old": lambda root: trees.cpus(root, [(0, "L3", (0,)), (0, "L3", (1,))], old_names=True),
    "arm": lambda root: trees.arm_cpuinfo(trees.epyc(root), ("0x41", "0xd4f"), ("0x41", "0xd40")),
}
V1 = [("/sys/fs/cgroup/cpu,cpuacct", "/", "cgroup", "rw,cpu,cpuacct"),
      ("/sys/fs/cgroup/memory", "/", "cgroup", "rw,memory"),
      ("/sys/fs/cgroup/unified", "/", "cgroup2", "rw")]  # fmt: skip
MORE = {
    "etc/machine-id": "0123456789abcdef0123456789abcdef",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=2-3 mitigations=off",
    "proc/sys/kernel/hostname": "made",
    "proc/sys/kernel/osrelease": "6.1.0",
    "proc/uptime": "100.00 200.00",
    "sys/class/dmi/id/sys_vendor": "QEMU",
    "sys/class/dmi/id/product_name": "Standard PC",
    "sys/hypervisor/type": "xen",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/usage": "7",
    "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "50000",
    "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712",
}
# What a file may say instead: bytes, numbers that are none, lists of CPUs that are none, and words of other files.
WORDS = ["0", "-1", "0-3", "3-0", "0-7:2/4", "0-999999", "99999999999999999999", "max", "max 100000", "1.5", "0x41",
         "NaN", "1e999", "32K", "(null)", "[always] madvise", "\0\0", "\x1b[2J", "\udcff", "kB", ":", "\t", " ", "\n",
         "/", "../..", "cpu", "-", ",", "Mems_allowed_list:", "Cpus_allowed_list:", "processor\t: 0",
         "\u0663"]  # fmt: skip
PARTS = st.lists(st.sampled_from(WORDS), max_size=12)
TEXTS = st.one_of(st.binary(max_size=300), *(PARTS.map(glue.join) for glue in ("", "\n")))
CHANGE = st.one_of(TEXTS, st.sampled_from(["gone", "folder", "empty", "twice", "cut", "long"]))


@pytest.fixture(scope="module", params=MACHINES)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A machine's tree, and the names of its files."""
    root = tmp_path_factory.mktemp(request.param)
    MACHINES[request.param](root)
    trees.write(root, MORE)
    groups = "12:cpu,cpuacct:/a\n11:memory:/a\n0::/a" if request.param != "quiet" else "0::/a"
    mounts = V1 if request.param != "quiet" else [("/sys/fs/cgroup", "/", "cgroup2", "rw")]
    trees.cgroups(root, groups, mounts, {"sys/fs/cgroup/a/memory.max": "max", "sys/fs/cgroup/a/cpu.max": "max 100000"})
    return root, sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())


@contextmanager
def changed(root: Path, changes: dict[str, bytes | str]) -> Iterator[None]:
    """Nothing; the files are others meanwhile."""
    before = {name: (root / name).read_bytes() for name in changes}
    for name, change in changes.items():
        file, old = root / name, before[name]
        made = {"empty": b"", "twice": old * 2, "cut": old[: len(old) // 2], "long": old * 300}.get(str(change), change)
        if isinstance(made, str) and made not in ("gone", "folder"):
            made = made.encode("utf-8", "surrogateescape")
        file.unlink()
        if made == "folder":
            file.mkdir()
        elif isinstance(made, bytes):
            file.write_bytes(made)
    try:
        yield
    finally:
        for name, old in before.items():
            file = root / name
            if file.is_dir():
                shutil.rmtree(file)
            file.write_bytes(old)


@many(40)
@given(data=st.data())
def test_any_files_are_facts_or_reasons(machine: tuple[Path, list[str]], data: st.DataObject) -> None:
    root, names = machine
    changes = data.draw(st.dictionaries(st.sampled_from(names), CHANGE, min_size=1, max_size=4))
    with changed(root, changes):
        facts, found = collect(root), checks(30.0, root)
        cores = read_topology(root).cores
        states = idle_usage(0, root)
    json.loads(canonical(facts))  # which refuses what no file can hold
    for name, value in facts.items():
        assert value is not None or facts["reasons"][name], name
    assert all(isinstance(core, tuple) or core.cpus for core in cores)
    assert len({cpu for core in cores for cpu in core.cpus}) == sum(len(core.cpus) for core in cores)
    assert all(isinstance(entries, int) for entries in states.values())
    if cores:
        kind, n = divisor(facts, len(cores))
        assert 0 < n <= len(cores), kind
    assert {check["status"] for check in found} <= {"ok", "warn", "unknown"}
    assert all(len(check["found"]) <= 500 and check["found"] for check in found)
