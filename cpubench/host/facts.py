"""All that is stored about a host: stable facts, JSON-ready, each one a value or null with a reason."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from cpubench.host import check_clocks, kernel, limits
from cpubench.host.caches import Cache, caches_by_cpu, instances, llc_bytes
from cpubench.host.cgroup import read_hierarchy
from cpubench.host.check import Finding, machine
from cpubench.host.classes import read_classes
from cpubench.host.container import read_container
from cpubench.host.cpulist import format_cpulist
from cpubench.host.fact import ROOT, Fact, first_known, read_text
from cpubench.host.firmware import read_firmware
from cpubench.host.frequency import read_frequency
from cpubench.host.identity import read_cpu
from cpubench.host.mounts import read_file_systems
from cpubench.host.nodes import Node, read_nodes
from cpubench.host.rlimits import read_rlimits
from cpubench.host.topology import other_cpus, raw_cpu_lists, read_topology

# Of one run all passes have the same: one that goes on after a boot into another kernel would be of two machines.
STANDING = ("kernel", "kernel_cmdline", "microcode", "mitigations", "firmware", "virtual", "quota_cpus", "governor",
            "turbo", "smt", "thp", "clocksource", "page_bytes")  # fmt: skip
HERE = ("boot", "hostname")  # any of them being the same, an id that is the same is of the same machine
DivisorKind = Literal["physical_core", "vcpu", "granted_cpu"]


def collect(root: Path = ROOT) -> dict[str, Any]:
    """What this machine is; ``reasons`` says of each null field why, ``notes`` of others what is doubtful.

    Nothing here changes while a run lasts, but ``memory_bytes``, which is what may be used now.
    """
    subject = machine(root)
    allowed, virtual = subject.allowed, subject.virtual
    topology = read_topology(root, allowed.value or [])
    cpus = topology.cpus
    cpu, container, nodes = read_cpu(root), read_container(root), read_nodes(root)
    others = other_cpus(cpus, root)
    memory = limits.total_memory_bytes(root)
    seen = subject.cpus or cpus[:1]  # those with a folder; without any, the first one says what is missing
    by_cpu = caches_by_cpu(seen, root)
    caches: Fact[tuple[Cache, ...]] = by_cpu[seen[0]] if seen else Fact(None, "no CPU is known")
    classes = read_classes(seen, by_cpu, root)
    found: dict[str, Fact[Any]] = {
        "hostname": read_text(root, "proc/sys/kernel/hostname"),
        "arch": kernel.read_arch(root),
        "kernel": read_text(root, "proc/sys/kernel/osrelease"),
        "kernel_cmdline": kernel.read_kernel_cmdline(root),
        "os": kernel.read_os(root),
        "libc": kernel.read_libc(root),
        "firmware": read_firmware(root),
        "virtual": Fact(virtual.value, "; ".join(virtual.evidence) if virtual.value is None else None),
        "container": Fact(container.kind, container.doubt),
        "cpu_vendor": cpu.vendor,
        "cpu_model": cpu.model,
        "cpu_ids": cpu.ids,
        "microcode": cpu.microcode,
        "cpus_allowed": Fact(format_cpulist(cpus) if cpus else None, allowed.reason),
        "cpus_not_allowed": Fact(None if others.value is None else format_cpulist(others.value), others.reason),
        "cores": Fact([list(core.cpus) for core in topology.cores] or None, topology.note or _unless(cpus)),
        "core_classes": _told(classes, [{"name": c.name, "cpus": list(c.cpus)} for c in classes.value or ()]),
        "smt": topology.smt,
        "packages": topology.packages,
        "dies": topology.dies,
        "numa_nodes": _told(_weighed(nodes, memory), [_node_record(node) for node in nodes.value or ()]),
        "caches": Fact([_cache_record(c) for c in caches.value] if caches.value else None, caches.reason),
        "cache_instances": instances(by_cpu),
        "llc_bytes": llc_bytes(caches),
        "frequency": read_frequency(seen, root),
        "turbo": _turbo(check_clocks.turbo(subject)),
        "governor": kernel.read_governor(root, seen),
        "quota_cpus": limits.cpu_quota(root),
        "cgroup": read_hierarchy(root),
        "rlimits": read_rlimits(root),
        "pids_max": limits.pids_max(root),
        "memory_total_bytes": memory,
        "memory_limit_bytes": limits.cgroup_memory_bytes(root),
        "memory_bytes": limits.usable_memory_bytes(root),
        "page_bytes": kernel.read_page_bytes(root),
        "thp": kernel.read_thp(root),
        "clocksource": read_text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "mitigations": kernel.read_mitigations(root),
        "file_systems": read_file_systems(root),
    }
    facts = {name: fact.value for name, fact in found.items()}
    identity = _identity(root, facts)
    found["id"], facts["id"] = identity, identity.value
    return {
        **facts,
        "virtual_evidence": list(virtual.evidence),
        "container_evidence": list(container.evidence),
        "cpu_lists": raw_cpu_lists(root),
        **reasons_and_notes(found),
    }


def standing(facts: Mapping[str, Any]) -> dict[str, str]:
    """A hash of each fact that must stay as it is while a run lasts; 16 hexadecimal digits each."""
    return {name: _digest(facts.get(name)) for name in STANDING}


def here(facts: Mapping[str, Any], root: Path = ROOT) -> dict[str, str]:
    """Likewise a hash of this boot's id and of the host name, as far as they are known: see ``elsewhere``."""
    boot = read_text(root, "proc/sys/kernel/random/boot_id", 100).value
    known = zip(HERE, (boot, facts.get("hostname")), strict=True)
    return {name: _digest(value) for name, value in known if value is not None}


