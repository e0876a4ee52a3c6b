"""The CPU time of everybody else, from one look at each process (proc_pid_stat(5)).

A process's time with that of the children which it waited for is conserved: a child's time moves into its parent's when
it is reaped. So what the sum over all processes grows by is what they used, of short-lived ones too. Missed are those
whose parent ignores SIGCHLD: nobody gets their time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from cpubench.host.fact import Fact, names_in

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
MOST_PROCESSES = 20_000  # that are looked at
TRIES = 3  # one that ends between the list and the look is missed, and with it all that it ever used
PF_KTHREAD = 0x00200000  # of include/linux/sched.h


class Process(NamedTuple):
    name: str
    parent: int
    session: int
    flags: int
    own_ns: int
    reaped_ns: int  # of children that it waited for
    start: int  # with the pid it names a process


class Seen(NamedTuple):
    others_ns: Fact[int]  # of processes that are neither of the session nor the kernel's
    kernel_ns: Fact[int]
    processes: dict[tuple[int, int], tuple[str, int]]  # those others by pid and start: name, own ns


def look(session: int, root: Path) -> Seen:
    """What all processes outside of ``session`` have used since their start.

    The one that started the session is ours too; what it reaped is not.
    """
    for _ in range(TRIES):
        rows, ended, unread = _rows(root)
        if rows.value is None or not ended:
            break
    reason = rows.reason
    leader = (rows.value or {}).get(session)
    if rows.value is not None and (leader is None or leader.session != session):
        reason = f"/proc: it does not show the session {session} of the block"
    if rows.value is None or leader is None or reason:
        return Seen(Fact(None, reason), Fact(None, reason), {})
    others_ns, kernel_ns, processes = 0, 0, {}
    for pid, one in rows.value.items():
        if one.flags & PF_KTHREAD:
            kernel_ns += one.own_ns
        elif pid == leader.parent:
            others_ns += one.reaped_ns
        elif one.session != session:
            others_ns += one.own_ns + one.reaped_ns
            processes[pid, one.start] = one.name, one.own_ns
    doubts = []
    if ended:
        doubts.append(f"{ended} processes ended while they were looked at")
    if unread:
        doubts.append(f"{unread} processes may not be read")
    kernel = Fact(kernel_ns)
    if not any(one.flags & PF_KTHREAD for one in rows.value.values()):
        doubts.append("only processes of this container are seen")
        kernel = Fact(None, "/proc: no thread of the kernel is seen")
    return Seen(Fact(others_ns, f"/proc: {'; '.join(doubts)}" if doubts else None), kernel, processes)


def _rows(root: Path) -> tuple[Fact[dict[int, Process]], int, int]:
    """Every process by its pid; how many ended meanwhile, and how many may not be read or make no sense."""
    names = names_in(root, "proc")
    if names.value is None:
        return Fact(None, names.reason), 0, 0
    pids = sorted(int(name) for name in names.value if name.isdecimal())  # parents first, mostly
    if len(pids) > MOST_PROCESSES:
        return Fact(None, f"/proc: {len(pids)} processes; at most {MOST_PROCESSES} are looked at"), 0, 0
    rows, ended, unread = {}, 0, 0
    folder = str(root / "proc")
    for pid in pids:
        try:
            rows[pid] = _process(_bytes(f"{folder}/{pid}/stat"))
        except (FileNotFoundError, ProcessLookupError):
            ended += 1
        except (OSError, ValueError):
            unread += 1
    return Fact(rows), ended, unread


def _bytes(name: str) -> bytes:
    """The beginning of a file; a third of the time that it takes through a file object."""
    number = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, 4096)
    finally:
        os.close(number)


def _process(stat: bytes) -> Process:
    """The process of a line "7 (name) S 1 ..", whose name may hold parentheses and blanks; ValueError if it is none."""
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    if len(fields) < 20:
        raise ValueError("too short")
    name = before.partition(b"(")[2].decode("utf-8", "backslashreplace")
    parent, session, flags, utime, stime, cutime, cstime, start = (int(fields[n - 3]) for n in
                                                                   (4, 6, 9, 14, 15, 16, 17, 22))  # fmt: skip
    return Process(name, parent, session, flags, (utime + stime) * TICK_NS, (cutime + cstime) * TICK_NS, start)


def growth(before: Seen, after: Seen) -> list[tuple[int, str]]:
    """Nanoseconds and name of each of the others that used any in between and is still there, the most first."""
    grown = [(ns - before.processes.get(key, ("", 0))[1], name) for key, (name, ns) in after.processes.items()]
    return sorted((one for one in grown if one[0] > 0), reverse=True)
