"""Whatever the files of a machine hold, the facts keep their shape, the page stays text, and it takes bounded time."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from host.shape import check_shape
from hosts.machines import hybrid_laptop
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cpubench.host.caches import parse_size
from cpubench.host.cgroup import own_groups
from cpubench.host.container import read_container
from cpubench.host.cpulist import MAX_CPU, format_cpulist, parse_cpulist
from cpubench.host.describe import describe
from cpubench.host.facts import collect
from cpubench.host.identity import read_cpu
from cpubench.host.limits import cpu_quota, meminfo_bytes
from cpubench.host.mounts import mount_of, parse_mountinfo
from cpubench.host.rlimits import parse_limits
from cpubench.report.host import show_host

T = TypeVar("T")
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
MORE = {"proc/self/status": "x", "proc/self/cgroup": "x", "proc/device-tree/model": "x", "run/systemd/container": "x",
        "sys/devices/system/node/has_cpu": "x", "sys/fs/cgroup/user.slice/memory.high": "max",
        "sys/devices/system/cpu/cpu1/regs/identification/midr_el1": "0x00000000410fd034"}  # fmt: skip
# One of each kind, so that a spoiled file is met in every reader.
HOSTILE = {
    "spaces": b"Max " + b" " * 60_000, "ranges": b"0-1000000," * 100_000, "digits": b"9" * 1_000_000,
    "lines": b"\n" * 1_000_000, "colons": b"a:" * 500_000, "nuls": b"\0" * 1_000_000, "path": b"0::" + b"/a" * 500_000,
    "dashes": b"1 2 3 / / rw - cgroup2 a b" * 40_000, "mounts": b"1 2 0:3 / /a rw - cgroup2 a rw\n" * 30_000,
    "escapes": rb"1 2 0:3 / \040\057 rw - ext4 a rw" * 30_000, "fields": b"Max open files 1 1\n" * 50_000,
    "kb": b"MemTotal:" + b"\n" * 900_000 + b"1 kB", "parts": b"CPU implementer : 0x41\nCPU part : 0xd0c\n" * 20_000,
}  # fmt: skip
KINDS = [
    "proc/cpuinfo", "proc/self/mountinfo", "proc/self/cgroup", "proc/self/limits", "proc/meminfo", "proc/self/status",
    "proc/cmdline", "proc/loadavg", "etc/os-release", "sys/devices/system/cpu/online", "sys/devices/cpu_core/cpus",
    "sys/devices/system/cpu/cpu0/cache/index0/size", "sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu0/cpu_capacity", "sys/devices/system/node/node0/meminfo", "sys/class/dmi/id/sys_vendor",
    "sys/devices/system/node/node0/cpulist", "sys/fs/cgroup/user.slice/cpu.max", "run/systemd/container",
    "sys/kernel/mm/transparent_hugepage/enabled", "sys/devices/system/cpu/vulnerabilities/meltdown",
]  # fmt: skip


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid_laptop(tmp_path_factory.mktemp("laptop"))


def spoil(root: Path, contents: dict[str, bytes]) -> dict[str, bytes | None]:
    """What the files held before they got other contents."""
    before: dict[str, bytes | None] = {}
    for name, content in contents.items():
        path = root / name
        before[name] = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return before


def restore(root: Path, before: dict[str, bytes | None]) -> None:
    for name, content in before.items():
        if content is None:
            (root / name).unlink()
        else:
            (root / name).write_bytes(content)


@settings(deadline=None)
@given(st.data())
def test_no_tree_breaks_the_facts_or_the_page(laptop: Path, data: st.DataObject) -> None:
    names = sorted({str(path.relative_to(laptop)) for path in laptop.rglob("*") if path.is_file()} | set(MORE))
    contents = st.one_of(
        st.binary(max_size=60),
        ANY.map(str.encode),
        st.from_regex(r"[0-9,:/-]{1,12}\n?", fullmatch=True).map(str.encode),
        st.sampled_from(
            [b"", b"-1", b"max", b"0x", b"\x1b[31m", b"0-1000000", b"18446744073709551615", b"9" * 400, b"9" * 19]
        ),
    )
    before = spoil(laptop, data.draw(st.dictionaries(st.sampled_from(names), contents, min_size=1, max_size=6)))
    try:
        check_shape(collect(laptop))
        out = io.StringIO()
        show_host(describe(laptop), out)
    finally:
        restore(laptop, before)
    assert all(char.isprintable() or char == "\n" for char in out.getvalue())


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_in_every_place_takes_bounded_time(tmp_path: Path, kind: str) -> None:
    """A child with a minute of CPU time: what grows with the square of a megabyte would take hours."""
    root = hybrid_laptop(tmp_path)
    (tmp_path / "hostile").write_bytes(HOSTILE[kind])
    code = (
        "import resource, sys; from pathlib import Path; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "from cpubench.host.describe import describe\n"
        "root = Path(sys.argv[1]); hostile = (root / 'hostile').read_bytes()\n"
        "for name in sys.argv[2:]:\n"
        "    path = root / name; before = path.read_bytes() if path.exists() else None\n"
        "    path.parent.mkdir(parents=True, exist_ok=True); path.write_bytes(hostile); describe(root)\n"
        "    path.write_bytes(before) if before is not None else path.unlink()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(root), *KINDS], check=True, timeout=600)


def parsed(parse: Callable[[str], T], text: str) -> tuple[T | None, str]:
    """What a parser makes of a text, or the sentence with which it refuses it."""
    try:
        return parse(text), ""
    except ValueError as error:
        return None, str(error)


@given(st.one_of(ANY, st.from_regex(r"[0-9,:/ \n-]{0,30}", fullmatch=True)))
def test_a_cpulist_is_ids_or_a_sentence(text: str) -> None:
    cpus, sentence = parsed(parse_cpulist, text)
    if cpus is None:
        assert sentence.startswith("not a CPU list: ")
        return
    assert cpus == sorted(set(cpus))
    assert all(0 <= cpu <= MAX_CPU for cpu in cpus)
    assert parse_cpulist(format_cpulist(cpus)) == cpus


@given(ANY)
@example("99999999999999K")
def test_a_cache_size_is_bytes_or_a_sentence(text: str) -> None:
    size, sentence = parsed(parse_size, text)
    assert sentence.startswith("not a cache size") if size is None else 0 < size < 1 << 60


LINE = st.lists(st.sampled_from(["1", "0:3", "/", "/a b", "/a\\040b", "-", "cgroup", "cgroup2", "rw,cpu", "", "\\777"]),
                max_size=12).map(" ".join)  # fmt: skip


@given(st.one_of(ANY, st.lists(LINE, max_size=6).map("\n".join)), ANY)
def test_a_mountinfo_is_mounts_and_every_place_has_one_of_them_or_none(text: str, place: str) -> None:
    mounts = parse_mountinfo(text)
    assert len(mounts) <= len(text.splitlines())
    found = mount_of(place, mounts)
    assert found is None or (found in mounts and place.startswith(found.point.rstrip("/")))


@given(st.one_of(ANY, st.lists(LINE, max_size=6).map("\n".join)), ANY, ANY)
def test_any_control_groups_are_folders_and_a_quota_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, mountinfo: str, group: str, quota: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "groups"
    for name, text in {"proc/self/mountinfo": mountinfo, "proc/self/cgroup": f"0::/{group}\n1:cpu:{group}",
                       "cpu.max": quota, "cpu.cfs_quota_us": quota}.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for _, folder in own_groups(["cpu", ""], root).folders:
        assert ".." not in folder.split("/") or ".." in mountinfo
    fact = cpu_quota(root)
    assert (fact.value is not None and fact.value > 0) or fact.reason
    assert read_container(root).kind is not None or read_container(root).doubt


@given(ANY, st.sampled_from(["MemTotal", "SwapFree"]))
def test_meminfo_is_bytes_or_a_reason(tmp_path_factory: pytest.TempPathFactory, text: str, field: str) -> None:
    root = tmp_path_factory.getbasetemp() / "memory"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    for content in (text, f"{field}: {text} kB", f"{field}: 12 kB\n{text}"):
        (root / "proc/meminfo").write_text(content)
        fact = meminfo_bytes(field, root)
        assert (fact.value is None) == bool(fact.reason)


@given(st.lists(st.tuples(st.sampled_from(["vendor_id", "model name", "CPU part", "CPU implementer", "cpu family",
                                           "model", "stepping", "microcode", "uarch", "flags"]), ANY)))  # fmt: skip
def test_cpuinfo_is_names_or_reasons(tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str]]) -> None:
    root = tmp_path_factory.getbasetemp() / "cpuinfo"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    (root / "proc/cpuinfo").write_text("\n".join(f"{key}\t: {value}" for key, value in lines))
    cpu = read_cpu(root)
    for fact in (cpu.vendor, cpu.model, cpu.ids, cpu.microcode):
        assert (fact.value is None) == bool(fact.reason)


@given(ANY, st.integers(0, 2**64 - 1))
def test_limits_are_numbers_or_the_word(text: str, number: int) -> None:
    line = f"Max open files            {number}   unlimited   files\n"
    found = parse_limits(f"{text}\n{line}")
    assert found["open_files"] == [number if number < 1 << 63 else "unlimited", "unlimited"]
    assert all(isinstance(one, int) or one == "unlimited" for limit in parse_limits(text).values() for one in limit)
