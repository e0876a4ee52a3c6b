"""All that is stored about a host: stable facts, JSON-ready, each one a value or null with a reason."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from cpubench.host.caches import Cache, llc_bytes, read_caches
from cpubench.host.cpulist import format_cpulist
from cpubench.host.fact import ROOT, Fact, first_known, names_in, read_text
from cpubench.host.identity import read_cpu
from cpubench.host.limits import cpu_quota, total_memory_bytes, usable_memory_bytes
from cpubench.host.topology import SYS_CPU, allowed_cpus, raw_cpu_lists, read_topology
from cpubench.host.virtual import read_virtual

# Of Documentation/admin-guide/kernel-parameters: mitigations, CPUs, idle and frequency, timers, memory, accounting.
SPEED_PARAMETERS = (
    r"(mitigations|spectre|spec_|nospec|mds|tsx|l1tf|retbleed|srbds|mmio_|gather_|reg_file|tsa|pti|nopti|nokaslr|ibt"
    r"|isolcpus|nohz|rcu_|rcutree|irqaffinity|nosmt|maxcpus|nr_cpus|possible_cpus|skew_tick|preempt|threadirqs"
    r"|intel_pstate|amd_pstate|intel_idle|processor\.|cpuidle|cpufreq|idle=|haltpoll|nohalt|tsc|clocksource|hpet|highres"
    r"|transparent_hugepage|huge|default_huge|numa|init_on_|slub|slab|swiotlb|iommu|intel_iommu|amd_iommu"
    r"|cgroup|psi|audit|selinux|apparmor|lsm|debug_pagealloc|page_|lockdep|kvm|nested)"
)

DivisorKind = Literal["physical_core", "vcpu", "granted_cpu"]


def collect(root: Path = ROOT) -> dict[str, Any]:
    """What this machine is; ``reasons`` says of each null field why, ``notes`` of others what is doubtful.

    Nothing here changes while a run lasts, but ``memory_bytes``, which is what may be used now.
    """
    allowed = allowed_cpus(root)
    topology = read_topology(root, allowed.value or [])
    cpus = topology.cpus
    cpu = read_cpu(root)
    caches: Fact[tuple[Cache, ...]] = read_caches(cpus[0], root) if cpus else Fact(None, "no CPU is known")
    virtual = read_virtual(root)
    found: dict[str, Fact[Any]] = {
        "hostname": read_text(root, "proc/sys/kernel/hostname"),
        "arch": _arch(root),
        "kernel": read_text(root, "proc/sys/kernel/osrelease"),
        "kernel_cmdline": _kernel_cmdline(root),
        "cpu_vendor": cpu.vendor,
        "cpu_model": cpu.model,
        "cpu_ids": cpu.ids,
        "microcode": cpu.microcode,
        "cpus_allowed": Fact(format_cpulist(cpus) if cpus else None, allowed.reason),
        "cores": Fact([list(core.cpus) for core in topology.cores] or None, topology.note or _unless(cpus)),
        "packages": topology.packages,
        "smt": topology.smt,
        "caches": Fact([_cache_record(c) for c in caches.value] if caches.value else None, caches.reason),
        "llc_bytes": llc_bytes(caches),
        "quota_cpus": cpu_quota(root),
        "memory_total_bytes": total_memory_bytes(root),
        "memory_bytes": usable_memory_bytes(root),
        "thp": _thp(root),
        "clocksource": read_text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": _governor(root, cpus),
        "mitigations": _mitigations(root),
        "virtual": Fact(virtual.value, "; ".join(virtual.evidence) if virtual.value is None else None),
    }
    facts = {name: fact.value for name, fact in found.items()}
    identity = _identity(root, facts)
    found["id"], facts["id"] = identity, identity.value
    doubts = {name: fact.reason for name, fact in found.items() if fact.reason}
    return {
        **facts,
        "virtual_evidence": list(virtual.evidence),
        "cpu_lists": raw_cpu_lists(root),
        "reasons": {name: reason for name, reason in doubts.items() if facts[name] is None},
        "notes": {name: reason for name, reason in doubts.items() if facts[name] is not None},
    }


def divisor(facts: Mapping[str, Any], n_cores_used: int) -> tuple[DivisorKind, float]:
    """The kind and the number by which a rate on ``n_cores_used`` cores is divided to be "per core".

    A machine of which nobody can say whether it is virtual counts as physical; ``facts["reasons"]["virtual"]`` says so.
    """
    if n_cores_used < 1:
        raise ValueError(f"a rate is divided by at least one core, not by {n_cores_used}")
    quota_cpus = facts.get("quota_cpus")
    if quota_cpus is not None and quota_cpus < n_cores_used:
        return "granted_cpu", quota_cpus
    return ("vcpu" if facts.get("virtual") else "physical_core"), n_cores_used


def _unless(cpus: tuple[int, ...]) -> str | None:
    return None if cpus else "no CPU is known"


def _arch(root: Path) -> Fact[str]:
    """The machine's architecture as uname calls it; of another root only what its own files say (Linux 6.1)."""
    told = read_text(root, "proc/sys/kernel/arch")
    return Fact(os.uname().machine) if told.value is None and root == ROOT else told


