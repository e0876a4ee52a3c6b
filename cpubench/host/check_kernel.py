"""Checks of how the kernel is set: memory, mitigations, counters."""

from __future__ import annotations

import re

from cpubench.host.check import Finding, Machine, brief, ok, per_cpu, told, unknown, warn
from cpubench.host.cpulist import read_cpulist
from cpubench.host.fact import Fact, first_known, names_in, read_int, read_text
from cpubench.host.identity import read_cpu
from cpubench.host.limits import meminfo_bytes
from cpubench.host.topology import SYS_CPU

VULNERABILITIES = f"{SYS_CPU}/vulnerabilities"
HUGE_BYTES = 2 << 20  # of ext/arena.c: with pages of 64 KiB, as on some Arm servers, the least huge page is 512 MiB
NO_RANDOMIZE = 0x0040000  # ADDR_NO_RANDOMIZE of personality(2), which `setarch -R` and debuggers leave to children
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38


def aslr(machine: Machine) -> Finding:
    """Full: each pass then has a layout of its own, and the interval holds what layout does (sysctl/kernel.rst)."""
    name = "proc/sys/kernel/randomize_va_space"
    level = read_int(machine.root, name)
    if level.value is None or not 0 <= level.value <= 2:
        return unknown(level.reason or f"/{name}: {level.value} is none of 0, 1, 2")
    if level.value < 2:
        return warn(
            f"{'off' if level.value == 0 else 'partial'} ({level.value})", "sudo sysctl kernel.randomize_va_space=2"
        )
    own = read_text(machine.root, "proc/self/personality", 4096)
    if not re.fullmatch(r"[0-9a-f]{1,16}", own.value or ""):
        return unknown(f"2, but not whether this process has it: {own.reason or brief(own.value or '')}")
    if int(own.value or "", 16) & NO_RANDOMIZE:
        return warn("off for this process and its children", "start it without `setarch -R` and outside of a debugger")
    return ok("full (2)")


def thp(machine: Machine) -> Finding:
    """Chases ask for huge pages by madvise(); with ``never`` they would time page walks (mm/transhuge.rst)."""
    folder = "sys/kernel/mm/transparent_hugepage"
    chosen = _chosen(machine, f"{folder}/enabled")
    if chosen.value is None:
        return unknown(chosen.reason)
    pmd = read_int(machine.root, f"{folder}/hpage_pmd_size").value
    if pmd is not None and pmd > HUGE_BYTES:
        text = f"a huge page is {pmd >> 20} MiB here, chases ask for 2 MiB and get small pages"
        return warn(text, "boot a kernel with pages of 4 KiB")
    size = _chosen(machine, f"{folder}/hugepages-2048kB/enabled")  # since Linux 6.8, each size may differ
    if size.value is None and not size.absent:
        return unknown(size.reason)
    own = size.value not in (None, "inherit")
    choice = (size.value if own else chosen.value) or ""
    if choice == "never":
        return warn("never", f"echo madvise | sudo tee /{folder}{'/hugepages-2048kB' if own else ''}/enabled")
    return (
        ok(choice) if choice in ("always", "madvise") else unknown(f"{brief(choice)}: none of always, madvise, never")
    )


def _chosen(machine: Machine, name: str) -> Fact[str]:
    """The chosen word of "always [madvise] never"."""
    text = read_text(machine.root, name, 4096)
    match = re.search(r"\[([^]]+)\]", text.value or "")
    reason = text.reason or f"/{name}: no choice in {brief(text.value or '')!r}"
    return Fact(match[1]) if match else Fact(None, reason, text.absent)


def mitigations(machine: Machine) -> Finding:
    """Holes left open are speed that production will not have (Documentation/admin-guide/hw-vuln)."""
    names = names_in(machine.root, VULNERABILITIES)
    if not names.value:
        return unknown(names.reason or f"/{VULNERABILITIES}: empty")
    open_, unclear = [], []
    for name in names.value:
        text = read_text(machine.root, f"{VULNERABILITIES}/{name}", 4096)
        if name == "old_microcode":  # the check of microcode tells it
            continue
        # "KVM: .." and "Processor vulnerable" (itlb_multihit) bear on guests of this machine alone; "SMT vulnerable" is
        # the default beside SMT.
        if re.search(r"^Vulnerable|; (BHI|PBRSB-eIBRS): Vulnerable", text.value or ""):
            open_.append(brief(name, 40))
        elif not re.match(r"Not affected|Mitigation|KVM|Processor vulnerable", text.value or ""):
            unclear.append(f"{brief(name, 40)} ({brief(text.value) if text.value else text.reason})")
    n = len(names.value) - ("old_microcode" in names.value)
    if open_:
        more = f" and {len(open_) - 8} more" if len(open_) > 8 else ""
        close = f"grep -i vulnerable /{VULNERABILITIES}/*; update microcode, boot without mitigations=off"
        return warn(f"{len(open_)} of {n} open: {', '.join(open_[:8])}{more}", close)
    if unclear or not n:
        return unknown(f"{len(unclear)} of {n} not told: {unclear[0]}" if unclear else f"/{VULNERABILITIES}: empty")
    return ok(f"{n} kinds, each mitigated or not of this CPU")


