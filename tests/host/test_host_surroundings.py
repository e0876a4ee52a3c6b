"""What is around a process: containers, mounts, limits, tasks, nodes, firmware, and what holds now."""

from __future__ import annotations

from pathlib import Path

import pytest
from host import trees
from hosts.machines import NAMESPACES, NODE

from cpubench.host.cgroup import read_hierarchy
from cpubench.host.container import read_container
from cpubench.host.firmware import read_firmware
from cpubench.host.frequency import read_frequency
from cpubench.host.limits import cgroup_memory_bytes, pids_left, pids_max
from cpubench.host.mounts import mount_of, parse_mountinfo, read_file_systems
from cpubench.host.nodes import read_nodes
from cpubench.host.rlimits import processes_left, read_rlimits
from cpubench.host.volatile import volatile

V1_PIDS = ("/sys/fs/cgroup/pids", "/", "cgroup", "rw,pids")
V2 = ("/sys/fs/cgroup", "/", "cgroup2", "rw")


def namespaces(root: Path, own: tuple[str, ...]) -> Path:
    (root / "proc/self/ns").mkdir(parents=True, exist_ok=True)
    for name, inode in NAMESPACES.items():
        (root / "proc/self/ns" / name).symlink_to(f"{name}:[{inode + 7 * (name in own)}]")
    return root


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({".dockerenv": ""}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"run/systemd/container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"run/systemd/container": "\x1b[31mred"}, "31mred"),
        ({"proc/self/cgroup": "0::/kubepods.slice/pod1/cri-containerd-1"}, "kubernetes"),
        ({"proc/self/cgroup": "4:memory:/docker/0123"}, "docker"),
        ({"proc/self/cgroup": "0::/machine.slice/libpod-1.scope"}, "podman"),
        ({"proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2"}, "wsl"),
        ({}, "other"),
    ],
)
def test_marks_of_a_container_and_namespaces_of_its_own(tmp_path: Path, files: dict[str, str], kind: str) -> None:
    found = read_container(namespaces(trees.write(tmp_path, files), ("pid", "uts")))
    assert found.kind == kind
    assert found.evidence
    assert "\x1b" not in kind


def test_an_image_of_a_container_that_was_booted_is_none(tmp_path: Path) -> None:
    found = read_container(namespaces(trees.write(tmp_path, {".dockerenv": ""}), ()))
    assert found.kind == "none"
    assert "namespaces are the first" in (found.doubt or "")


def test_a_host_name_of_its_own_is_no_container(tmp_path: Path) -> None:
    assert read_container(namespaces(tmp_path, ("uts",))).kind == "none"


def test_without_proc_a_mark_counts_and_nothing_is_unknown(tmp_path: Path) -> None:
    assert read_container(trees.write(tmp_path / "a", {".dockerenv": ""})).kind == "docker"
    assert read_container(tmp_path / "b").kind is None
    assert read_container(tmp_path / "b").doubt


MOUNTS = """\
1 0 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
2 1 0:1 / /tmp rw - tmpfs tmpfs rw,size=4k
3 1 0:2 / /tmp ro,noexec - xfs secret.example:/export rw
4 1 0:3 / /tmpfoo rw - tmpfs tmpfs rw"""


def test_the_longest_and_the_last_mount_holds_a_place(tmp_path: Path) -> None:
    mounts = parse_mountinfo(MOUNTS)
    kinds = {
        place: getattr(mount_of(place, mounts), "kind", None) for place in ("/", "/etc", "/tmp", "/tmp/a", "/tmpf")
    }
    assert kinds == {"/": "ext4", "/etc": "ext4", "/tmp": "xfs", "/tmp/a": "xfs", "/tmpf": "ext4"}
    assert mount_of("relative", mounts) is None
    trees.write(tmp_path, {"proc/self/mountinfo": MOUNTS, "tmp/x": ""})
    found = read_file_systems(tmp_path).value or {}
    assert set(found) == {"/", "/tmp"}, "a place that is not there is on no file system"
    assert found["/tmp"] == {"kind": "xfs", "mount": "/tmp", "options": ["ro", "noexec", "rw"]}
    assert "secret" not in str(found)


def test_the_tightest_group_says_how_many_tasks_there_may_be(tmp_path: Path) -> None:
    group = "sys/fs/cgroup"
    files = {f"{group}/a/pids.max": "100", f"{group}/a/pids.current": "20", f"{group}/a/b/pids.max": "max",
             f"{group}/pids/c/pids.max": "90", f"{group}/pids/c/pids.current": "5"}  # fmt: skip
    trees.cgroups(tmp_path, "8:pids:/c\n0::/a/b", [V1_PIDS, V2], files)
    assert (pids_max(tmp_path).value, pids_left(tmp_path).value) == (90, 80)
    assert read_hierarchy(tmp_path).value == "hybrid"
    trees.write(tmp_path, {f"{group}/a/pids.current": "130"})
    assert pids_left(tmp_path).value == 0, "a group may be over its limit, and never has less than none left"
    for odd in ("-1", "9" * 19, "many"):
        trees.write(tmp_path, {f"{group}/pids/c/pids.max": odd})
        assert pids_max(tmp_path).value == 100
        assert "pids.max" in (pids_max(tmp_path).reason or "")


