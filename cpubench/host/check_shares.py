"""Checks of who else has a claim on the CPUs: other threads, tasks, interrupts, groups, guests."""

from __future__ import annotations

import re

from cpubench.host.caches import caches_by_cpu
from cpubench.host.cgroup import UNIFIED, own_groups
from cpubench.host.check import MOST_VALUES, Finding, Machine, brief, cpus_named, ok, unknown, unseen, warn
from cpubench.host.classes import read_classes
from cpubench.host.cpulist import format_cpulist, parse_cpulist, read_cpulist
from cpubench.host.fact import Fact, first_known, names_in, read_text
from cpubench.host.limits import cpu_quota
from cpubench.host.topology import SYS_CPU

OF_THE_KERNEL = re.compile(r"smp_affinity|effective_affinity|affinity_hint|node$|spurious$")  # in /proc/irq/N


def smt(machine: Machine) -> Finding:
    """Whether threads share the measured cores: the sibling of a busy thread has about half of a core."""
    control = read_text(machine.root, f"{SYS_CPU}/smt/control", 4096).value or ""
    on = f"echo on | sudo tee /{SYS_CPU}/smt/control"
    if control in ("off", "forceoff"):
        return warn(
            f"switched off (smt/control: {control})", on if control == "off" else "remove nosmt=force and reboot"
        )
    siblings = [_siblings(machine, cpu) for cpu in machine.cpus]
    most = max((len(s.value) for s in siblings if s.value), default=0)
    strange = {cpu for s in siblings for cpu in s.value or ()} - set(machine.allowed.value or ())
    if strange:
        text = f"{cpus_named(sorted(strange))} share cores with measured CPUs, and are not ours"
        return warn(text, "give this process whole cores: taskset -c LIST, or the cpuset of its group")
    if re.fullmatch(r"[0-9]{1,3}", control):  # Linux 6.6 tells a number where only some threads of a core are enabled
        return warn(f"only {control} threads a core are enabled", on)
    if machine.virtual.value:
        if most > 1:
            text = f"a virtual machine shows {most} threads a core: cores and vCPUs cannot be told apart"
            return warn(text, "ask for a machine type whose vCPUs are whole cores, or for bare metal")
        return unknown("hidden: a vCPU may be one thread of a shared core")
    missing = next((s.reason for s in siblings if s.value is None), unseen(machine))
    if missing:
        return unknown(missing)
    return ok(f"on: {most} threads a core, all ours" if most > 1 else "one thread a core")


def _siblings(machine: Machine, cpu: int) -> Fact[list[int]]:
    folder = f"{SYS_CPU}/cpu{cpu}/topology"
    found = first_known(read_cpulist(machine.root, f"{folder}/{n}") for n in ("core_cpus_list", "thread_siblings_list"))
    if found.value is not None and cpu not in found.value:
        return Fact(None, f"/{folder}: CPU {cpu} is not among its own siblings")
    return found


def core_classes(machine: Machine) -> Finding:
    """Cores of different kinds are measured apart: their mean is that of no core, and no server has both."""
    found = read_classes(machine.cpus, caches_by_cpu(machine.cpus, machine.root), machine.root)
    if found.value is None:
        return unknown(unseen(machine) or found.reason)
    if len(found.value) == 1:
        return ok("one kind of core")
    kinds = ", ".join(f"{one.name} on {cpus_named(list(one.cpus))}" for one in found.value[:MOST_VALUES])
    return warn(
        kinds, f"cpubench run --cpus {format_cpulist(found.value[0].cpus)}, and the other kinds in their own runs"
    )


def isolated_cpus(machine: Machine) -> Finding:
    """Isolated CPUs get no balancing; with nohz_full each entry to the kernel costs more (timers/no_hz.rst)."""
    isolated = read_cpulist(machine.root, f"{SYS_CPU}/isolated")
    if isolated.value is None:
        return unknown(isolated.reason)
    full = read_text(machine.root, f"{SYS_CPU}/nohz_full", keep_empty=True)
    try:
        tickless = [] if full.absent or full.value == "(null)" else parse_cpulist(full.value or "")
    except ValueError as error:
        return unknown(f"/{SYS_CPU}/nohz_full: {error}")
    if full.value is None and not full.absent:
        return unknown(full.reason)
    measured = set(machine.allowed.value or ())
    parts = []
    for cpus, what in ((isolated.value, "isolated"), (tickless, "without a tick (nohz_full)")):
        if cpus:
            mine = len(measured & set(cpus))
            share = "none of them" if not mine else "all of them" if mine == len(cpus) else f"{mine} of them"
            parts.append(f"{cpus_named(cpus)} {what}, {share} measured")
    if parts:
        return warn("; ".join(parts), "remove isolcpus= and nohz_full= from the kernel command line, and reboot")
    return ok("none")


