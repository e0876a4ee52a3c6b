from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from host import trees
from host.shape import FIELDS, check_shape
from host.test_host_surroundings import namespaces

from cpubench.host.cpulist import parse_cpulist
from cpubench.host.facts import HERE, collect, divisor, elsewhere, here

MACHINE_ID = "0123456789abcdef0123456789abcdef"


def server(root: Path) -> Path:
    """A bare-metal Xeon with everything readable."""
    trees.xeon(root)
    trees.x86_cpuinfo(root)
    trees.meminfo(root, 8 << 20, 6 << 20)
    trees.cgroups(root, "0::/", [("/sys/fs/cgroup", "/", "cgroup2", "rw")], {})
    governors = {f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "performance" for n in range(16)}
    return trees.write(root, {
        **governors,
        "proc/sys/kernel/hostname": "node7", "proc/sys/kernel/osrelease": "6.8.0", "proc/sys/kernel/arch": "x86_64",
        "proc/cmdline": "quiet mitigations=off", "etc/machine-id": MACHINE_ID,
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
        "sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected",
    })  # fmt: skip


def test_a_server_with_everything_readable(tmp_path: Path) -> None:
    facts = collect(server(tmp_path))
    check_shape(facts)
    assert facts["reasons"]["quota_cpus"] == "no cgroup here has a CPU quota file"
    assert set(facts["reasons"]) == {
        "quota_cpus", "pids_max", "memory_limit_bytes", "os", "libc", "firmware", "container", "numa_nodes", "turbo",
        "rlimits", "page_bytes",
    }  # fmt: skip
    assert facts["notes"]["kernel_cmdline"] == "1 parameters that do not bear on speed are left out"
    assert set(facts["notes"]) == {"kernel_cmdline", "frequency"}
    assert facts["cpus_allowed"] == "0-15"
    assert facts["cores"] == [[n, n + 8] for n in range(8)]
    assert (facts["packages"], facts["smt"], facts["virtual"]) == (2, True, False)
    assert facts["llc_bytes"] == 32 << 20
    assert facts["caches"][2]["shared_cpus"] == "0-3,8-11"
    assert (facts["cpu_vendor"], facts["cpu_model"]) == ("GenuineIntel", "Intel(R) Xeon(R) 8480+")
    assert (facts["cpu_ids"], facts["microcode"]) == ("6/143/8", "0x2b000603")
    assert (facts["thp"], facts["governor"], facts["clocksource"]) == ("madvise", "performance", "tsc")
    assert (facts["hostname"], facts["kernel"], facts["arch"]) == ("node7", "6.8.0", "x86_64")
    assert (facts["memory_total_bytes"], facts["memory_bytes"]) == (8 << 30, 6 << 30)
    assert facts["mitigations"] == {"meltdown": "Not affected"}
    assert facts["kernel_cmdline"] == "mitigations=off"


def test_an_empty_root_is_all_nulls_with_reasons(tmp_path: Path) -> None:
    facts = collect(tmp_path)
    check_shape(facts)
    assert {name for name in FIELDS if facts[name] is not None} == {
        "container_evidence", "cpu_lists", "notes", "reasons", "virtual_evidence",
    }  # fmt: skip


def test_an_empty_sys_still_has_cpus_memory_and_model(tmp_path: Path) -> None:
    trees.x86_cpuinfo(trees.meminfo(tmp_path, 1024, 1000))
    trees.write(tmp_path, {"proc/self/status": "Cpus_allowed_list:\t0-1"})
    facts = collect(tmp_path)
    check_shape(facts)
    assert facts["cores"] == [[0], [1]]
    assert "each counts as a core" in facts["notes"]["cores"]
    assert "smt" in facts["reasons"]
    assert facts["cpu_model"] == "Intel(R) Xeon(R) 8480+"


