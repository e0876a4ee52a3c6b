"""The kernels of this build, with what each value needs and whether this host has it."""

from __future__ import annotations

from typing import Any

from cpubench.host.facts import collect
from cpubench.host.topology import read_topology
from cpubench.measure.draft import host_of
from cpubench.measure.variants import Host, Kernel, Request, choose, expanded, name_of
from cpubench.results.names import split_key


def catalogue(kernels: list[Kernel], host: Host | None = None) -> list[dict[str, Any]]:
    """The kernels; their parameters also have ``needs`` and ``here``: None, or why the value cannot be had here."""
    host = host or host_of(collect(), read_topology().cores)
    _, missing = choose(kernels, host, Request("strict", copies=["1"]))
    reasons = {split_key(one.variant)[0]: one.reason for one in missing}
    return [{**kernel, "params": _params(kernel, host, reasons)} for kernel in kernels]


def _params(kernel: Kernel, host: Host, reasons: dict[str, str]) -> list[dict[str, Any]]:
    points: dict[int, list[str]] = {}
    for index, param in expanded(kernel, host.cores):
        points.setdefault(index, []).append(name_of(kernel, param))
    found = []
    for index, param in enumerate(kernel["params"]):
        lost = [reasons[name] for name in points[index] if name in reasons]
        here = lost[0] if len(lost) == len(points[index]) else None
        found.append({**param, "needs": needs(kernel, param), "here": here})
    return found


def needs(kernel: Kernel, param: dict[str, Any]) -> list[str]:
    """What a host must have for one copy, each in a few words."""
    found = []
    if param["place"] == "sibling":
        found.append("a core with two hardware threads")
    elif param["each"] == "pair":
        found.append("two hardware threads")
    elif param["each"] != "count" and (param["place"] == "other" or param["threads"] > 1):
        found.append(f"{max(2, param['threads'])} cores")
    if "files" in kernel["flags"]:
        found.append("a tmpfs")
    if "storage" in kernel["flags"]:
        found.append("a disk at --workdir")
    if param["relative"]:
        found.append(f"a known size of {param['relative']}")
    if param["held_bytes"] >= 1 << 20:
        found.append(f"{param['held_bytes'] >> 20} MiB")
    return found
