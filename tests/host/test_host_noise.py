"""Counters of odd machines, and that nobody's CPU time is lost when a process is reaped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from host import trees
from started import started

from cpubench.analysis.flags import Flag, environment_verdicts
from cpubench.host import noise, others
from cpubench.host.noise import environment, snapshot
from cpubench.host.others import TICK_NS, look
from cpubench.results.records import Environment

SESSION, PARENT, KTHREAD = 500, 400, 0x00200000
STAT = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 20 900 5 3 4 7 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\ncpu3 200 0 30 1 1 2 2 3 0 0"
COUNTERS = {
    "busy_ns", "irq_ns", "softirq_ns", "steal_ns", "others_ns", "kernel_ns", "stalled_ns", "throttles", "throttled_ns",
    "core_throttles", "package_throttles", "power_limits", "runnable", "logins", "online", "allowed",
}  # fmt: skip


def process(root: Path, pid: int, own: int, reaped: int = 0, session: int | None = None, name: str = "sh",
            parent: int = 1, flags: int = 0x400000) -> None:  # fmt: skip
    """A process with its own ticks and those of the children that it waited for, half of them as system time."""
    times = [own - own // 2, own // 2, reaped - reaped // 2, reaped // 2]
    fields = [parent, pid, pid if session is None else session, 0, -1, flags, 1, 2, 3, 4, *times, 20, 0, 1, 0, 77, 9]
    trees.write(root, {f"proc/{pid}/stat": f"{pid} ({name}) S {' '.join(map(str, fields))}"})


def machine(root: Path) -> Path:
    """Everything there is, of CPUs 0 and 3."""
    trees.write(root, {
        "proc/stat": f"{STAT}\nintr 5 0 0\nctxt 7", "proc/loadavg": "0.03 0.90 3.00 5/812 4711",
        "proc/pressure/cpu": "some avg10=0.00 avg60=1.50 avg300=0.10 total=123456\nfull avg10=0.00 total=9",
        "proc/self/status": "Name:\tx\nCpus_allowed_list:\t0,3\n", f"{trees.SYS_CPU}/online": "0-3",
        "run/systemd/sessions/3": "UID=0", "run/systemd/sessions/3.ref": "", "run/systemd/sessions/c1": "UID=42",
    })  # fmt: skip
    for cpu in (0, 3):
        folder = f"{trees.SYS_CPU}/cpu{cpu}"
        counts = {"core_throttle": 1, "package_throttle": 2, "core_power_limit": 3, "package_power_limit": 4}
        trees.write(root, {f"{folder}/thermal_throttle/{name}_count": str(n) for name, n in counts.items()})
        trees.write(root, {f"{folder}/cpufreq/scaling_cur_freq": f"{cpu}000000"})
        trees.write(root, {f"{folder}/topology/physical_package_id": "0"})
        trees.write(root, {f"{folder}/topology/thread_siblings_list": str(cpu)})
    trees.cgroups(root, "0::/a/b", [("/sys/fs/cgroup", "/", "cgroup2", "rw")], {
        "sys/fs/cgroup/a/b/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 30",
        "sys/fs/cgroup/a/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 1\nthrottled_usec 10",
        "sys/fs/cgroup/cpu.stat": "usage_usec 5",
    })  # fmt: skip
    process(root, 2, 0, name="kthreadd", flags=KTHREAD)
    process(root, 3, 40, name="kworker/0:1", flags=KTHREAD)
    process(root, PARENT, 1000, reaped=7)
    process(root, SESSION, 100, reaped=100, parent=PARENT)
    process(root, 501, 100, session=SESSION)
    process(root, 600, 60, reaped=6, name="a) R 1 1 (b")
    return root


def test_every_counter_of_a_machine_that_tells_all(tmp_path: Path) -> None:
    found = snapshot([0, 3], SESSION, machine(tmp_path))
    assert found["reasons"] == {}
    assert {name: found[name] for name in COUNTERS} == {
        "busy_ns": 360 * TICK_NS, "irq_ns": 5 * TICK_NS, "softirq_ns": 6 * TICK_NS, "steal_ns": 10 * TICK_NS,
        "others_ns": (7 + 66) * TICK_NS, "kernel_ns": 40 * TICK_NS, "stalled_ns": 123456000, "throttles": 3,
        "throttled_ns": 40000, "core_throttles": 2, "package_throttles": 2, "power_limits": 10, "runnable": 5,
        "logins": 2, "online": "0-3", "allowed": "0,3",
    }  # fmt: skip
    assert found["freq_khz"] == [0, 3000000]


def test_v1_and_hybrid_groups_count_in_their_own_units(tmp_path: Path) -> None:
    machine(tmp_path)
    v1 = ("/sys/fs/cgroup/cpu,cpuacct", "/", "cgroup", "rw,cpu,cpuacct")
    stat = "nr_periods 9\nnr_throttled 4\nthrottled_time 77"
    files = {"sys/fs/cgroup/cpu,cpuacct/x/cpu.stat": stat}
    trees.cgroups(tmp_path, "3:cpu,cpuacct:/x\n0::/y", [v1], files)
    assert [snapshot([0], SESSION, tmp_path)[name] for name in ("throttles", "throttled_ns")] == [4, 77]
    unified = ("/sys/fs/cgroup/unified", "/", "cgroup2", "rw")
    more = {"sys/fs/cgroup/unified/y/cpu.stat": "usage_usec 1\nnr_throttled 1\nthrottled_usec 2"}
    trees.cgroups(tmp_path, "3:cpu,cpuacct:/x\n0::/y", [v1, unified], files | more)
    assert [snapshot([0], SESSION, tmp_path)[name] for name in ("throttles", "throttled_ns")] == [5, 2077]


def test_a_group_that_is_not_seen_is_a_doubt(tmp_path: Path) -> None:
    machine(tmp_path)
    trees.cgroups(tmp_path, "0::/../other", [("/sys/fs/cgroup", "/", "cgroup2", "rw")], {
        "sys/fs/cgroup/cpu.stat": "nr_throttled 1\nthrottled_usec 2"})  # fmt: skip
    found = snapshot([0], SESSION, tmp_path)
    assert found["throttles"] == 1
    assert "is not below" in found["reasons"]["throttles"]


def test_nothing_at_all_is_none_with_a_reason_for_each(tmp_path: Path) -> None:
    found = snapshot([0], SESSION, tmp_path)
    assert {name for name in COUNTERS if found[name] is None} == COUNTERS
    assert set(found["reasons"]) == COUNTERS | {"freq_khz"}
    assert all(found["reasons"].values())
    stored = msgspec.convert(environment(found, found), Environment)
    assert stored.after is not None
    assert stored.after.t_ns > 0


def test_files_that_cannot_be_read_are_none_with_a_reason(tmp_path: Path) -> None:
    machine(tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name not in ("self", "3")]:
        if path.parent.parent.name != "proc" or path.parent.name == "pressure":
            path.unlink()
            path.mkdir()  # reading it fails, for root too
    (tmp_path / "run/systemd/sessions/3").rmdir()
    found = snapshot([0, 3], SESSION, tmp_path)
    told = {"others_ns", "kernel_ns", "logins", "allowed"}
    assert {name for name in COUNTERS if found[name] is None} == COUNTERS - told
    assert set(found["reasons"]) == COUNTERS - told | {"freq_khz"}
    assert "Is a directory" in found["reasons"]["steal_ns"]


JUNK = ["", "\0", "\u0661 2 3", "cpu0 -1 2 3 4 5 6 7 8 9", "9" * 40, "some total=x", "x" * 9999]


@pytest.mark.parametrize("junk", JUNK)
def test_garbage_is_none_with_a_reason(tmp_path: Path, junk: str) -> None:
    machine(tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in ("cgroup", "mountinfo")]:
        path.write_text(junk)
    found = snapshot([0, 3], SESSION, tmp_path)
    assert {name for name in COUNTERS if found[name] is None} == COUNTERS - {"logins"}
    assert set(found["reasons"]) == COUNTERS - {"logins"} | {"freq_khz"}


def test_counters_beyond_what_a_reader_takes_are_none(tmp_path: Path) -> None:
    machine(tmp_path)
    trees.write(tmp_path, {"proc/stat": STAT.replace("900", "9" * 19).replace("100 10", f"{'9' * 19} 10")})
    found = snapshot([0], SESSION, tmp_path)
    assert found["busy_ns"] is None
    assert "no count: " in found["reasons"]["busy_ns"]
    assert found["steal_ns"] == 7 * TICK_NS


def counted(root: Path, cpu: int, **counts: int) -> None:
    folder = f"{trees.SYS_CPU}/cpu{cpu}/thermal_throttle"
    trees.write(root, {f"{folder}/{name}_count": str(count) for name, count in counts.items()})


@pytest.mark.parametrize("old_names", [False, True])
def test_heat_counts_once_for_a_core_and_once_for_a_package(tmp_path: Path, old_names: bool) -> None:
    """Two packages of two cores of two threads, whose counters began at different times."""
    machine(tmp_path)
    cores = [(core // 2, core // 2, (2 * core, 2 * core + 1)) for core in range(4)]
    trees.cpus(tmp_path, cores, old_names=old_names)
    for cpu in range(8):
        counted(tmp_path, cpu, core_throttle=10, package_throttle=20 + cpu, core_power_limit=3, package_power_limit=5)
    before = snapshot(range(8), SESSION, tmp_path)
    told = {name: before[name] for name in ("core_throttles", "package_throttles", "power_limits")}
    assert told == {"core_throttles": 40, "package_throttles": 23 + 27, "power_limits": 4 * 3 + 2 * 5}
    for cpu in range(8):  # three events of package 1, one of its last core, one limit of package 0
        counted(tmp_path, cpu, package_throttle=20 + cpu + 3 * (cpu > 3), core_throttle=10 + (cpu > 5),
                package_power_limit=5 + (cpu < 4))  # fmt: skip
    counted(tmp_path, 0, package_throttle=21)  # which one CPU alone saw, that has counted less than the others
    found = environment(before, snapshot(range(8), SESSION, tmp_path))
    rose = {name: found["after"][name] - found["before"][name] for name in told}
    assert rose == {"core_throttles": 1, "package_throttles": 4, "power_limits": 1}
    assert "heat" not in found["before"]
    stored = environment_verdicts(msgspec.convert(found, Environment), 8)
    assert (stored[Flag.HOT], stored[Flag.CAPPED]) == (True, True)


def test_heat_of_cpus_of_no_known_package_is_not_told(tmp_path: Path) -> None:
    machine(tmp_path)
    for path in tmp_path.rglob("physical_package_id"):
        path.unlink()
    found = snapshot([0, 3], SESSION, tmp_path)
    assert (found["core_throttles"], found["package_throttles"], found["power_limits"]) == (2, None, 6)
    assert "physical_package_id" in found["reasons"]["package_throttles"]


def test_a_cpu_that_is_not_there_spoils_the_sum(tmp_path: Path) -> None:
    found = snapshot([0, 2], SESSION, machine(tmp_path))
    assert found["steal_ns"] is None
    assert found["reasons"]["steal_ns"] == "/proc/stat: no times of CPU 2"
    assert found["core_throttles"] is None
    assert found["freq_khz"] == []


@pytest.mark.parametrize("size", noise.UTMP_BYTES)
def test_without_logind_utmp_tells_who_is_there(tmp_path: Path, size: int) -> None:
    kinds = [2, 1, 7, 8, 7, 6]
    (tmp_path / "run").mkdir()
    (tmp_path / "run/utmp").write_bytes(b"".join(kind.to_bytes(4, "little").ljust(size, b"x") for kind in kinds))
    assert snapshot([0], SESSION, tmp_path)["logins"] == 2
    (tmp_path / "run/utmp").write_bytes(b"x" * 777)
    assert snapshot([0], SESSION, tmp_path)["logins"] is None


def test_what_a_child_used_is_its_parents_when_it_is_reaped(tmp_path: Path) -> None:
    root = machine(tmp_path)
    process(root, 601, 500, parent=600)
    before = snapshot([0, 3], SESSION, root)
    (root / "proc/601/stat").unlink()
    (root / "proc/601").rmdir()
    process(root, 600, 60, reaped=6 + 520, name="make")  # 20 more until its end
    process(root, 602, 30, parent=600, name="\x1b[31m")
    process(root, 501, 9999, session=SESSION)  # ours
    process(root, PARENT, 2000, reaped=7)  # ours too
    process(root, 3, 50, name="kworker/0:1", flags=KTHREAD)
    found = environment(before, snapshot([0, 3], SESSION, root))
    assert found["after"]["others_ns"] - found["before"]["others_ns"] == 50 * TICK_NS
    assert found["after"]["kernel_ns"] - found["before"]["kernel_ns"] == 10 * TICK_NS
    assert found["busiest"] == [{"name": "\x1b[31m", "took_ns": 30 * TICK_NS}]
    assert "seen" not in found["before"]
    msgspec.convert(found, Environment)


def test_what_was_reaped_by_nobody_hides_nobody_else(tmp_path: Path) -> None:
    root = machine(tmp_path)
    process(root, 601, 500)
    before = snapshot([0, 3], SESSION, root)
    (root / "proc/601/stat").unlink()
    (root / "proc/601").rmdir()
    for pid, own in ((600, 62), (610, 5), (611, 3), (612, 4)):
        process(root, pid, own, reaped=6 if pid == 600 else 0, name=f"n{pid}")
    found = environment(before, snapshot([0, 3], SESSION, root))
    assert found["after"]["others_ns"] - found["before"]["others_ns"] == 14 * TICK_NS
    assert [one["name"] for one in found["busiest"]] == ["n610", "n612", "n611"]


def test_a_container_says_that_it_sees_a_part(tmp_path: Path) -> None:
    root = machine(tmp_path)
    for pid in (2, 3):
        (root / f"proc/{pid}/stat").unlink()
        (root / f"proc/{pid}").rmdir()
    found = snapshot([0], SESSION, root)
    assert (found["others_ns"], found["kernel_ns"]) == (73 * TICK_NS, None)
    assert "only processes of this container" in found["reasons"]["others_ns"]


def test_another_namespaces_proc_is_none(tmp_path: Path) -> None:
    root = machine(tmp_path)
    process(root, SESSION, 1, session=1)  # has that number, and leads no session
    assert snapshot([0], SESSION, root)["others_ns"] is None
    blind = snapshot([0], SESSION, root)
    assert "does not show the session 500" in blind["reasons"]["others_ns"]
    process(root, SESSION, 1, parent=PARENT)
    found = environment(blind, snapshot([0], SESSION, root))  # what was used before is nobody's growth
    assert (found["after"]["others_ns"], found["busiest"]) == (73 * TICK_NS, [])


def test_too_many_processes_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path)
    monkeypatch.setattr(others, "MOST_PROCESSES", 5)
    assert look(SESSION, root).others_ns.reason == "/proc: 6 processes; at most 5 are looked at"
    monkeypatch.setattr(others, "MOST_PROCESSES", 6)
    assert look(SESSION, root).others_ns.value == 73 * TICK_NS


def test_processes_that_end_meanwhile_are_looked_for_again_and_then_doubted(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "proc/700").mkdir()  # listed, and gone when it is looked at
    found = look(SESSION, root)
    assert found.others_ns.value == 73 * TICK_NS
    assert found.others_ns.reason == "/proc: 1 processes ended while they were looked at"


@contextmanager
def leader() -> Iterator[subprocess.Popen[str]]:
    """A session that does nothing."""
    command = [sys.executable, "-c", "input()"]
    with started(command, stdin=subprocess.PIPE, text=True, start_new_session=True) as one:
        yield one


BURN = "import time\nwhile time.process_time() < 0.4: pass"
REAPER = f"import subprocess, sys\nprint(flush=True)\ninput()\nsubprocess.run([sys.executable, '-c', {BURN!r}])\n" \
         "print(flush=True)\ninput()"  # fmt: skip


def test_a_real_child_that_burns_and_is_reaped_is_counted() -> None:
    with leader() as mine, subprocess.Popen(
        [sys.executable, "-c", REAPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as reaper:  # fmt: skip
        try:
            assert reaper.stdin is not None
            assert reaper.stdout is not None
            reaper.stdout.readline()
            before, began = snapshot([0], mine.pid), time.monotonic()
            reaper.stdin.write("\n")
            reaper.stdin.flush()
            reaper.stdout.readline()  # it has reaped its child
            found = environment(before, snapshot([0], mine.pid))
            most_ns = (time.monotonic() - began) * 1e9 * (os.cpu_count() or 1)
        finally:
            reaper.kill()
    used_ns = found["after"]["others_ns"] - found["before"]["others_ns"]
    assert used_ns >= 4 * 10**8 - 4 * TICK_NS
    assert used_ns < 1.2 * most_ns + 10**9  # and nothing of what was used before