def test_arm_without_a_model_name_is_named_by_implementer_and_part(tmp_path: Path) -> None:
    facts = collect(trees.arm_cpuinfo(tmp_path, ("0x41", "0xd4f"), ("0x41", "0xd4f")))
    assert (facts["cpu_vendor"], facts["cpu_model"], facts["cpu_ids"]) == ("Arm", "Neoverse-V2", "0x41/0xd4f")
    facts = collect(trees.arm_cpuinfo(tmp_path, ("0x41", "0xfff"), ("0x7e", "0x001")))
    assert facts["cpu_vendor"] == "Arm + unknown(0x7e)"
    assert facts["cpu_model"] == "unknown(0x41/0xfff) + unknown(0x7e/0x001)"
    check_shape(facts)


@pytest.mark.parametrize("text", ["", "\0\0", "no colon at all", "flags:", ": x", "model name\t:\nCPU part\t: 0xzz"])
def test_a_foreign_cpuinfo_is_reasons(tmp_path: Path, text: str) -> None:
    facts = collect(trees.write(server(tmp_path), {"proc/cpuinfo": text}))
    check_shape(facts)
    assert facts["cpu_model"] is None
    assert facts["cores"] == [[n, n + 8] for n in range(8)], "cores never come from cpuinfo"


def test_a_host_name_of_any_bytes_can_be_written(tmp_path: Path) -> None:
    trees.write(tmp_path, {"proc/sys/kernel/hostname": b"caf\xe9 \xf0\x9f".decode("utf-8", "surrogateescape")})
    assert collect(tmp_path)["hostname"] == r"caf\xe9 \xf0\x9f"
    check_shape(collect(tmp_path))