def elsewhere(stood: Mapping[str, str], facts: Mapping[str, Any], root: Path = ROOT) -> bool:
    """Whether this may be another machine than the one that ``stood``, though its id is the same.

    A machine-id is that of the image it came with, and copies of the image share it. The same boot is the same machine;
    after another one the host name has to be the same, which tells nothing in a container.
    """
    now, names = here(facts, root), [name for name in HERE if name in stood]
    if _contained(facts) and "boot" in names:
        names = ["boot"]
    return not any(stood[name] == now.get(name) for name in names) and (bool(names) or facts["id"] is None)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _contained(facts: Mapping[str, Any]) -> bool:
    return facts["container"] not in (None, "none")


def unlike(stood: Mapping[str, str], facts: Mapping[str, Any]) -> list[str]:
    """Names of the facts that are not as they stood."""
    now = standing(facts)
    return [name for name, digest in stood.items() if name in now and now[name] != digest]


def reasons_and_notes(found: Mapping[str, Fact[Any]]) -> dict[str, dict[str, str]]:
    """``reasons`` of the facts without a value, ``notes`` beside those that have one."""
    doubts = {name: fact.reason for name, fact in found.items() if fact.reason}
    return {
        "reasons": {name: reason for name, reason in doubts.items() if found[name].value is None},
        "notes": {name: reason for name, reason in doubts.items() if found[name].value is not None},
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


def _told(fact: Fact[Any], value: Any) -> Fact[Any]:
    """The fact with its value in JSON's terms."""
    return Fact(None if fact.value is None else value, fact.reason)


def _turbo(found: Finding) -> Fact[str]:
    """ "on" or "off", as the check of it found; of "off" it says by what."""
    return Fact({"ok": "on", "warn": "off"}.get(found.status), None if found.status == "ok" else found.found)


def _weighed(nodes: Fact[tuple[Node, ...]], memory: Fact[int]) -> Fact[tuple[Node, ...]]:
    """The nodes, with a doubt where their memory is not about that of the machine: the two are counted apart."""
    sizes = [node.memory_bytes for node in nodes.value or ()]
    known = sum(size for size in sizes if size is not None)
    if not sizes or None in sizes or not memory.value or 0.95 <= known / memory.value <= 1.05:
        return nodes
    doubt = f"the nodes have {known} B, /proc/meminfo has {memory.value} B"
    return Fact(nodes.value, "; ".join(filter(None, (nodes.reason, doubt))))


def _node_record(node: Node) -> dict[str, Any]:
    cpus = None if node.cpus is None else format_cpulist(node.cpus)
    return {"id": node.id, "cpus": cpus, "memory_bytes": node.memory_bytes}


def _cache_record(cache: Cache) -> dict[str, Any]:
    shared = None if cache.shared_cpus is None else format_cpulist(cache.shared_cpus)
    return {"level": cache.level, "kind": cache.kind, "size_bytes": cache.size_bytes, "shared_cpus": shared,
            "reason": cache.reason}  # fmt: skip


def _identity(root: Path, facts: Mapping[str, Any]) -> Fact[str]:
    """SHA-256, in hex, of what makes this the same host: machine-id (else host name), CPU model, allowed CPUs.

    In a container the machine-id may be the image's, and the host name is a new one for each: it does not stand in.
    """
    ids = (read_text(root, name, 4096) for name in ("etc/machine-id", "var/lib/dbus/machine-id"))
    # "uninitialized" is what an image carries before its first boot, the same on every copy of it.
    valid = (i if re.fullmatch(r"(?!0{32})[0-9a-f]{32}", i.value or "") else Fact[str](None, i.reason) for i in ids)
    inside = _contained(facts)
    machine = first_known(valid).value or (None if inside else facts["hostname"])
    if machine is None:  # two unknown hosts are not the same host
        unnamed = "no machine-id, and the host name of a container is no machine's"
        return Fact(None, unnamed if inside else "neither a machine-id nor a host name")
    content = json.dumps([machine, facts["cpu_model"], facts["cpus_allowed"]], ensure_ascii=True)
    doubt = "in a container the machine-id may be the image's, the same on other machines"
    return Fact(hashlib.sha256(content.encode()).hexdigest(), doubt if inside else None)
