"""What the host does beside a measurement: its counters at two moments. Nothing here is ever a guess: a counter that
is absent, denied or spoiled is None with a reason.

Standard library only: the block process imports this.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpubench.host import heat
from cpubench.host.cgroup import UNIFIED, own_groups
from cpubench.host.cpulist import format_cpulist, parse_cpulist, read_cpulist
from cpubench.host.fact import ROOT, Fact, names_in, read_int, read_text
from cpubench.host.others import TICK_NS, growth, look

CPU = "sys/devices/system/cpu"
MOST = 2**62  # what a counter may be; beyond that it is garbage, and no number that JSON readers take
BUSIEST = 3
PRIVATE = ("seen", "heat", "reasons")  # of a snapshot: not stored in it
# Kernels from 4.13 to 5.17 may sleep 10 to 20 ms over the frequency of each idle CPU (arch_freq_get_on_cpu).
FREQ_NS = 20_000_000
UTMP_BYTES = (384, 400)  # of a record of utmp(5), where time is 32 or 64 bits
USER_PROCESS, LAST_TYPE = 7, 9

Json = dict[str, Any]


def snapshot(cpus: Sequence[int], session: int, root: Path = ROOT) -> Json:
    """The counters of ``results.records.Snapshot`` for the CPUs of a plan, with ``reasons`` of those that are None or
    doubtful; processes of ``session`` are ours. ``seen`` and ``heat`` are for ``environment`` and are not stored."""
    t_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    seen = look(session, root)
    facts = {**_cpu_times(cpus, root), "others_ns": seen.others_ns, "kernel_ns": seen.kernel_ns}
    facts |= {"stalled_ns": _stalled(root), **_throttles(root)}
    counts = heat.read_heat(cpus, root)
    facts |= {n: Fact(None if one.value is None else heat.events(one.value), one.reason) for n, one in counts.items()}
    facts |= {"runnable": _runnable(root), "logins": _logins(root), "suspended_ns": Fact(_suspended_ns())}
    khz = frequencies(cpus, root)
    found: Json = {"t_ns": t_ns, "freq_khz": khz.value or [], "seen": seen, "heat": counts}
    reasons = {"freq_khz": khz.reason} if khz.reason else {}
    for name, listed in (("online", read_cpulist(root, f"{CPU}/online")), ("allowed", _allowed(root))):
        found[name] = format_cpulist(listed.value) if listed.value else None
        if not listed.value:
            reasons[name] = listed.reason or "no CPU is listed"
    for name, fact in facts.items():
        sane = fact.value is None or 0 <= fact.value < MOST
        found[name] = fact.value if sane else None
        if fact.reason or not sane:
            reasons[name] = fact.reason or f"no count: {fact.value}"
    return found | {"reasons": reasons}


def environment(before: Json, after: Json) -> Json:
    """What is stored of two snapshots (``results.records.Environment``)."""
    known = before["others_ns"] is not None and after["others_ns"] is not None
    grown = growth(before["seen"], after["seen"]) if known else []
    stored = [{name: value for name, value in shot.items() if name not in PRIVATE} for shot in (before, after)]
    if known:
        # Processes that are still there used at least that, whatever was lost with those whom nobody waited for.
        stored[1]["others_ns"] = max(after["others_ns"], before["others_ns"] + sum(took_ns for took_ns, _ in grown))
    for name, counts in after["heat"].items():
        earlier = before["heat"][name].value
        if counts.value is not None and earlier is not None and None not in (before[name], after[name]):
            # CPUs that were offline for a while have counted less: the growth of each tells, not that of the most.
            stored[1][name] = before[name] + heat.grown(earlier, counts.value)
    return {
        "before": stored[0],
        "after": stored[1],
        "busiest": [{"name": name, "took_ns": took_ns} for took_ns, name in grown[:BUSIEST]],
        "reasons": before["reasons"] | after["reasons"],
    }


def _cpu_times(cpus: Sequence[int], root: Path) -> dict[str, Fact[int]]:
    """Sums over the CPUs of what proc_stat(5) counts in ticks; nothing where one of the CPUs is not told."""
    fields = {"busy_ns": (0, 1, 2), "irq_ns": (5,), "softirq_ns": (6,), "steal_ns": (7,)}
    text = read_text(root, "proc/stat")
    if text.value is None:
        return dict.fromkeys(fields, Fact(None, text.reason))
    found = re.findall(r"^cpu(\d{1,9})((?: \d{1,19}){8,})\s*$", text.value, re.MULTILINE | re.ASCII)
    rows = {int(cpu): [int(ticks) for ticks in row.split()] for cpu, row in found}
    absent = [cpu for cpu in cpus if cpu not in rows]
    if absent:
        return dict.fromkeys(fields, Fact(None, f"/proc/stat: no times of CPU {absent[0]}"))
    sums = {name: sum(rows[cpu][at] for cpu in cpus for at in places) for name, places in fields.items()}
    return {name: Fact(TICK_NS * ticks) for name, ticks in sums.items()}


def _suspended_ns() -> int:
    """What the clock that goes on in suspend is ahead of the one that does not (clock_gettime(2)), at most: of nine
    readings of both the least, since an interruption between them only adds."""
    return min(
        time.clock_gettime_ns(time.CLOCK_BOOTTIME) - before_ns
        for before_ns in (time.clock_gettime_ns(time.CLOCK_MONOTONIC) for _ in range(9))
    )


def _allowed(root: Path) -> Fact[list[int]]:
    text = read_text(root, "proc/self/status", 1 << 16)
    match = re.search(r"^Cpus_allowed_list:(.*)$", text.value or "", re.MULTILINE)
    try:
        return Fact(parse_cpulist(match[1])) if match else Fact(None, text.reason or "/proc/self/status: no such list")
    except ValueError as error:
        return Fact(None, f"/proc/self/status: {error}")


def _stalled(root: Path) -> Fact[int]:
    text = read_text(root, "proc/pressure/cpu", 4096)
    if text.value is None:
        return Fact(None, text.reason)
    match = re.search(r"^some .*\btotal=(\d{1,19})$", text.value, re.MULTILINE | re.ASCII)
    return Fact(1000 * int(match[1])) if match else Fact(None, "/proc/pressure/cpu: no total of some")


def _throttles(root: Path) -> dict[str, Fact[int]]:
    """Sums over the own group and its ancestors: a quota of any of them holds all of us."""
    groups = own_groups(["cpu", UNIFIED], root)
    periods, times_ns, problems = [], [], list(groups.doubts)
    for controller, folder in groups.folders:
        text = read_text(root, f"{folder}/cpu.stat", 65536)
        if text.value is None:
            problems += [] if text.absent else [text.reason or ""]
            continue
        rows = dict(re.findall(r"^(\w{1,40}) (\d{1,19})$", text.value, re.MULTILINE | re.ASCII))
        name, unit_ns = ("throttled_usec", 1000) if controller == UNIFIED else ("throttled_time", 1)
        if "nr_throttled" in rows and name in rows:
            periods.append(int(rows["nr_throttled"]))
            times_ns.append(unit_ns * int(rows[name]))
    reason = "; ".join(problems) or None
    if not periods:
        none: Fact[int] = Fact(None, reason or "no cgroup here counts the periods of a quota")
        return {"throttles": none, "throttled_ns": none}
    return {"throttles": Fact(sum(periods), reason), "throttled_ns": Fact(sum(times_ns), reason)}


def frequencies(cpus: Sequence[int], root: Path) -> Fact[list[int]]:
    """What each CPU runs at now, in kHz; none where reading them takes long."""
    found: list[int] = []
    end_ns = time.monotonic_ns() + FREQ_NS
    for cpu in cpus:
        if time.monotonic_ns() > end_ns:
            return Fact(None, f"{len(found)} of {len(cpus)} frequencies took {FREQ_NS // 1_000_000} ms to read")
        fact = read_int(root, f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq")
        if fact.value is None or not 0 <= fact.value < MOST:
            return Fact(None, fact.reason or f"no frequency: {fact.value}")
        found.append(fact.value)
    return Fact(found)


def _runnable(root: Path) -> Fact[int]:
    text = read_text(root, "proc/loadavg", 4096)
    match = re.match(r"\S+ \S+ \S+ (\d{1,9})/", text.value or "", re.ASCII)
    return Fact(int(match[1])) if match else Fact(None, text.reason or "/proc/loadavg: no runnable tasks")


def _logins(root: Path) -> Fact[int]:
    """Sessions that logind knows; without it, records of users in utmp."""
    sessions = names_in(root, "run/systemd/sessions")
    if sessions.value is not None:
        return Fact(sum(not name.endswith(".ref") for name in sessions.value))
    try:
        raw = (root / "run/utmp").read_bytes()
    except OSError as error:
        return Fact(None, f"{sessions.reason}; /run/utmp: {error.strerror}")
    for size in UTMP_BYTES:
        types = [int.from_bytes(raw[at : at + 2], "little") for at in range(0, len(raw), size)]
        if len(raw) % size == 0 and all(kind <= LAST_TYPE for kind in types):
            return Fact(types.count(USER_PROCESS))
    return Fact(None, "/run/utmp: not of a known form")