@pytest.mark.parametrize(("text", "value"), [("18446744073709551615", None), ("-5", None), ("4096", 4096)])
def test_a_memory_limit_of_v2_is_bytes_that_mean_something(tmp_path: Path, text: str, value: int | None) -> None:
    trees.cgroups(tmp_path, "0::/a", [V2], {"sys/fs/cgroup/a/memory.max": text})
    assert cgroup_memory_bytes(tmp_path).value == value
    assert value or cgroup_memory_bytes(tmp_path).reason


def test_limits_of_the_process_with_their_units(tmp_path: Path) -> None:
    assert "no such file" in (read_rlimits(tmp_path).reason or "")
    trees.write(
        tmp_path, {"proc/self/limits": "Max cpu time  unlimited  unlimited  seconds\nMax open files 1024 4096 files"}
    )
    found = read_rlimits(tmp_path)
    assert found.value == {"cpu_s": ["unlimited", "unlimited"], "open_files": [1024, 4096]}
    assert "no processes" in (found.reason or "")


HOST_ROOT, PRIVILEGED, PLAIN = "0 0 4294967295", "0000000001000000", "0000000000000000"


@pytest.mark.parametrize(
    ("soft", "user", "capabilities", "users", "left"),
    [
        ("40", "1000", PLAIN, HOST_ROOT, 40 - 7 - 3),
        ("9", "1000", PLAIN, HOST_ROOT, 0),
        ("40", "0", PLAIN, HOST_ROOT, None),  # root of the host
        ("40", "1000", PRIVILEGED, HOST_ROOT, None),  # CAP_SYS_RESOURCE
        ("40", "0", PRIVILEGED, "0 100000 65536", 40 - 1),  # root of a user namespace, where neither counts
        ("unlimited", "1000", PLAIN, HOST_ROOT, None),
    ],
)
def test_the_limit_of_processes_is_less_the_threads_of_the_user(
    tmp_path: Path, soft: str, user: str, capabilities: str, users: str, left: int | None
) -> None:
    def status(user: str, threads: int) -> str:
        return f"Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\nThreads:\t{threads}\nCapEff:\t{capabilities}"

    assert processes_left(tmp_path).value is None
    trees.write(tmp_path, {
        "proc/self/limits": f"Max processes             {soft}                 unlimited            processes \n",
        "proc/self/uid_map": f"         {users}\n", "proc/self/status": status(user, 1),
        "proc/7/status": status("1000", 7), "proc/8/status": status("1000", 3), "proc/9/status": status("0", 1),
        "proc/10/status": "junk", "proc/sys/status": status("1000", 99),
    })  # fmt: skip
    assert processes_left(tmp_path).value == left


def test_nodes_that_are_offline_or_unreadable(tmp_path: Path) -> None:
    files = {f"{NODE}/online": "0,2", **{f"{NODE}/node{n}/cpulist": str(n) for n in range(3)}}
    trees.write(tmp_path, files | {f"{NODE}/node0/meminfo": "Node 0 MemTotal:  1024 kB"})
    found = read_nodes(tmp_path)
    assert [(node.id, node.cpus, node.memory_bytes) for node in found.value or ()] == [
        (0, (0,), 1 << 20),
        (2, (2,), None),
    ]
    assert "node2/meminfo: no such file" in (found.reason or "")


def test_firmware_without_some_of_its_words(tmp_path: Path) -> None:
    trees.write(tmp_path, {"sys/class/dmi/id/sys_vendor": " Dell \t Inc.", "sys/class/dmi/id/product_serial": "S3CRET"})
    found = read_firmware(tmp_path)
    assert (found.value or {})["sys_vendor"] == "Dell Inc."
    assert "not told: product_name" in (found.reason or "")
    assert "S3CRET" not in str(found)


def test_cpus_with_the_same_policy_are_one_row(tmp_path: Path) -> None:
    folder = f"{trees.SYS_CPU}/cpu{{}}/cpufreq"
    for cpu, most in ((0, "3000000"), (1, "2000000"), (2, "3000000"), (3, "0")):
        trees.write(tmp_path, {f"{folder.format(cpu)}/cpuinfo_max_freq": most})
    rows = read_frequency(range(5), tmp_path).value or []
    assert [(row["cpus"], row["hardware_max_khz"]) for row in rows] == [("0,2", 3000000), ("1", 2000000), ("3", None)]
    assert "cpu4/cpufreq: no such folder" in (read_frequency([4], tmp_path).reason or "")


def test_what_holds_now_is_numbers_or_reasons(tmp_path: Path) -> None:
    trees.write(tmp_path, {"proc/loadavg": "0.5 1 2.25 1/2 3", "proc/uptime": "banana 3"})
    now = volatile(tmp_path)
    assert now["load_1_5_15"].value == [0.5, 1.0, 2.25]
    assert all((fact.value is None) == bool(fact.reason) for fact in now.values())
    assert "not 1 numbers: 'banana 3'" in (now["uptime_s"].reason or "")