def _thp(root: Path) -> Fact[str]:
    """The chosen word of "always [madvise] never"."""
    name = "sys/kernel/mm/transparent_hugepage/enabled"
    text = read_text(root, name)
    match = re.search(r"\[([^]]+)\]", text.value or "")
    return Fact(match[1]) if match else Fact(None, text.reason or f"/{name}: no choice in {(text.value or '')[:40]!r}")


def _kernel_cmdline(root: Path) -> Fact[str]:
    """The boot parameters that change speed; the rest, which may hold addresses and secrets, is only counted."""
    text = read_text(root, "proc/cmdline")
    if text.value is None:
        return text
    words = text.value.split()
    told = [word for word in words if re.match(SPEED_PARAMETERS, word)]
    left_out = len(words) - len(told)
    return Fact(" ".join(told), f"{left_out} parameters that do not bear on speed are left out" if left_out else None)


def _governor(root: Path, cpus: tuple[int, ...]) -> Fact[str]:
    """The frequency governor; where the allowed CPUs differ, all the governors: "performance, powersave"."""
    read = [read_text(root, f"{SYS_CPU}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus]
    words = sorted({fact.value for fact in read if fact.value is not None})
    if not words:
        return Fact(None, read[0].reason if read else "no CPU is known")
    missing = sum(fact.value is None for fact in read)
    return Fact(", ".join(words), f"{missing} of {len(read)} CPUs have no readable governor" if missing else None)


def _mitigations(root: Path) -> Fact[dict[str, str | None]]:
    """What the kernel says of each CPU vulnerability, by its name."""
    folder = f"{SYS_CPU}/vulnerabilities"
    names = names_in(root, folder)
    if not names.value:
        return Fact(None, names.reason or f"/{folder}: empty")
    return Fact({name: read_text(root, f"{folder}/{name}").value for name in names.value})


def _cache_record(cache: Cache) -> dict[str, Any]:
    shared = None if cache.shared_cpus is None else format_cpulist(cache.shared_cpus)
    return {"level": cache.level, "kind": cache.kind, "size_bytes": cache.size_bytes, "shared_cpus": shared,
            "reason": cache.reason}  # fmt: skip


def _identity(root: Path, facts: Mapping[str, Any]) -> Fact[str]:
    """SHA-256, in hex, of what makes this the same host: machine-id (else host name), CPU model, allowed CPUs."""
    ids = (read_text(root, name, 4096) for name in ("etc/machine-id", "var/lib/dbus/machine-id"))
    # "uninitialized" is what an image carries before its first boot, the same on every copy of it.
    valid = (i if re.fullmatch(r"(?!0{32})[0-9a-f]{32}", i.value or "") else Fact[str](None, i.reason) for i in ids)
    machine = first_known(valid).value or facts["hostname"]
    if machine is None:  # two unknown hosts are not the same host
        return Fact(None, "neither a machine-id nor a host name")
    content = json.dumps([machine, facts["cpu_model"], facts["cpus_allowed"]], ensure_ascii=True)
    return Fact(hashlib.sha256(content.encode()).hexdigest())