def numa_balancing(machine: Machine) -> Finding:
    """It unmaps pages to see who touches them, and moves them between nodes (sysctl/kernel.rst, numa_balancing)."""
    mode = read_int(machine.root, "proc/sys/kernel/numa_balancing")
    if mode.value is None:
        there = names_in(machine.root, "proc/sys/kernel").value
        return ok("not in this kernel") if mode.absent and there else unknown(mode.reason)
    if mode.value == 0:
        return ok("off")
    if not 1 <= mode.value <= 3:
        return unknown(f"/proc/sys/kernel/numa_balancing: {mode.value} is none of 0 to 3")
    folder = "sys/devices/system/node"
    nodes = first_known(read_cpulist(machine.root, f"{folder}/{name}") for name in ("has_memory", "online"))
    if nodes.value is not None and len(nodes.value) < 2 and mode.value == 1:
        return ok("on, but there is one node of memory")
    n = f"{len(nodes.value)} nodes of memory" if nodes.value else f"the nodes are not known ({nodes.reason})"
    return warn(f"on ({mode.value}), {n}", "sudo sysctl kernel.numa_balancing=0")


def swap(machine: Machine) -> Finding:
    """Memory that was swapped out comes back by faults of milliseconds, in the middle of a sample."""
    total, free = (meminfo_bytes(field, machine.root) for field in ("SwapTotal", "SwapFree"))
    if total.value == 0:
        return ok("none")
    if total.value is None or free.value is None or free.value > total.value:
        return unknown(total.reason or free.reason or "/proc/meminfo: SwapFree is more than SwapTotal")
    used = total.value - free.value
    if used:
        return warn(f"{used / 2**20:.0f} of {total.value / 2**20:.0f} MiB in use", "sudo swapoff -a")
    return ok(f"{total.value / 2**20:.0f} MiB, none of it in use")


def perf_events(machine: Machine) -> Finding:
    """Energy counters are system-wide events: level 0 or less, or CAP_PERFMON (admin-guide/perf-security.rst)."""
    level = read_int(machine.root, "proc/sys/kernel/perf_event_paranoid")
    if level.value is None:
        return unknown(f"{level.reason}{', as in a kernel without perf events' if level.absent else ''}")
    if level.value <= 0:
        return ok(f"perf_event_paranoid {level.value}")
    status = read_text(machine.root, "proc/self/status").value or ""
    match = re.search(r"^CapEff:\s*([0-9a-f]{1,16})\s*$", status, re.MULTILINE)
    if match and int(match[1], 16) & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN):
        return ok(f"perf_event_paranoid {level.value}, which does not bind this process (capabilities)")
    return warn(f"perf_event_paranoid {level.value}", "sudo sysctl kernel.perf_event_paranoid=0")


def microcode(machine: Machine) -> Finding:
    """The version, which decides what mitigations cost; old by the kernel's own list (hw-vuln/old_microcode.rst)."""
    found = per_cpu(machine, "microcode/version")
    update = "install the newest microcode package or firmware, and reboot"
    if len(found.values) > 1:
        return warn(told(found.values, found.unread), update)
    if found.values and found.unread:
        return unknown(told(found.values, found.unread))
    version = Fact(next(iter(found.values))) if found.values else read_cpu(machine.root).microcode
    if version.value is None:
        return unknown(version.reason)
    if machine.virtual.value:
        return unknown(f"{brief(version.value)}, as the hypervisor tells it")
    age = read_text(machine.root, f"{VULNERABILITIES}/old_microcode", 4096).value or ""
    if age.startswith("Vulnerable"):
        return warn(f"{brief(version.value)}, older than this kernel knows of", update)
    return ok(brief(version.value) + ("" if age else "; its age is not told by this kernel"))