def test_governors_that_differ_are_all_named_and_missing_ones_counted(tmp_path: Path) -> None:
    root = server(tmp_path)
    trees.write(root, {"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "powersave"})
    (root / "sys/devices/system/cpu/cpu5/cpufreq/scaling_governor").unlink()
    facts = collect(root)
    assert facts["governor"] == "performance, powersave"
    assert facts["notes"]["governor"] == "1 of 16 CPUs have no readable governor"


def test_a_file_that_answers_with_an_error_is_a_reason(tmp_path: Path) -> None:
    root = server(tmp_path)
    clock = root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    clock.unlink()
    clock.mkdir()  # reading a folder is the one error that root gets too
    facts = collect(root)
    check_shape(facts)
    assert "Is a directory" in facts["reasons"]["clocksource"]


def test_the_id_follows_machine_model_and_cpus_and_nothing_else(tmp_path: Path) -> None:
    root = server(tmp_path)
    first = collect(root)["id"]
    assert len(first) == 64
    trees.write(root, {"proc/sys/kernel/hostname": "renamed", "proc/sys/kernel/osrelease": "7.0"})
    assert collect(trees.meminfo(root, 100, 90))["id"] == first
    trees.write(root, {"etc/machine-id": MACHINE_ID[::-1]})
    second = collect(root)["id"]
    trees.write(root, {"proc/self/status": "Cpus_allowed_list:\t0-3"})
    third = collect(root)["id"]
    trees.arm_cpuinfo(root, ("0x41", "0xd4f"))
    assert len({first, second, third, collect(root)["id"]}) == 4


@pytest.mark.parametrize("machine_id", ["", "uninitialized", "0" * 32, "0123"])
def test_without_a_real_machine_id_the_host_name_stands_in(tmp_path: Path, machine_id: str) -> None:
    root = trees.write(server(tmp_path), {"etc/machine-id": machine_id})
    first = collect(root)["id"]
    trees.write(root, {"proc/sys/kernel/hostname": "other"})
    assert collect(root)["id"] != first


def test_in_a_container_the_id_is_doubtful_and_never_of_its_host_name(tmp_path: Path) -> None:
    """The machine-id is the image's, the host name is drawn for each container."""
    root = server(tmp_path)
    bare = collect(root)
    assert "id" not in bare["notes"]
    namespaces(root, ("pid", "uts"))
    inside = collect(root)
    assert inside["id"] == bare["id"]
    assert "the same on other machines" in inside["notes"]["id"]
    trees.write(root, {"etc/machine-id": ""})
    nameless = collect(root)
    check_shape(nameless)
    assert nameless["id"] is None
    assert "host name of a container" in nameless["reasons"]["id"]


BOOT = "11111111-2222-3333-4444-555555555555"
FRESH = {"proc/sys/kernel/random/boot_id": BOOT.replace("1", "9")}
RENAMED = {"proc/sys/kernel/hostname": "other"}


@pytest.mark.parametrize(
    ("inside", "stood", "changes", "other"),
    [
        (False, HERE, {}, False),
        (False, HERE, FRESH, False),  # it has booted
        (False, HERE, RENAMED, False),
        (False, HERE, FRESH | RENAMED, True),  # a copy of its image
        (True, HERE, RENAMED, False),  # another container on the same machine
        (True, HERE, FRESH, True),  # docker run --hostname x, there
        (True, ["hostname"], {}, False),
        (True, ["hostname"], RENAMED, True),
        (False, [], FRESH | RENAMED, False),  # nobody wrote it down: the id alone tells
    ],
)
def test_a_copy_of_an_image_is_elsewhere(
    tmp_path: Path, inside: bool, stood: list[str], changes: dict[str, str], other: bool
) -> None:
    root = trees.write(server(tmp_path), {"proc/sys/kernel/random/boot_id": BOOT})
    namespaces(root, ("pid",) if inside else ())
    told = {name: digest for name, digest in here(collect(root), root).items() if name in stood}
    assert set(told) == set(stood)
    trees.write(root, changes)
    assert elsewhere(told, collect(root), root) is other


def test_two_hosts_of_which_nothing_is_known_are_not_the_same(tmp_path: Path) -> None:
    assert elsewhere({}, collect(tmp_path), tmp_path)


def test_divisor_kinds() -> None:
    bare = {"quota_cpus": None, "virtual": False}
    assert divisor(bare, 8) == ("physical_core", 8)
    assert divisor(bare | {"virtual": True}, 8) == ("vcpu", 8)
    assert divisor(bare | {"virtual": None}, 8) == ("physical_core", 8)
    assert divisor(bare | {"virtual": True, "quota_cpus": 0.5}, 1) == ("granted_cpu", 0.5)
    assert divisor(bare | {"quota_cpus": 8.0}, 8) == ("physical_core", 8)
    with pytest.raises(ValueError, match="at least one core"):
        divisor(bare, 0)


def test_this_machine_agrees_with_the_scheduler() -> None:
    facts = collect()
    check_shape(facts)
    allowed = os.sched_getaffinity(0)
    assert set(parse_cpulist(facts["cpus_allowed"])) == allowed
    assert sorted(cpu for core in facts["cores"] for cpu in core) == sorted(allowed)
    assert (facts["hostname"], facts["kernel"], facts["arch"]) == (
        os.uname().nodename,
        os.uname().release,
        os.uname().machine,
    )
    assert 0 < facts["memory_total_bytes"] <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert facts["id"] == collect()["id"]


def test_a_narrower_affinity_is_seen() -> None:
    allowed = os.sched_getaffinity(0)
    code = (
        "import os; os.sched_setaffinity(0, {%d}); from cpubench.host.facts import collect; print(collect()['cores'])"
    )
    last = max(allowed)
    done = subprocess.run([sys.executable, "-c", code % last], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"[[{last}]]"


def test_collect_takes_less_than_100_ms_of_cpu_here() -> None:
    collect()
    times_ns = []
    for _ in range(5):
        start_ns = time.process_time_ns()  # not the wall clock: others may be at work on this machine
        collect()
        times_ns.append(time.process_time_ns() - start_ns)
    assert min(times_ns) < 100_000_000


def test_the_import_is_light() -> None:
    code = (
        "import sys; import cpubench.host.facts, cpubench.host.layout; "
        "print({'numpy', 'psutil', 'msgspec', 'scipy', 'cpuinfo', 'click', 'rich', 'subprocess'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
