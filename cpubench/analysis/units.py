"""The units of a fleet by their model: medians, units that are odd and in what, and tiers of models.

A unit is a host with its runs at one cap level; the run is the unit of replication of a host, the host that of a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from cpubench.analysis.differences import HOST
from cpubench.analysis.estimates import bounded_exp, of_runs, unpaired
from cpubench.analysis.outliers import NEEDED, Spread, is_odd, named, spread
from cpubench.analysis.tiers import tiers
from cpubench.analysis.verdicts import verdicts
from cpubench.results.parse import shown

Json = dict[str, Any]
Key = tuple[str, str, str, str]  # level, what its cap limits, kind of divisor, model: units of one are like each other
MIN_UNITS = 3  # of a model, to say something of the model
MEASURE = "per_core"
UNKNOWN = "not recorded"
LEFT_OUT = {"hostname", "cpu_model", "memory_total_bytes", "virtual"}
MORE = {"firmware": "firmware", "frequency": "clock", "dies": "dies", "libc": "libc",
        "memory_modules": "memory modules", "page_bytes": "page bytes", "container": "container"}  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """One host at one level: the logs of its runs' points, those that may be published."""

    name: str
    machine: str  # its host id; the name where that is unknown
    model: str
    kind: str  # of the divisor
    cap: str
    logs: list[float]
    half_width: float  # in logs, of its runs on average
    facts: Mapping[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # why others of its runs do not count
    cap_scope: str = ""  # what the cap limits: 200 W of packages are not 200 W of a node

    @property
    def log(self) -> float:
        return sum(self.logs) / len(self.logs)


def facts_of(host: Mapping[str, Any], cpus: int, cores: float) -> dict[str, str]:
    """What of a host's facts bears on its speed, by a reader's words; memory to three digits: firmware takes some."""
    made = {words: _text(host.get(key)) for key, words in (HOST | MORE).items() if key not in LEFT_OUT}
    made |= {"memory": _size(host.get("memory_total_bytes")), "cores": f"{cores:g}", "CPUs measured": str(cpus)}
    nodes = host.get("numa_nodes")
    if isinstance(nodes, list):
        made["memory by node"] = ", ".join(_size(n.get("memory_bytes")) for n in nodes if isinstance(n, dict))
    mitigations = host.get("mitigations")
    if isinstance(mitigations, dict):
        made |= {f"mitigation of {shown(str(key), 40)}": _text(value) for key, value in mitigations.items()}
    return {what: text for what, text in made.items() if text != UNKNOWN}


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return shown(value if isinstance(value, str) else json.dumps(value, sort_keys=True), 300)


def _size(value: Any) -> str:
    return f"{value / 2**30:.3g} GiB" if type(value) in (int, float) and value > 0 else UNKNOWN


def fleet_of(units: Sequence[Unit]) -> Json:
    """Models with their medians, odd units with what differs in them, and tiers, each of one level of one scope and one
    kind of divisor."""
    groups: dict[Key, list[Unit]] = {}
    for one in units:
        if one.logs:
            groups.setdefault((one.cap, one.cap_scope, one.kind, one.model), []).append(one)
    models = [_model(key, members) for key, members in sorted(groups.items())]
    odd = [found for key, members in sorted(groups.items()) for found in _odd(key, members)]
    ordered: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for (*list_, model), members in sorted(groups.items()):
        ordered.setdefault((list_[0], list_[1], list_[2]), {})[model] = _by_machine(members)
    made = [_tiers(*one, models_, len(ordered)) for one, models_ in ordered.items()]
    return {"models": models, "odd": odd, "tiers": made, "one_machine": _shared(units)}


def _by_machine(members: Sequence[Unit]) -> list[float]:
    """A log for each machine: names that share one are one unit, whatever an inventory calls them."""
    machines: dict[str, list[float]] = {}
    for one in members:
        machines.setdefault(one.machine, []).append(one.log)
    return [sum(logs) / len(logs) for logs in machines.values()]


def _model(key: Key, members: Sequence[Unit]) -> Json:
    cap, scope, kind, model = key
    logs = _by_machine(members)
    among = spread(logs)
    return {
        "model": model, "kind": kind, "cap": cap, "cap_scope": scope, "units": len(logs),
        "runs": sum(len(one.logs) for one in members), "median": bounded_exp(among.middle),
        "lowest": bounded_exp(min(logs)), "highest": bounded_exp(max(logs)),
        "spread_percent": 100 * (bounded_exp(among.scale) - 1) if len(logs) >= MIN_UNITS else None,
        "odd_reason": None if among.limit else f"{NEEDED} units are needed to call one odd, here are {len(logs)}",
    }  # fmt: skip


def _odd(key: Key, members: Sequence[Unit]) -> list[Json]:
    cap, scope, kind, model = key
    among: Spread = spread(_by_machine(members))
    odd = [one for one in members if is_odd(one.log, one.half_width, among)]
    usual = [one.facts for one in members if one not in odd]
    return [
        {"unit": one.name, "model": model, "kind": kind, "cap": cap, "cap_scope": scope,
         "points": bounded_exp(one.log), "ratio": bounded_exp(one.log - among.middle),
         "z": (one.log - among.middle) / among.scale,
         "limit": among.limit, "others": len(usual), "differs": named(one.facts, usual) if usual else []}
        for one in sorted(odd, key=lambda one: -abs(one.log - among.middle))
    ]  # fmt: skip


def _tiers(cap: str, scope: str, kind: str, models: Mapping[str, Sequence[float]], tables: int) -> Json:
    """Models in tiers, by intervals over their units; ``left_out`` have fewer than three."""
    enough = {model: np.array(logs) for model, logs in models.items() if len(logs) >= MIN_UNITS}
    left = [model for model in models if model not in enough]
    found: Json = {"cap": cap, "cap_scope": scope, "kind": kind, "tiers": [], "reason": None, "left_out": left}
    names, estimates = list(enough), [of_runs(logs) for logs in enough.values()]
    if len(names) < 2:
        return found | {"reason": f"two models with {MIN_UNITS} units are needed, here are {len(names)}"}
    places = list(combinations(range(len(names)), 2))
    words = verdicts([unpaired(estimates[a], estimates[b]) for a, b in places], tables=tables)
    pairs = {at: {"headline": {MEASURE: {"verdict": one.word}}} for at, one in zip(places, words, strict=True)}
    made = tiers([float(one.log) for one in estimates], pairs, MEASURE)
    return found | {"tiers": [[names[at] for at in tier] for tier in made]}


def _shared(units: Sequence[Unit]) -> list[list[str]]:
    """Names that have one host id: one machine under several names, or clones of one image."""
    names: dict[str, dict[str, None]] = {}
    for one in units:
        names.setdefault(one.machine, {})[one.name] = None
    return [list(found) for found in names.values() if len(found) > 1]
