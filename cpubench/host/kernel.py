"""Which kernel and system this is, and how they are set where that bears on speed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cpubench.host.fact import ROOT, Fact, names_in, read_text
from cpubench.host.topology import SYS_CPU

# Of Documentation/admin-guide/kernel-parameters: mitigations, CPUs, idle and frequency, timers, memory, accounting.
SPEED_PARAMETERS = (
    r"(mitigations|spectre|spec_|nospec|mds|tsx|l1tf|retbleed|srbds|mmio_|gather_|reg_file|tsa|pti|nopti|nokaslr|ibt"
    r"|isolcpus|nohz|rcu_|rcutree|irqaffinity|nosmt|maxcpus|nr_cpus|possible_cpus|skew_tick|preempt|threadirqs"
    r"|intel_pstate|amd_pstate|intel_idle|processor\.|cpuidle|cpufreq|idle=|haltpoll|nohalt|tsc|clocksource|hpet|highres"
    r"|transparent_hugepage|huge|default_huge|numa|init_on_|slub|slab|swiotlb|iommu|intel_iommu|amd_iommu"
    r"|cgroup|psi|audit|selinux|apparmor|lsm|debug_pagealloc|page_|lockdep|kvm|nested)"
)


def read_arch(root: Path) -> Fact[str]:
    """The machine's architecture as uname calls it; of another root only what its own files say (Linux 6.1)."""
    told = read_text(root, "proc/sys/kernel/arch")
    return Fact(os.uname().machine) if told.value is None and root == ROOT else told


def read_thp(root: Path) -> Fact[str]:
    """The chosen word of "always [madvise] never"."""
    name = "sys/kernel/mm/transparent_hugepage/enabled"
    text = read_text(root, name)
    match = re.search(r"\[([^]]+)\]", text.value or "")
    return Fact(match[1]) if match else Fact(None, text.reason or f"/{name}: no choice in {(text.value or '')[:40]!r}")


def read_kernel_cmdline(root: Path) -> Fact[str]:
    """The boot parameters that change speed; the rest, which may hold addresses and secrets, is only counted."""
    text = read_text(root, "proc/cmdline")
    if text.value is None:
        return text
    words = text.value.split()
    told = [word for word in words if re.match(SPEED_PARAMETERS, word)]
    left_out = len(words) - len(told)
    return Fact(" ".join(told), f"{left_out} parameters that do not bear on speed are left out" if left_out else None)


def read_governor(root: Path, cpus: tuple[int, ...]) -> Fact[str]:
    """The frequency governor; where the allowed CPUs differ, all the governors: "performance, powersave"."""
    read = [read_text(root, f"{SYS_CPU}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus]
    words = sorted({fact.value for fact in read if fact.value is not None})
    if not words:
        return Fact(None, read[0].reason if read else "no CPU is known")
    missing = sum(fact.value is None for fact in read)
    return Fact(", ".join(words), f"{missing} of {len(read)} CPUs have no readable governor" if missing else None)


def read_mitigations(root: Path) -> Fact[dict[str, str | None]]:
    """What the kernel says of each CPU vulnerability, by its name."""
    folder = f"{SYS_CPU}/vulnerabilities"
    names = names_in(root, folder)
    if not names.value:
        return Fact(None, names.reason or f"/{folder}: empty")
    return Fact({name: read_text(root, f"{folder}/{name}").value for name in names.value})


def read_os(root: Path = ROOT) -> Fact[str]:
    """What the distribution calls itself (os-release(5))."""
    reasons = []
    for name in ("etc/os-release", "usr/lib/os-release"):
        text = read_text(root, name, 1 << 16)
        match = re.search(r"""^PRETTY_NAME=["']?([^"'\n]+)["']?$""", text.value or "", re.MULTILINE)
        if match:
            return Fact(match[1].strip())
        reasons.append(text.reason or f"/{name}: no PRETTY_NAME")
    return Fact(None, "; ".join(reasons))


def read_libc(root: Path = ROOT) -> Fact[str]:
    """The C library of this process, which is that of no other root."""
    if root != ROOT:
        return Fact(None, "the C library of another root is not loaded here")
    try:
        told = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):  # musl has no such name
        told = None
    return Fact(told) if told else Fact(None, "the C library does not tell its version")


def read_page_bytes(root: Path = ROOT) -> Fact[int]:
    """Bytes of a page of memory, which no file tells."""
    return Fact(os.sysconf("SC_PAGE_SIZE")) if root == ROOT else Fact(None, "no file tells it of another root")
