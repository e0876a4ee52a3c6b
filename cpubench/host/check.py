"""What one check finds, and what every check may ask: the root folder and the CPUs that a run would measure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from cpubench.host.cpulist import format_cpulist, read_cpulist
from cpubench.host.fact import Fact, names_in, read_text
from cpubench.host.topology import SYS_CPU, allowed_cpus
from cpubench.host.virtual import Virtual, read_virtual

Status = Literal["ok", "warn", "unknown"]
MOST_VALUES = 4  # different values over the CPUs that are told one by one


class Finding(NamedTuple):
    status: Status
    found: str  # of an unknown: why
    advice: str = ""  # of a warning: how to change it


@dataclass(frozen=True)
class Machine:
    root: Path
    allowed: Fact[list[int]]  # the CPUs that a run would measure
    online: Fact[list[int]]
    cpus: tuple[int, ...]  # the allowed ones that sysfs knows
    strange: tuple[int, ...]  # the others
    virtual: Virtual
    clock_read_ns: float | None


def machine(root: Path, clock_read_ns: float | None = None) -> Machine:
    allowed, online = allowed_cpus(root), read_cpulist(root, f"{SYS_CPU}/online")
    # A broken list may name a million CPUs: only those with a folder are asked one by one.
    names = set(names_in(root, SYS_CPU).value or ())
    cpus = tuple(cpu for cpu in allowed.value or () if f"cpu{cpu}" in names)
    strange = tuple(sorted(set(allowed.value or ()).difference(cpus)))
    return Machine(root, allowed, online, cpus, strange, read_virtual(root), clock_read_ns)


def ok(found: str) -> Finding:
    return Finding("ok", found)


def warn(found: str, advice: str) -> Finding:
    return Finding("warn", found, advice)


def unknown(reason: str | None) -> Finding:
    return Finding("unknown", reason or "nothing tells")


def brief(text: str, most: int = 60) -> str:
    """Foreign text on one line, cut."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 3] + "..."


def in_hypervisor(machine: Machine) -> str:
    """What explains a missing file in a virtual machine, to be put behind its reason."""
    return "; a virtual machine leaves it to its host" if machine.virtual.value else ""


class PerCpu(NamedTuple):
    values: dict[str, list[int]]  # the CPUs that say so
    unread: list[int]
    reason: str  # of the first that could not be read


def unseen(machine: Machine) -> str:
    """Why some measured CPU, or every one, has nothing to read; "" where each has its folder."""
    if not machine.cpus:
        return machine.allowed.reason or f"/{SYS_CPU}: no folder of a CPU that is measured"
    return f"/{SYS_CPU}/cpu{machine.strange[0]}: no such folder" if machine.strange else ""


def per_cpu(machine: Machine, name: str) -> PerCpu:
    """What a file in the folder of each measured CPU says."""
    values: dict[str, list[int]] = {}
    unread, reason = list(machine.strange), unseen(machine)
    for cpu in machine.cpus:
        text = read_text(machine.root, f"{SYS_CPU}/cpu{cpu}/{name}", 4096)
        if text.value is None:
            unread.append(cpu)
            reason = reason or text.reason or ""
        else:
            values.setdefault(brief(text.value), []).append(cpu)
    return PerCpu(values, unread, reason)


def told(values: dict[str, list[int]], unread: list[int]) -> str:
    """ "performance on CPUs 0-3, powersave on CPUs 4-7": which CPUs say what."""
    parts = [f"{value} on {cpus_named(cpus)}" for value, cpus in list(values.items())[:MOST_VALUES]]
    if len(values) > MOST_VALUES:
        parts.append(f"{len(values) - MOST_VALUES} more values on others")
    if unread:
        parts.append(f"unreadable on {cpus_named(unread)}")
    return ", ".join(parts)


def cpus_named(cpus: list[int]) -> str:
    return f"CPU{'s' if len(cpus) > 1 else ''} {brief(format_cpulist(cpus))}"
