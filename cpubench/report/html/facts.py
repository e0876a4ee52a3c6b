"""What a candidate is, field by field, as text; what a run does not tell is None, never a guess."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cpubench.results.parse import shown

Json = Mapping[str, Any]
LIMIT = 300  # characters of a fact: a kernel command line of 200 CPUs' settings is longer, and its end is kept
UNKNOWN = "not recorded"


def facts(host: Json, plan: Json, power: Json | None = None) -> dict[str, str | None]:
    """Every field of the page on candidates, in its order; host and plan are foreign, whatever they hold. ``power`` is
    that of the run's score."""
    made: dict[str, str | None] = {}
    for label, key, tell in FIELDS:
        value = host.get(key) if key else None
        made[label] = None if value is None else _short(tell(value))
    build = plan.get("build")
    divisor = plan["divisor"]
    made |= {
        "counted per": f"{divisor['n']:g} x {divisor['kind']}",
        "CPUs measured": str(len(plan["cpus"])),
        "power caps": _short(_caps(plan["caps"], power)),
        "power source": _short(_source(power)),
        "profile": _short(f"{plan['profile']}, {plan['samples']} samples of {plan['sample_ns'] / 1e6:g} ms a pass"),
        "build": _short(_build(build)) if isinstance(build, Mapping) else None,
        "cpubench": _short(str(plan["cpubench"])),
    }
    return made


def _caps(caps: Sequence[str], power: Json | None) -> str:
    """Each cap level with its watts, and whether it was shown to hold."""
    known = {row["level"]: row for row in (power or {"levels": []})["levels"]}
    told = []
    for cap in caps:
        row = known.get(cap)
        watts = "" if row is None or row["cap_watts"] is None else f"{row['cap_watts']:.4g} W, "
        state = "" if row is None else f" ({watts}{row['state']})"
        told.append("none set" if cap == "as-is" else f"{cap}{state}")
    return ", ".join(told)


def _source(power: Json | None) -> str:
    if power is None or not power["meter"]:
        return "none"
    return f"{power['meter']}: watts of {power['scope']}, {power['provenance']}"


def unknown(host: Json) -> dict[str, str]:
    """Why a field has no value, by its name, where the host says so."""
    reasons = host.get("reasons")
    if not isinstance(reasons, Mapping):
        return {}
    return {label: _short(f"not known: {_text(reasons[key])}") for label, key, _ in FIELDS if reasons.get(key)}


def facts_over_runs(runs: Sequence[Json]) -> dict[str, str | None]:
    """The facts of all runs of a candidate: what is not the same in all is said of each, "performance or powersave"."""
    made: dict[str, str | None] = {}
    for name in runs[0]["facts"]:
        told = {run["facts"][name]: run["unknown"].get(name, UNKNOWN) for run in runs}
        made[name] = next(iter(told)) if len(told) == 1 else " or ".join(value or why for value, why in told.items())
    return made


def in_virtual_machine(candidate: Json) -> bool:
    """Whether one of its runs was made in a virtual machine, or does not say it in our words."""
    return any(run["facts"]["virtual machine"] not in ("no", None) for run in candidate["runs"])


def _short(text: str) -> str:
    return shown(text, LIMIT)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _bytes(value: Any) -> str:
    if type(value) not in (int, float) or value < 0:
        return _text(value)
    size, unit = (value / 2**30, "GiB") if value >= 2**30 else (value / 2**20, "MiB")
    return f"{size:.4g} {unit}"


def _yes(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, _text(value)) if isinstance(value, bool) else _text(value)


def _cores(value: Any) -> str:
    if not isinstance(value, list) or not all(isinstance(core, list) for core in value):
        return _text(value)
    threads = sum(map(len, value))
    return f"{len(value)} cores, {threads} threads"


def _caches(value: Any) -> str:
    if not isinstance(value, list):
        return _text(value)
    kinds = {"Data": "d", "Instruction": "i", "Unified": ""}
    told = [f"L{one.get('level')}{kinds.get(str(one.get('kind')), '')} {cache_size(one.get('size_bytes'))}"
            for one in value if isinstance(one, Mapping)]  # fmt: skip
    return ", ".join(told)


def cache_size(size: Any) -> str:
    """ "32 KiB", "1.5 MiB"; "?" of what is no size."""
    if type(size) not in (int, float) or size <= 0:
        return "?"
    return f"{size / 2**20:.4g} MiB" if size >= 2**20 else f"{size / 2**10:.4g} KiB"


def _nodes(value: Any) -> str:
    return f"{len(value)}" if isinstance(value, list) else _text(value)


def _mitigations(value: Any) -> str:
    if not isinstance(value, Mapping):
        return _text(value)
    affected = [f"{name}: {text}" for name, text in value.items() if text != "Not affected"]
    return "; ".join(affected) or "not affected by any"


def _build(build: Json) -> str:
    parts = [str(build.get("compiler", "?")), str(build.get("flags", "")), str(build.get("libc", ""))]
    return ", ".join(filter(None, parts)) + f", copy {str(build.get('copy_sha256', '?'))[:12]}"


FIELDS: list[tuple[str, str, Callable[[Any], str]]] = [
    ("host", "hostname", _text),
    ("host id", "id", lambda value: _text(value)[:12]),
    ("architecture", "arch", _text),
    ("CPU", "cpu_model", _text),
    ("family/model/stepping", "cpu_ids", _text),
    ("microcode", "microcode", _text),
    ("sockets", "packages", _text),
    ("cores", "cores", _cores),
    ("SMT", "smt", _yes),
    ("clock", "frequency", _text),
    ("turbo", "turbo", _text),
    ("governor", "governor", _text),
    ("caches", "caches", _caches),
    ("NUMA nodes", "numa_nodes", _nodes),
    ("memory", "memory_total_bytes", _bytes),
    ("memory modules", "", _text),
    ("firmware", "firmware", _text),
    ("board controller", "", _text),
    ("kernel", "kernel", _text),
    ("kernel command line", "kernel_cmdline", _text),
    ("mitigations", "mitigations", _mitigations),
    ("huge pages", "thp", _text),
    ("clock source", "clocksource", _text),
    ("virtual machine", "virtual", _yes),
    ("container", "container", _text),
    ("CPU quota", "quota_cpus", _text),
    ("inlet temperature", "", _text),
]
