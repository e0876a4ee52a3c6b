"""Validation against the facts of the host in a file: CPUs that are allowed there, and what rates are divided by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpubench import __version__
from cpubench.errors import UsageError
from cpubench.host.cpulist import parse_cpulist
from cpubench.host.facts import divisor
from cpubench.results.parse import shown
from cpubench.results.records import Divisor


def check_allowed(host: Mapping[str, Any], cpus: list[int]) -> None:
    """None if the host's facts allow these CPUs, where they tell."""
    told = host.get("cpus_allowed")
    if not isinstance(told, str):
        return
    try:
        allowed = set(parse_cpulist(told))
    except ValueError:
        raise UsageError("host", "is no list of CPUs", "host.cpus_allowed") from None
    strange = sorted(set(cpus) - allowed)
    if strange:
        text = f"CPU {strange[0]} of the plan is not allowed on the host ({shown(told, 60)})"
        raise UsageError("host", text, "host.cpus_allowed")


def check_cache(host: Mapping[str, Any], cpus: list[int], llc_bytes: int | None) -> None:
    """None if the last-level cache is that of the host's first CPU, which its facts have, or that of one of these CPUs:
    one copy may run on another kind of core."""
    if "llc_bytes" not in host or llc_bytes == host["llc_bytes"]:
        return
    if llc_bytes not in _last_levels(host.get("cache_instances"), set(cpus)):
        text = f"is {shown(str(host['llc_bytes']), 20)}, in the plan {llc_bytes}"
        raise UsageError("host", text, "host.llc_bytes")


def _last_levels(rows: Any, cpus: set[int]) -> set[int]:
    """Bytes of the caches of the highest level that these CPUs have, where the facts tell."""
    last: dict[int, tuple[int, int]] = {}
    for row in (row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ():
        level, size, lists = (row.get(name) for name in ("level", "size_bytes", "shared_cpus"))
        if not isinstance(level, int) or not isinstance(size, int) or not isinstance(lists, list):
            continue
        for text in lists:
            try:
                sharing = cpus & set(parse_cpulist(text if isinstance(text, str) else ""))
            except ValueError:
                continue
            last |= {cpu: max(last.get(cpu, (0, 0)), (level, size)) for cpu in sharing}
    return {size for _, size in last.values()}


def check_divisor(host: Mapping[str, Any], cpus: list[int], had: Divisor, place: str) -> None:
    """None if the rates are divided by what this host's facts say, where they tell its cores."""
    listed, quota, own = host.get("cores"), host.get("quota_cpus"), set(cpus)
    cores = [core for core in listed if isinstance(core, list)] if isinstance(listed, list) else []
    used = [core for core in cores if any(isinstance(cpu, int) and cpu in own for cpu in core)]
    if not used or isinstance(quota, bool) or not isinstance(quota, int | float | None):
        return
    kind, n = divisor({"quota_cpus": quota, "virtual": host.get("virtual")}, len(used))
    if (kind, n) != (had.kind, had.n):
        raise UsageError("divisor", f"is {had.n:g} {had.kind}; the host's facts say {n:g} {kind}", place)


def not_ours(version: str) -> str:
    """Why the rules of another version are not checked."""
    return f"this is cpubench {__version__}, and the run was made by {shown(version, 20)}"
