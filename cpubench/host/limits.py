"""What this process may use: CPUs per wall second and bytes of memory, as the least of the host's and the cgroups'."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cpubench.host.cgroup import UNIFIED, own_groups
from cpubench.host.fact import ROOT, Fact, read_int, read_text

N = TypeVar("N", bound=float)
_V1_NO_LIMIT_BYTES = 1 << 60  # v1 has no word for "none": it shows 2**63 rounded down to a page, of 4, 16 or 64 KiB
_NO_LIMIT = ""  # the reason of a limit file that says so


def cpu_quota(root: Path = ROOT) -> Fact[float]:
    """CPU seconds per wall second that the tightest group grants; None where no group sets a quota."""

    def v1(folder: str) -> Fact[float]:
        quota_us = read_int(root, f"{folder}/cpu.cfs_quota_us")
        period_us = read_int(root, f"{folder}/cpu.cfs_period_us")
        if quota_us.value is None or period_us.value is None:
            return Fact(None, quota_us.reason or period_us.reason, quota_us.absent or period_us.absent)
        return _ratio(quota_us.value, period_us.value, folder) if quota_us.value >= 0 else Fact(None, _NO_LIMIT)

    def v2(folder: str) -> Fact[float]:
        text = read_text(root, f"{folder}/cpu.max", 4096)
        if text.value is None:
            return Fact(None, text.reason, text.absent)
        match = re.fullmatch(r"(max|[0-9]{1,18})(?:\s+([0-9]{1,18}))?", text.value)
        if match is None:
            return Fact(None, f"/{folder}/cpu.max: not a quota: {text.value[:40]!r}")
        return Fact(None, _NO_LIMIT) if match[1] == "max" else _ratio(int(match[1]), int(match[2] or 100_000), folder)

    return _tightest("CPU quota", [("cpu", v1), (UNIFIED, v2)], root)


def _ratio(quota_us: int, period_us: int, folder: str) -> Fact[float]:
    if quota_us <= 0 or period_us <= 0:
        return Fact(None, f"/{folder}: a quota of {quota_us} us per {period_us} us means nothing")
    return Fact(quota_us / period_us)


def cgroup_memory_bytes(root: Path = ROOT) -> Fact[int]:
    """Bytes that the tightest group allows; ``memory.high`` counts, because above it every allocation is throttled."""

    def v1(folder: str) -> Fact[int]:
        limit = read_int(root, f"{folder}/memory.limit_in_bytes")
        return limit if limit.value is None or 0 <= limit.value < _V1_NO_LIMIT_BYTES else Fact(None, _NO_LIMIT)

    def v2(name: str) -> Callable[[str], Fact[int]]:
        def read(folder: str) -> Fact[int]:
            text = read_text(root, f"{folder}/{name}", 4096)
            limit = Fact[int](None, _NO_LIMIT) if text.value == "max" else read_int(root, f"{folder}/{name}")
            if limit.value is not None and limit.value < 0:
                return Fact(None, f"/{folder}/{name}: {limit.value} bytes mean nothing")
            return limit if limit.value is None or limit.value < _V1_NO_LIMIT_BYTES else Fact(None, _NO_LIMIT)

        return read

    readers = [("memory", v1), (UNIFIED, v2("memory.max")), (UNIFIED, v2("memory.high"))]
    return _tightest("memory limit", readers, root)


def _tightest(what: str, readers: list[tuple[str, Callable[[str], Fact[N]]]], root: Path) -> Fact[N]:
    """The least limit over every group of every hierarchy; beside a value, ``reason`` names what could not be read.

    Without one, ``absent`` says that nothing which was found is a limit, and nothing could not be read.
    """
    groups = own_groups(dict.fromkeys(controller for controller, _ in readers), root)
    found = [read(folder) for mine, folder in groups.folders for controller, read in readers if controller == mine]
    values = [fact.value for fact in found if fact.value is not None]
    # The root group has no limit files, and v2 folders lack those of controllers that are switched off there.
    problems = [*groups.doubts, *(fact.reason for fact in found if fact.reason and not fact.absent)]
    if values:
        return Fact(min(values), "; ".join(problems) or None)
    unlimited = sum(fact.reason == _NO_LIMIT for fact in found)
    first = f"no {what}: all {unlimited} limit file(s) say so" if unlimited else f"no cgroup here has a {what} file"
    return Fact(None, "; ".join([first, *problems]), absent=not problems)


def pids_max(root: Path = ROOT) -> Fact[int]:
    """Tasks, threads included, that the tightest group allows; None where no group sets a limit."""
    return _tightest("task limit", [("pids", _pids(root)), (UNIFIED, _pids(root))], root)


def pids_left(root: Path = ROOT) -> Fact[int]:
    """Tasks that may still be made in the tightest group; 0 where it is full, or over its limit."""
    return _tightest("task limit", [("pids", _pids(root, True)), (UNIFIED, _pids(root, True))], root)


def _pids(root: Path, left: bool = False) -> Callable[[str], Fact[int]]:
    def read(folder: str) -> Fact[int]:
        text = read_text(root, f"{folder}/pids.max", 4096)
        if text.value == "max":
            return Fact(None, _NO_LIMIT)
        most = read_int(root, f"{folder}/pids.max")
        if most.value is not None and not 0 <= most.value < 1 << 32:
            return Fact(None, f"/{folder}/pids.max: {most.value} is no number of tasks")
        if most.value is None or not left:
            return most
        now = read_int(root, f"{folder}/pids.current")
        return Fact(None, now.reason) if now.value is None else Fact(max(0, most.value - max(0, now.value)))

    return read


def total_memory_bytes(root: Path = ROOT) -> Fact[int]:
    """Bytes of memory that the kernel manages (MemTotal)."""
    return meminfo_bytes("MemTotal", root)


def usable_memory_bytes(root: Path = ROOT) -> Fact[int]:
    """Bytes that may be used now: the least of MemTotal, MemAvailable and the limits of the cgroups."""
    host, limit = [total_memory_bytes(root), meminfo_bytes("MemAvailable", root)], cgroup_memory_bytes(root)
    known = [fact.value for fact in (*host, limit) if fact.value is not None]
    unread = "; ".join(fact.reason for fact in host if fact.reason)
    if not known:
        return Fact(None, unread)
    return Fact(min(known), "; ".join(r for r in (unread, limit.reason if limit.value else None) if r) or None)


def meminfo_bytes(field: str, root: Path) -> Fact[int]:
    """Bytes of a row of proc/meminfo."""
    text = read_text(root, "proc/meminfo")
    if text.value is None:
        return Fact(None, text.reason)
    match = re.search(rf"^{field}:[ \t]*([0-9]{{1,15}}) kB$", text.value, re.MULTILINE)
    return Fact(int(match[1]) * 1024) if match else Fact(None, f"/proc/meminfo: no {field}")
