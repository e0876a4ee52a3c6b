"""Spans: what each step took, as the kernel counts it for a process and all descendants that were waited for.

``wait4`` gives CPU time, faults, switches and the peak of the largest process; what the tools read and wrote is what
this process's own account grew by, since the kernel adds that of a reaped child to its parent's (proc_pid_io(5)).
Starts of processes are counted by the last pid that was given out in this pid namespace (proc_loadavg(5)), so they are
an upper bound where others run, and are not told where several agents do.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from cpubench.host.fact import ROOT, read_int

RESERVED_PIDS = 300  # pids begin there again after the last one (kernel/pid.c)


@dataclass
class Span:
    """A step that was done; times from CLOCK_MONOTONIC and getrusage(2), None where nobody counts it."""

    step: int  # its place in the steps of the task
    agent: int
    start_ns: int  # since the first step of the task, or the start of the window
    wall_ns: int
    user_us: int = 0
    sys_us: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    voluntary: int = 0  # switches
    involuntary: int = 0
    peak_bytes: int = 0  # of the largest process; the agent's own size at least, which a child has until it executes
    forks: int | None = None  # processes and threads
    read_bytes: int | None = None
    written_bytes: int | None = None
    around_ns: int = 0  # what the harness did since the step before, without waits
    background: bool = False  # of a server, beside the steps: its CPU counts, its time is nobody's

    def add(self, usage: resource.struct_rusage) -> None:
        """Counts what a reaped process used."""
        self.user_us += round(usage.ru_utime * 1e6)
        self.sys_us += round(usage.ru_stime * 1e6)
        self.minor_faults += usage.ru_minflt
        self.major_faults += usage.ru_majflt
        self.voluntary += usage.ru_nvcsw
        self.involuntary += usage.ru_nivcsw
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)


@dataclass(frozen=True)
class Counters:
    """Open files of /proc that are read around each step; None where there is no such file."""

    io: int | None
    pids: int | None
    most_pids: int  # /proc/sys/kernel/pid_max

    def transferred(self) -> tuple[int, int] | None:
        """Bytes read and written so far by calls, with those of reaped children."""
        if self.io is None:
            return None
        rows = dict(row.split(b": ") for row in os.pread(self.io, 512, 0).splitlines())
        return int(rows[b"rchar"]), int(rows[b"wchar"])

    def last_pid(self) -> int | None:
        return None if self.pids is None else int(os.pread(self.pids, 256, 0).split()[-1])


def counters(alone: bool) -> Counters:
    """The counters of this process; starts of processes only where no other agent runs."""
    most = read_int(ROOT, "proc/sys/kernel/pid_max").value
    return Counters(_opened("/proc/self/io"), _opened("/proc/loadavg") if alone and most else None, most or 0)


def _opened(name: str) -> int | None:
    try:
        number = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        os.pread(number, 16, 0)  # /proc/self/io can be opened where reading it is denied
    except OSError:
        return None
    return number


def count(span: Span, before: tuple[tuple[int, int] | None, int | None], now: Counters) -> None:
    """Sets what the counters grew by since ``before``."""
    transferred, last_pid = before
    after = now.transferred()
    if transferred is not None and after is not None:
        span.read_bytes, span.written_bytes = after[0] - transferred[0], after[1] - transferred[1]
    newest = now.last_pid()
    if last_pid is not None and newest is not None:
        span.forks = started(last_pid, newest, now.most_pids)


def started(before: int, after: int, most: int) -> int:
    """How many pids were given out between two last ones; a machine with 32,768 of them begins anew every few tasks."""
    return after - before if after >= before else max(0, after - before + most - RESERVED_PIDS)


def columns(spans: Sequence[Span]) -> dict[str, list[object]]:
    """The spans as columns, as they are stored."""
    return {one.name: [getattr(span, one.name) for span in spans] for one in fields(Span)}


def told_us(columns: dict[str, list[Any]]) -> int:
    """CPU time of all spans: of a server that nobody has waited for, nothing else tells it."""
    return int(sum(columns["user_us"]) + sum(columns["sys_us"]))


def used_us(who: int) -> int:
    """CPU time of this process or of its reaped children (getrusage(2))."""
    usage = resource.getrusage(who)
    return round(1e6 * (usage.ru_utime + usage.ru_stime))