def interrupts(machine: Machine) -> Finding:
    """Which interrupts of devices may run on the measured CPUs (Documentation/core-api/irq/irq-affinity.rst)."""
    numbers = names_in(machine.root, "proc/irq")
    if numbers.value is None or machine.allowed.value is None:
        return unknown(numbers.reason or machine.allowed.reason)
    measured = set(machine.allowed.value)
    devices, n, unread = [], 0, []
    for number in filter(str.isdecimal, numbers.value):
        folder = f"proc/irq/{number}"
        owners = [name for name in names_in(machine.root, folder).value or () if not OF_THE_KERNEL.match(name)]
        if not owners:  # nothing has asked for it, as for most of the 16 legacy ones of x86
            continue
        n += 1
        may = read_cpulist(machine.root, f"{folder}/smp_affinity_list")
        if may.value is None:
            unread.append(may.reason)
        elif measured & set(may.value):
            devices.append(brief(owners[0], 24))
    if not n:
        return unknown("/proc/irq: none belongs to a device, as where a container hides them")
    named = ", ".join(devices[:3]) + (", .." if len(devices) > 3 else "")
    if machine.online.value is None:
        return unknown(machine.online.reason)
    left = sorted(set(machine.online.value) - measured)
    if devices and left:
        return warn(
            f"{len(devices)} of {n} may run on the measured CPUs ({named}) while {cpus_named(left)} could take them",
            "sudo systemctl stop irqbalance; for f in /proc/irq/[0-9]*/smp_affinity_list; do "
            f"echo {format_cpulist(left)} | sudo tee $f; done",
        )
    if unread:
        return unknown(f"{len(unread)} of {n} cannot be read: {unread[0]}")
    if not left:
        return ok(f"{n} of devices; every CPU is measured, none is left to take them")
    return ok(f"none of {n} may run on the measured CPUs")


def cgroup_quota(machine: Machine) -> Finding:
    """A quota stops the copies in the middle of a period (Documentation/scheduler/sched-bwc.rst)."""
    quota, n = cpu_quota(machine.root), len(machine.allowed.value or ())
    if quota.value is not None:
        text = f"{quota.value:g} CPUs for the {n} that would be measured"
        if not n or quota.value < n:
            return warn(text, "sudo systemctl set-property UNIT CPUQuota= (docker update --cpus N NAME)")
        return unknown(f"{text}; {quota.reason}") if quota.reason else ok(text)
    folders = own_groups(("cpu", UNIFIED), machine.root).folders
    # A container without /sys/fs/cgroup can be under a quota that nothing here shows.
    if quota.absent and any(names_in(machine.root, folder).value for _, folder in folders):
        return ok("none in the groups that can be seen here")
    return unknown(quota.reason)


def cpuset(machine: Machine) -> Finding:
    """Whether every CPU of the machine may be used, by affinity and cpuset, and is online."""
    allowed, online = machine.allowed, machine.online
    if allowed.value is None or allowed.reason or online.value is None:
        return unknown(allowed.reason or online.reason)
    missing = sorted(set(online.value) - set(allowed.value))
    if missing:
        text = f"{len(allowed.value)} of {len(online.value)} online CPUs: {cpus_named(missing)} may not be used"
        return warn(text, "start it without taskset, and in a group whose cpuset.cpus has all CPUs")
    offline = read_cpulist(machine.root, f"{SYS_CPU}/offline").value or []
    present = read_cpulist(machine.root, f"{SYS_CPU}/present").value or []
    asleep = sorted(set(offline) & set(present))
    if asleep and read_text(machine.root, f"{SYS_CPU}/smt/control").value not in (
        "off",
        "forceoff",
    ):  # which the check of smt tells
        command = f"for c in {' '.join(map(str, asleep[:8]))}{' ..' if len(asleep) > 8 else ''}; do "
        return warn(
            f"{cpus_named(asleep)} present but offline", command + f"echo 1 | sudo tee /{SYS_CPU}/cpu$c/online; done"
        )
    return ok(f"all {len(online.value)} online CPUs")


def virtual(machine: Machine) -> Finding:
    """Whether a hypervisor shares the cores out, whose other guests no tool in here can see."""
    evidence = "; ".join(brief(text, 80) for text in machine.virtual.evidence[:2])
    if machine.virtual.value is None:
        return unknown(evidence)
    if machine.virtual.value:
        return warn(
            f"a virtual machine ({evidence})", "repeat `cpubench run` over hours and days: its neighbours change"
        )
    return ok(f"bare metal ({evidence})")
