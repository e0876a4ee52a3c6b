"""NUMA nodes: which have CPUs, which have memory; a node may have one without the other (Grace, CXL, Optane)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.cpulist import format_cpulist, read_cpulist
from cpubench.host.fact import ROOT, Fact, names_in, read_text

SYS_NODE = "sys/devices/system/node"


@dataclass(frozen=True)
class Node:
    id: int
    cpus: tuple[int, ...] | None  # () for a node of memory alone
    memory_bytes: int | None  # 0 for a node of CPUs alone
    reason: str | None = None  # why one of them is None


def read_nodes(root: Path = ROOT) -> Fact[tuple[Node, ...]]:
    """The online nodes by id; None where the kernel tells of none, which is one implicit node.

    Beside a value, ``reason`` names the nodes that lack CPUs or memory.
    """
    names = names_in(root, SYS_NODE)
    if names.value is None:
        return Fact(None, f"{names.reason}: one implicit node")
    ids = sorted(int(name[4:]) for name in names.value if re.fullmatch(r"node[0-9]{1,6}", name))
    online = read_cpulist(root, f"{SYS_NODE}/online").value
    nodes = tuple(_node(root, number) for number in ids if online is None or number in set(online))
    if not nodes:
        return Fact(None, f"/{SYS_NODE}: no node is online: one implicit node")
    doubts = [node.reason for node in nodes if node.reason]
    for text, chosen in (
        ("memory and no CPU", [n.id for n in nodes if n.cpus == () and n.memory_bytes]),
        ("CPUs and no memory", [n.id for n in nodes if n.cpus and n.memory_bytes == 0]),
        ("neither CPUs nor memory", [n.id for n in nodes if n.cpus == () and n.memory_bytes == 0]),
    ):
        if chosen:
            doubts.append(f"node{'s' if len(chosen) > 1 else ''} {format_cpulist(chosen)}: {text}")
    return Fact(nodes, "; ".join(doubts) or None)


def _node(root: Path, number: int) -> Node:
    folder = f"{SYS_NODE}/node{number}"
    cpus, text = read_cpulist(root, f"{folder}/cpulist"), read_text(root, f"{folder}/meminfo", 1 << 16)
    match = re.search(r"^Node [0-9]+ MemTotal:[ \t]*([0-9]{1,15}) kB$", text.value or "", re.MULTILINE)
    missing = None if match else text.reason or f"/{folder}/meminfo: no MemTotal"
    return Node(
        number,
        None if cpus.value is None else tuple(cpus.value),
        int(match[1]) * 1024 if match else None,
        "; ".join(reason for reason in (cpus.reason, missing) if reason) or None,
    )
