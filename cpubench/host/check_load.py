"""The check of what else runs now."""

from __future__ import annotations

import re

from cpubench.host.check import Finding, Machine, brief, ok, unknown, warn
from cpubench.host.fact import names_in, read_text

# A busy CPU in twenty is what makes a block `contended` later; the floor is what a quiet machine's daemons may take.
SHARE, FLOOR = 0.05, 0.25
MOST_PROCESSES = 20_000  # that are looked through for a name


def load(machine: Machine) -> Finding:
    """The mean number of tasks that ran or waited for a disk in the last minute (proc_loadavg(5))."""
    text = read_text(machine.root, "proc/loadavg", 4096)
    match = re.match(r"([0-9]{1,9}\.[0-9]{1,9})\s", text.value or "")
    if match is None:
        return unknown(text.reason or f"/proc/loadavg: not a load: {brief(text.value or '')!r}")
    cpus = len(machine.online.value or machine.allowed.value or ())
    if not cpus:
        return unknown(f"{match[1]}, and the number of CPUs is not known ({machine.allowed.reason})")
    found = f"{match[1]} in the last minute on {cpus} CPU{'s' if cpus > 1 else ''}"
    if float(match[1]) <= max(FLOOR, SHARE * cpus):
        return ok(found)
    busy = _busy(machine)
    now = f"; now {', '.join(busy[:3])}{' ..' if len(busy) > 3 else ''}" if busy else "; nothing seen at this moment"
    return warn(found + now, "end what runs (top -o %CPU), then wait two minutes")


def _busy(machine: Machine) -> list[str]:
    """ "name (pid)" of the processes that run or wait for a disk at this moment, without this one."""
    mine = read_text(machine.root, "proc/self/stat", 4096).value or ""
    found = []
    for pid in [name for name in names_in(machine.root, "proc").value or () if name.isdecimal()][:MOST_PROCESSES]:
        stat = read_text(machine.root, f"proc/{pid}/stat", 4096).value or ""
        before, _, after = stat.rpartition(")")  # a name may hold parentheses and blanks
        if after.split()[:1] in (["R"], ["D"]) and pid != mine.partition(" ")[0]:
            found.append(f"{brief(before.partition('(')[2], 24)} ({pid})")
    return found
