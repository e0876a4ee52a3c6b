"""The limits of this host as a document: what stands, what of it is ours, and what limits beside them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cpubench.errors import UsageError
from cpubench.power import bmc_limits, caps, journal, proxies
from cpubench.power.registers import Host

Json = dict[str, Any]


def limits(host: Host) -> Json:
    """``limits``, ``journal``, ``proxies``, ``problems`` and ``capped_by``: the backend of a cap, or null."""
    found, problems = caps.find(host)
    chosen, why = caps.choose(host)
    rows = [
        {"backend": one.backend, "zone": one.zone, "constraint": x.constraint,
         "watts": None if x.value is None else x.value / 1e6, "enabled": one.enabled, "locked": None,
         "scope": one.scope, "path": f"/{x.place}", "offered": one in chosen and x in one.capped,
         "reason": x.reason or (one.problem.hint if one.problem else "")}
        for one in found for x in one.limits
    ]  # fmt: skip
    bmc = bmc_limits.dcmi_limit(host.root)
    if isinstance(bmc, bmc_limits.BmcLimit):
        rows.append({
            "backend": bmc.backend, "zone": "node", "constraint": "limit", "watts": bmc.watts, "enabled": bmc.active,
            "locked": None, "scope": "wall", "path": " ".join(bmc_limits.DCMI), "offered": False,
            "reason": "exceeding it switches the host off" if bmc.powers_off else "read only",
        })  # fmt: skip
    elif bmc is not None:
        problems, why = [*problems, bmc], [*why, bmc]
    return {
        "limits": rows,
        "journal": _journal(host),
        "capped_by": chosen[0].backend if chosen else None,
        "proxies": proxies.in_force(host),
        "problems": [asdict(problem) for problem in (problems if chosen else why)],
    }


def _journal(host: Host) -> Json | None:
    """What of ours is in force, by whom, and whether that process lives; a spoiled one is its fault."""
    try:
        left = journal.load(host.root)
        if left is None:
            return None
        if left.boot_id != journal.boot_id(host.root):
            state = "of another boot"
        else:
            state = "kept" if left.kept else "in force" if journal.owner_lives(host.root, left) else "stale"
    except UsageError as error:
        return {"state": "unreadable", "text": str(error)}
    entries = [{"key": x.key, "path": f"/{x.place}", "old": x.old, "written": x.ours[-1]} for x in left.entries]
    return {"state": state, "pid": left.pid, "utc": left.utc, "entries": entries}


def caps_document(host: Host) -> list[Json]:
    """The ``caps`` of ``cpubench power probe``: one for each backend, with its zones and what is in their way."""
    found, problems = caps.find(host)
    made = []
    for backend in dict.fromkeys(one.backend for one in found):
        mine = [one for one in found if one.backend == backend]
        made.append({
            "name": backend,
            "controls": [
                {"zone": one.zone, "scope": one.scope, "socket": one.socket,
                 "watts": [x.value and x.value / 1e6 for x in one.capped],
                 "min_watts": one.low and one.low / 1e6, "max_watts": one.ceiling and one.ceiling / 1e6}
                for one in mine
            ],
            "usable": any(one.problem is None for one in mine),
            "problems": [asdict(one.problem) for one in mine if one.problem],
        })  # fmt: skip
    if problems:
        made.append({"name": "none", "controls": [], "usable": False, "problems": [asdict(one) for one in problems]})
    return made
