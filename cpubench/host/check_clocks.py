"""Checks of what the CPUs run at and of what time is read from."""

from __future__ import annotations

import math

from cpubench.host.check import Finding, Machine, brief, in_hypervisor, ok, per_cpu, told, unknown, unseen, warn
from cpubench.host.fact import read_int, read_text
from cpubench.host.topology import SYS_CPU

CLOCKSOURCES = "sys/devices/system/clocksource/clocksource0"
# Counters of the CPU itself; the others that a kernel may choose are read by a call, through a device, or scaled by a
# hypervisor (drivers/clocksource, arch/*/kernel). A name that is in neither list is unknown.
OWN_COUNTERS = ("tsc", "arch_sys_counter", "timebase", "riscv_clocksource", "tod")
OTHER_CLOCKS = ("kvm-clock", "xen", "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr", "hpet", "acpi_pm", "pit",
                "jiffies", "refined-jiffies")  # fmt: skip
SLOW_CLOCK_NS = 100  # a counter read in user space takes 20 to 50 ns, one by a system call or from a device 150 to 2000


def governor(machine: Machine) -> Finding:
    """Documentation/admin-guide/pm/cpufreq.rst: only ``performance`` asks for the highest frequency at any load."""
    found = per_cpu(machine, "cpufreq/scaling_governor")
    if not found.values:
        return unknown(found.reason + in_hypervisor(machine))
    text = told(found.values, found.unread)
    if set(found.values) != {"performance"}:
        return warn(text, f"echo performance | sudo tee /{SYS_CPU}/cpu*/cpufreq/scaling_governor")
    return unknown(f"{text} ({found.reason})") if found.unread else ok(text)


def max_frequency(machine: Machine) -> Finding:
    """A ceiling below what the hardware can do halves a score without a trace (benchexec#918)."""
    percent = read_int(machine.root, f"{SYS_CPU}/intel_pstate/max_perf_pct").value
    free: dict[str, list[int]] = {}
    limited: dict[str, list[int]] = {}
    unread, reason = list(machine.strange), unseen(machine)
    for cpu in machine.cpus:
        folder = f"{SYS_CPU}/cpu{cpu}/cpufreq"
        most, allowed = (read_int(machine.root, f"{folder}/{n}") for n in ("cpuinfo_max_freq", "scaling_max_freq"))
        if most.value is None or allowed.value is None or not 0 < most.value < 10**9 or allowed.value <= 0:
            unread.append(cpu)
            reason = reason or most.reason or allowed.reason or f"/{folder}: {most.value} kHz is no frequency"
        elif allowed.value < most.value:
            limited.setdefault(f"{_ghz(allowed.value)} of {_ghz(most.value)} GHz", []).append(cpu)
        else:
            free.setdefault(f"{_ghz(most.value)} GHz", []).append(cpu)
    text = told(limited | free, unread)
    if percent is not None and 0 <= percent < 100:
        text = f"{text}; intel_pstate allows {percent} %" if limited or free else f"intel_pstate allows {percent} %"
        return warn(text, f"echo 100 | sudo tee /{SYS_CPU}/intel_pstate/max_perf_pct")
    if limited:
        return warn(text, f"for d in /{SYS_CPU}/cpu*/cpufreq; do sudo cp $d/cpuinfo_max_freq $d/scaling_max_freq; done")
    if not free:
        return unknown(reason + in_hypervisor(machine))
    return unknown(f"{text} ({reason})") if unread else ok(text)


def _ghz(khz: int) -> str:
    return f"{khz / 1e6:.4g}"


def turbo(machine: Machine) -> Finding:
    """On: agents run with it, and a base-clock score ranks CPUs by another property (pm/intel_pstate.rst, cpufreq.rst).

    ``no_turbo`` is 1 too where the firmware has switched turbo off.
    """
    on: list[tuple[str, str]] = []  # what says so, and the command that switches it on
    off: list[tuple[str, str]] = []
    reasons = []
    for name, value_on in (("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)):
        said, where = read_int(machine.root, f"{SYS_CPU}/{name}"), f"/{SYS_CPU}/{name}"
        if said.value in (0, 1):
            one = (f"{where} is {said.value}", f"echo {value_on} | sudo tee {where}")
            (on if said.value == value_on else off).append(one)
        elif not said.absent:
            reasons.append(said.reason or f"{where}: {said.value} is neither 0 nor 1")
    own = per_cpu(machine, "cpufreq/boost")  # amd-pstate and newer drivers have one for each policy
    for value, cpus in own.values.items():
        one = (f"cpufreq/boost is {told({value: cpus}, [])}", f"echo 1 | sudo tee /{SYS_CPU}/cpu*/cpufreq/boost")
        if value in ("0", "1"):
            (on if value == "1" else off).append(one)
        else:
            reasons.append(f"neither 0 nor 1: {one[0]}")
    if own.values and own.unread:
        reasons.append(f"cpufreq/boost is {told(own.values, own.unread)}")
    if off:
        return warn(f"off: {'; '.join(text for text, _ in off)}", off[0][1])
    if reasons or not on:
        nothing = f"neither /{SYS_CPU}/intel_pstate/no_turbo nor a cpufreq/boost"
        return unknown(("; ".join(reasons) or nothing) + in_hypervisor(machine))
    return ok(f"on: {'; '.join(text for text, _ in on)}")


def clocksource(machine: Machine) -> Finding:
    """Where the CPU's counter was unsteady the kernel took another (Documentation/timers/timekeeping.rst)."""
    current = read_text(machine.root, f"{CLOCKSOURCES}/current_clocksource", 4096)
    if current.value is None:
        return unknown(current.reason)
    if current.value in OWN_COUNTERS:
        return ok(current.value)
    if current.value not in OTHER_CLOCKS:
        return unknown(f"not a clock that is known here: {brief(current.value)}")
    others = (read_text(machine.root, f"{CLOCKSOURCES}/available_clocksource", 4096).value or "").split()
    better = next((name for name in OWN_COUNTERS if name in others), None)
    if better:
        return warn(current.value, f"echo {better} | sudo tee /{CLOCKSOURCES}/current_clocksource")
    return warn(f"{current.value}; the CPU's own counter is not on offer", "sudo dmesg | grep -iE 'clocksource|tsc'")


def clock_read(machine: Machine) -> Finding:
    """Every sample holds two reads, every operation of a latency kernel two more."""
    cost = machine.clock_read_ns
    if cost is None or not math.isfinite(cost) or cost <= 0:
        return unknown("it was not measured" if cost is None else f"{cost} ns cannot be: the clock does not move")
    text = f"{cost:.0f} ns" if cost >= 9.95 else f"{cost:.1f} ns"
    if cost > SLOW_CLOCK_NS:
        return warn(text, f"cat /{CLOCKSOURCES}/*_clocksource: the CPU's own counter is the quickest")
    return ok(text)
