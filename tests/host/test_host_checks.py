"""Each check in each of its answers, on made machines; whatever a tree holds, every check answers."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from host import trees
from hypothesis import given, settings
from hypothesis import strategies as st

from cpubench.host.checks import CHECKS, checks

CPU, FREQ = trees.SYS_CPU, "cpufreq/scaling_max_freq"
KERNEL, THP = "proc/sys/kernel", "sys/kernel/mm/transparent_hugepage"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
HOLES, GROUP = f"{CPU}/vulnerabilities", "sys/fs/cgroup/a/cpu.max"
STATUS = "Cpus_allowed_list:\t{}\nCapEff:\t{}"
FOLDER = "\0folder"  # a folder where a file should be: what cannot be read, also for root

Change = Mapping[str, "str | None"]


def change(root: Path, changes: Change) -> Path:
    """The tree with other contents; None takes a file or a folder away."""
    for name, text in changes.items():
        path = root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if text == FOLDER:
            path.mkdir(parents=True)
        elif text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"{text}\n".encode("utf-8", "surrogateescape"))  # as given, "\r" too
    return root


def every_cpu(name: str, text: str | None, cpus: range = range(16)) -> dict[str, str | None]:
    return {f"{CPU}/cpu{n}/{name}": text for n in cpus}


def check(root: Path, name: str, clock_read_ns: float | None = 23.0) -> dict[str, str]:
    """One check, after the shape of all."""
    made = checks(clock_read_ns, root)
    assert [one["id"] for one in made] == [one for one, _, _ in CHECKS]
    for one in made:
        assert set(one) == {"id", "status", "found", "wanted", "advice"}
        assert one["status"] in ("ok", "warn", "unknown")
        assert one["found"]
        assert one["wanted"]
        assert bool(one["advice"]) == (one["status"] == "warn")
        assert len(one["found"]) <= 500
    json.dumps(made, allow_nan=False).encode()
    return next(one for one in made if one["id"] == name)


def test_a_machine_that_is_set_as_wanted_has_no_warning(tmp_path: Path) -> None:
    made = checks(23.0, trees.quiet(tmp_path))
    assert {one["id"]: one["status"] for one in made} == {name: "ok" for name, _, _ in CHECKS}
    found = {one["id"]: one["found"] for one in made}
    assert found["governor"] == "performance on CPUs 0-15"
    assert found["smt"] == "on: 2 threads a core, all ours"
    assert found["cpuset"] == "all 16 online CPUs"
    assert found["interrupts"] == "1 of devices; every CPU is measured, none is left to take them"
    assert found["mitigations"] == "3 kinds, each mitigated or not of this CPU"


CASES: list[tuple[str, Change, str, str]] = [
    ("governor", every_cpu("cpufreq/scaling_governor", "powersave", range(4, 8)), "warn",
     "performance on CPUs 0-3,8-15, powersave on CPUs 4-7"),
    ("governor", every_cpu("cpufreq/scaling_governor", "schedutil"), "warn", "schedutil on CPUs 0-15"),
    ("governor", every_cpu("cpufreq", None), "unknown", "cpu0/cpufreq/scaling_governor: no such file"),
    ("governor", {f"{CPU}/cpu5/cpufreq/scaling_governor": FOLDER}, "unknown", "unreadable on CPU 5"),
    ("governor", {f"{CPU}/cpu5/cpufreq/scaling_governor": ""}, "unknown", "scaling_governor: empty"),
    ("max_frequency", every_cpu(FREQ, "1600000", range(2)), "warn", "1.6 of 3.9 GHz on CPUs 0-1, 3.9 GHz on CPUs 2-15"),
    ("max_frequency", {f"{CPU}/intel_pstate/max_perf_pct": "50"}, "warn", "intel_pstate allows 50 %"),
    ("max_frequency", every_cpu("cpufreq", None), "unknown", "no such file"),
    ("max_frequency", every_cpu(FREQ, "fast"), "unknown", "not a whole number"),
    ("max_frequency", every_cpu("cpufreq/cpuinfo_max_freq", "0"), "unknown", "0 kHz is no frequency"),
    ("max_frequency", {f"{CPU}/cpu7/{FREQ}": None}, "unknown", "unreadable on CPU 7"),
    ("governor", {f"{CPU}/cpu15": None}, "unknown", "unreadable on CPU 15 (/sys/devices/system/cpu/cpu15: no such"),
    ("max_frequency", {f"{CPU}/cpu15": None}, "unknown", "no such folder"),
    ("smt", {f"{CPU}/cpu15": None}, "unknown", "no such folder"),
    ("turbo", {f"{CPU}/intel_pstate/no_turbo": "1"}, "warn", "no_turbo is 1"),
    ("turbo", {f"{CPU}/intel_pstate": None, f"{CPU}/cpufreq/boost": "0"}, "warn", "cpufreq/boost is 0"),
    ("turbo", {f"{CPU}/intel_pstate": None, f"{CPU}/cpufreq/boost": "1"}, "ok", "on: "),
    ("turbo", {f"{CPU}/intel_pstate": None, **every_cpu("cpufreq/boost", "1")}, "ok", "1 on CPUs 0-15"),
    ("turbo", {f"{CPU}/intel_pstate": None, **every_cpu("cpufreq/boost", "1"), f"{CPU}/cpu3/cpufreq/boost": "0"},
     "warn", "0 on CPU 3"),
    ("turbo", {f"{CPU}/intel_pstate": None, f"{CPU}/cpu3/cpufreq/boost": "1"}, "unknown", "unreadable on CPUs"),
    ("turbo", {f"{CPU}/intel_pstate/no_turbo": "2"}, "unknown", "neither 0 nor 1"),
    ("turbo", every_cpu("cpufreq/boost", "maybe"), "unknown", "neither 0 nor 1"),
    ("turbo", {f"{CPU}/intel_pstate": None}, "unknown", "neither /sys"),
    ("smt", {f"{CPU}/smt/control": "off"}, "warn", "switched off"),
    ("smt", {f"{CPU}/smt/control": "forceoff"}, "warn", "switched off"),
    ("smt", {f"{CPU}/smt/control": "1"}, "warn", "only 1 threads"),
    ("smt", {"proc/self/status": STATUS.format("0-9", "0")}, "warn", "CPUs 10-15 share cores with measured CPUs"),
    ("smt", every_cpu("topology", None), "unknown", "no such file"),
    ("smt", {f"{CPU}/cpu0/topology/core_cpus_list": "5"}, "unknown", "not among its own siblings"),
    ("smt", {f"{CPU}/smt": None}, "ok", "2 threads a core"),
    ("aslr", {f"{KERNEL}/randomize_va_space": "0"}, "warn", "off (0)"),
    ("aslr", {f"{KERNEL}/randomize_va_space": "1"}, "warn", "partial (1)"),
    ("aslr", {"proc/self/personality": "00040000"}, "warn", "off for this process"),
    ("aslr", {"proc/self/personality": None}, "unknown", "personality: no such file"),
    ("aslr", {"proc/self/personality": "-1"}, "unknown", "not whether"),
    ("aslr", {f"{KERNEL}/randomize_va_space": "7"}, "unknown", "none of 0, 1, 2"),
    ("aslr", {f"{KERNEL}/randomize_va_space": None}, "unknown", "no such file"),
    ("core_classes", {"sys/devices/cpu_core/cpus": "0-7", "sys/devices/cpu_atom/cpus": "8-15"}, "warn",
     "cpu_core on CPUs 0-7, cpu_atom on CPUs 8-15"),
    ("core_classes", every_cpu("cpu_capacity", "500", range(4)), "warn", "capacity 500 on CPUs 0-3"),
    ("core_classes", every_cpu("cpu_capacity", "1000", range(4)), "ok", "one kind of core"),
    ("core_classes", every_cpu("cpu_capacity", None), "unknown", "no cpu_capacity"),
    ("isolated_cpus", {f"{CPU}/isolated": "1"}, "warn", "CPU 1 isolated, all of them measured"),
    ("isolated_cpus", {f"{CPU}/isolated": "8-15", "proc/self/status": STATUS.format("0-8", "0")}, "warn", "1 of them"),
    ("isolated_cpus", {f"{CPU}/isolated": "8-9", "proc/self/status": STATUS.format("0-7", "0")}, "warn", "none of"),
    ("isolated_cpus", {f"{CPU}/nohz_full": "2-3"}, "warn", "CPUs 2-3 without a tick"),
    ("isolated_cpus", {f"{CPU}/nohz_full": None}, "ok", "none"),
    ("isolated_cpus", {f"{CPU}/nohz_full": "all"}, "unknown", "not a CPU list"),
    ("isolated_cpus", {f"{CPU}/nohz_full": FOLDER}, "unknown", "Is a directory"),
    ("isolated_cpus", {f"{CPU}/isolated": None}, "unknown", "no such file"),
    ("thp", {f"{THP}/enabled": "[always] madvise never"}, "ok", "always"),
    ("thp", {f"{THP}/enabled": "always madvise [never]"}, "warn", "never"),
    ("thp", {f"{THP}/hugepages-2048kB/enabled": "always inherit madvise [never]"}, "warn", "never"),
    ("thp", {f"{THP}/enabled": "always madvise [never]", f"{THP}/hugepages-2048kB/enabled": "[always] inherit"}, "ok",
     "always"),
    ("thp", {f"{THP}/hugepages-2048kB": None, f"{THP}/hpage_pmd_size": None}, "ok", "madvise"),
    ("thp", {f"{THP}/hpage_pmd_size": "536870912"}, "warn", "512 MiB"),
    ("thp", {f"{THP}/enabled": "always"}, "unknown", "no choice"),
    ("thp", {f"{THP}/enabled": "[sometimes]"}, "unknown", "none of"),
    ("thp", {f"{THP}/hugepages-2048kB/enabled": FOLDER}, "unknown", "Is a directory"),
    ("thp", {"sys/kernel/mm": None}, "unknown", "no such file"),
    ("clocksource", {CLOCK: "hpet"}, "warn", "hpet"),
    ("clocksource", {CLOCK: "kvm-clock", CLOCK.replace("current", "available"): "kvm-clock"}, "warn", "not on offer"),
    ("clocksource", {CLOCK: "arch_sys_counter"}, "ok", "arch_sys_counter"),
    ("clocksource", {CLOCK: "sundial"}, "unknown", "sundial"),
    ("clocksource", {CLOCK: None}, "unknown", "no such file"),
    ("cgroup_quota", {GROUP: "150000 100000"}, "warn", "1.5 CPUs for the 16"),
    ("cgroup_quota", {GROUP: "1600000 100000"}, "ok", "16 CPUs for the 16"),
    ("cgroup_quota", {GROUP: None, "sys/fs/cgroup/a/cgroup.procs": "1"}, "ok", "none in the groups"),
    ("cgroup_quota", {GROUP: "lots"}, "unknown", "not a quota"),
    ("cgroup_quota", {GROUP: "1600000 100000", "sys/fs/cgroup/cpu.max": "lots"}, "unknown", "not a quota"),
    ("cgroup_quota", {"sys/fs/cgroup": None}, "unknown", "no cgroup here"),
    ("cgroup_quota", {"proc/self/cgroup": None}, "unknown", "no such file"),
    ("cgroup_quota", {"proc/self/mountinfo": "nothing"}, "unknown", "no cgroup here"),
    ("cpuset", {"proc/self/status": STATUS.format("0-3,8-11", "0")}, "warn", "8 of 16 online CPUs: CPUs 4-7,12-15 may"),
    ("cpuset", {f"{CPU}/online": "0-13", f"{CPU}/offline": "14-15"}, "warn", "CPUs 14-15 present but offline"),
    ("cpuset", {f"{CPU}/online": "0-7", f"{CPU}/offline": "8-15", f"{CPU}/smt/control": "off"}, "ok", "all 8 online"),
    ("cpuset", {f"{CPU}/online": "0", f"{CPU}/present": "0-15"}, "unknown", "neither online nor offline"),  # lxcfs#731
    ("cpuset", {f"{CPU}/online": None}, "unknown", "no such file"),
    ("cpuset", {"proc/self/status": "Name:\tx"}, "unknown", "no Cpus_allowed_list"),
    ("load", {"proc/loadavg": "0.80 0.00 0.00 1/812 4711"}, "ok", "0.80 in the last minute on 16 CPUs"),
    ("load", {"proc/loadavg": "0.81 0.00 0.00 1/812 4711"}, "warn", "nothing seen"),
    ("load", {"proc/loadavg": "64.00 9.00 9.00 9/812 4711",
              "proc/12/stat": "12 (a) b (c) R 1", "proc/13/stat": "13 (d) S 1",
              "proc/14/stat": "14 (dd) D 1", "proc/4711/stat": "4711 (python) R 1"}, "warn",
     "now a) b (c (12), dd (14)"),
    ("load", {"proc/loadavg": "nan nan nan 1/2 3"}, "unknown", "not a load"),
    ("load", {"proc/loadavg": None}, "unknown", "no such file"),
    ("mitigations", {f"{HOLES}/meltdown": "Vulnerable"}, "warn", "1 of 3 open: meltdown"),
    ("mitigations", {f"{HOLES}/spectre_v2": "Mitigation: Retpolines; BHI: Vulnerable"}, "warn", "spectre_v2"),
    ("mitigations", {f"{HOLES}/mmio_stale_data": "Unknown: No mitigations"}, "unknown", "1 of 4 not told"),
    ("mitigations", {f"{HOLES}/mds": FOLDER}, "unknown", "Is a directory"),
    ("mitigations", {f"{HOLES}/mds": ""}, "unknown", "empty"),
    ("mitigations", {HOLES: None}, "unknown", "no such folder"),
    ("mitigations", {HOLES: None, f"{HOLES}/old_microcode": "Not affected"}, "unknown", "empty"),
    ("numa_balancing", {f"{KERNEL}/numa_balancing": "1"}, "warn", "2 nodes of memory"),
    ("numa_balancing", {f"{KERNEL}/numa_balancing": "1", "sys/devices/system/node/has_memory": "0"}, "ok", "one node"),
    ("numa_balancing", {f"{KERNEL}/numa_balancing": "1", "sys/devices/system/node": None}, "warn", "not known"),
    ("numa_balancing", {f"{KERNEL}/numa_balancing": "2", "sys/devices/system/node/has_memory": "0"}, "warn", "on (2)"),
    ("numa_balancing", {f"{KERNEL}/numa_balancing": "-1"}, "unknown", "none of 0 to 3"),
    ("numa_balancing", {f"{KERNEL}/numa_balancing": None}, "ok", "not in this kernel"),
    ("numa_balancing", {KERNEL: None}, "unknown", "no such file"),
    ("swap", {"proc/meminfo": "SwapTotal: 2048 kB\nSwapFree: 1024 kB"}, "warn", "1 of 2 MiB in use"),
    ("swap", {"proc/meminfo": "SwapTotal: 0 kB"}, "ok", "none"),
    ("swap", {"proc/meminfo": "SwapTotal: 1 kB\nSwapFree: 2 kB"}, "unknown", "more than"),
    ("swap", {"proc/meminfo": "MemTotal: 1 kB"}, "unknown", "no SwapTotal"),
    ("swap", {"proc/meminfo": None}, "unknown", "no such file"),
    ("perf_events", {f"{KERNEL}/perf_event_paranoid": "-1"}, "ok", "-1"),
    ("perf_events", {f"{KERNEL}/perf_event_paranoid": "4"}, "warn", "4"),
    ("perf_events", {f"{KERNEL}/perf_event_paranoid": "2", "proc/self/status": STATUS.format("0-15", "4000000000")},
     "ok", "does not bind"),
    ("perf_events", {f"{KERNEL}/perf_event_paranoid": "2", "proc/self/status": STATUS.format("0-15", "1000000000")},
     "warn", "2"),
    ("perf_events", {f"{KERNEL}/perf_event_paranoid": None}, "unknown", "without perf events"),
    ("virtual", {"proc/cpuinfo": trees.X86.format(flags="hypervisor ")}, "warn", "flag hypervisor"),
    ("virtual", {"proc/cpuinfo": None}, "unknown", "no such file"),
    ("microcode", {f"{CPU}/cpu3/microcode/version": "0x1"}, "warn", "0x1 on CPU 3"),
    ("microcode", {f"{HOLES}/old_microcode": "Vulnerable"}, "warn", "older"),
    ("microcode", {f"{HOLES}/old_microcode": None}, "ok", "its age is not told"),
    ("microcode", {f"{CPU}/cpu3/microcode": None}, "unknown", "unreadable on CPU 3"),
    ("microcode", every_cpu("microcode", None), "ok", "0x2b000603"),
    ("microcode", {"proc/cpuinfo": None, **every_cpu("microcode", None)}, "unknown", "no such file"),
    ("microcode", {"proc/cpuinfo": trees.X86.format(flags="hypervisor ")}, "unknown", "as the hypervisor tells"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes", "status", "found"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_each_check_tells_its_state(tmp_path: Path, name: str, changes: Change, status: str, found: str) -> None:
    made = check(change(trees.quiet(tmp_path), changes), name)
    assert (made["status"], found in made["found"]) == (status, True), made


@pytest.mark.parametrize(
    ("cost", "status", "found"),
    [(23.4, "ok", "23 ns"), (1.25, "ok", "1.2 ns"), (100.0, "ok", "100 ns"), (1500.0, "warn", "1500 ns"),
     (None, "unknown", "not measured"), (0.0, "unknown", "does not move"), (float("nan"), "unknown", "cannot be")],
)  # fmt: skip
def test_the_cost_of_a_clock_read(tmp_path: Path, cost: float | None, status: str, found: str) -> None:
    made = check(trees.quiet(tmp_path), "clock_read", cost)
    assert (made["status"], found in made["found"]) == (status, True), made


def test_interrupts_warn_only_where_an_unmeasured_cpu_could_take_them(tmp_path: Path) -> None:
    trees.quiet(tmp_path)
    change(tmp_path, {"proc/self/status": STATUS.format("0-7", "0")})
    made = check(tmp_path, "interrupts")
    assert made["status"] == "warn"
    assert made["found"] == "1 of 1 may run on the measured CPUs (nvme0q1) while CPUs 8-15 could take them"
    assert "echo 8-15 | sudo tee" in made["advice"]
    trees.irq(tmp_path, 30, "8-15")
    assert check(tmp_path, "interrupts")["found"] == "none of 1 may run on the measured CPUs"
    change(tmp_path, {"proc/irq/30/smp_affinity_list": FOLDER})
    assert check(tmp_path, "interrupts")["status"] == "unknown"
    change(tmp_path, {"proc/irq/30": None})
    assert check(tmp_path, "interrupts")["status"] == "unknown"
    change(tmp_path, {"proc/irq": None})
    assert check(tmp_path, "interrupts")["found"] == "/proc/irq: no such folder"


def test_a_virtual_machine_without_frequency_files_is_unknown_and_says_why(tmp_path: Path) -> None:
    trees.x86_cpuinfo(trees.cpus(tmp_path, [(0, 0, (0,)), (0, 0, (1,))]), hypervisor=True)
    for name in ("governor", "max_frequency", "turbo"):
        made = check(tmp_path, name)
        assert made["status"] == "unknown"
        assert made["found"].endswith("a virtual machine leaves it to its host")
    assert check(tmp_path, "smt")["status"] == "unknown"


def test_a_virtual_machine_that_shows_threads_is_a_warning(tmp_path: Path) -> None:
    trees.x86_cpuinfo(trees.cpus(tmp_path, [(0, 0, (0, 1))]), hypervisor=True)
    assert check(tmp_path, "smt")["status"] == "warn"


def test_an_arm_server_has_no_microcode_and_one_thread_a_core(tmp_path: Path) -> None:
    trees.arm_cpuinfo(trees.epyc(tmp_path), ("0x41", "0xd4f"))
    assert check(tmp_path, "microcode")["found"] == "/proc/cpuinfo: no 'microcode'"
    assert check(tmp_path, "smt") | {"wanted": ""} == {
        "id": "smt", "status": "ok", "found": "one thread a core", "wanted": "", "advice": ""}  # fmt: skip


def test_nothing_at_all_is_unknown_in_every_check(tmp_path: Path) -> None:
    check(tmp_path, "governor", None)
    assert {one["status"] for one in checks(None, tmp_path)} == {"unknown"}
    assert {one["status"] for one in checks(None, tmp_path / "none")} == {"unknown"}


def test_line_ends_of_other_systems_change_nothing(tmp_path: Path) -> None:
    trees.quiet(tmp_path)
    before = checks(23.0, tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    after = {one["id"]: one["status"] for one in checks(23.0, tmp_path)}
    assert {name for name, status in after.items() if status != "ok"} <= {"swap"}
    assert all(one["status"] == "ok" for one in before)
    assert "warn" not in after.values()


BROKEN = ["", FOLDER, "\x1b[31mred", "-1", "0", "1", "9" * 5000, "0-1000000", "\udcff\udcfe", "[x]\n" * 5, "R" * 70000,
          "0x", "a\tb: c", "max", "0,2,4,6,8,10,12,14", None]  # fmt: skip


@pytest.mark.parametrize("content", BROKEN, ids=[repr(b)[:14] for b in BROKEN])
def test_every_file_broken_in_the_same_way(tmp_path: Path, content: str | None) -> None:
    trees.quiet(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    start = time.monotonic()
    for path in files:
        change(tmp_path, {str(path.relative_to(tmp_path)): content})
    check(tmp_path, "governor")
    assert time.monotonic() - start < 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trees.quiet(tmp_path_factory.mktemp("shared"))


NAMES = (
    "proc/self/status", "proc/self/cgroup", "proc/self/mountinfo", "proc/self/personality", "proc/self/stat",
    "proc/loadavg", "proc/meminfo", "proc/cpuinfo", "proc/irq/30/smp_affinity_list", "proc/irq/4/node", GROUP, CLOCK,
    f"{KERNEL}/randomize_va_space", f"{KERNEL}/numa_balancing", f"{KERNEL}/perf_event_paranoid", f"{THP}/enabled",
    f"{THP}/hpage_pmd_size", f"{THP}/hugepages-2048kB/enabled", f"{CPU}/online", f"{CPU}/offline", f"{CPU}/present",
    "sys/devices/cpu_core/cpus", f"{CPU}/cpu1/cpu_capacity",
    f"{CPU}/isolated", f"{CPU}/nohz_full", f"{CPU}/smt/control", f"{CPU}/intel_pstate/no_turbo",
    f"{CPU}/intel_pstate/max_perf_pct", f"{CPU}/cpufreq/boost", f"{CPU}/cpu1/cpufreq/boost", f"{CPU}/cpu1/{FREQ}",
    f"{CPU}/cpu1/cpufreq/cpuinfo_max_freq", f"{CPU}/cpu1/cpufreq/scaling_governor", f"{CPU}/cpu1/microcode/version",
    f"{CPU}/cpu1/topology/core_cpus_list", f"{HOLES}/mds", f"{HOLES}/old_microcode", "sys/devices/system/node/online",
    "sys/devices/system/node/has_memory", "proc/77/stat",
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.one_of(
            st.sampled_from(BROKEN),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
            st.from_regex(r"[0-9,:/-]{1,12}", fullmatch=True),
        ),
        max_size=8,
    ),
    st.one_of(st.none(), st.floats()),
)
def test_no_tree_makes_a_check_raise_or_lose_its_shape(shared: Path, changes: Change, cost: float | None) -> None:
    before = {name: (shared / name).read_text()[:-1] if (shared / name).exists() else None for name in changes}
    change(shared, changes)
    try:
        check(shared, "governor", cost)
    finally:
        change(shared, before)


def test_this_machine_is_read_and_left_as_it_is() -> None:
    watched = [Path("/proc/sys/kernel/randomize_va_space"), Path("/sys/kernel/mm/transparent_hugepage/enabled")]
    before = [path.read_text() for path in watched if path.exists()]
    start = time.monotonic()
    made = {one["id"]: one for one in checks(25.0)}
    assert time.monotonic() - start < 5
    assert made["clock_read"]["status"] == "ok"
    assert made["load"]["status"] in ("ok", "warn")
    assert made["aslr"]["status"] in ("ok", "warn")
    assert [path.read_text() for path in watched if path.exists()] == before
