"""The runs of a report: each loaded and reduced in turn to what the page needs, and put together by candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cpubench.analysis.members import Member, member
from cpubench.analysis.over_runs import score_over_runs
from cpubench.analysis.portrait import portrait
from cpubench.analysis.scenarios import Scenario
from cpubench.analysis.score import score
from cpubench.errors import UsageError
from cpubench.report.html.facts import facts, facts_over_runs, unknown
from cpubench.results.load import load_run
from cpubench.results.parse import located, shown

Json = dict[str, Any]


@dataclass(frozen=True)
class Loaded:
    """A run, reduced to what the report needs of it."""

    file: Path
    folder: str
    key: tuple[int, str, str]  # runs with the same are one candidate: argument, host, side of run --ab
    member: Member
    score: Json
    told: Json


def loaded(at: int, file: Path, reference: Json, scenario: Scenario, signed_by: str | None) -> Loaded:
    """The run of a file; ``at`` is the position of the argument that means it."""
    run = load_run(file)
    folder = shown(file.parent.resolve().name, 80)  # its path is of this machine, and no part of a report
    try:
        document = score(run, reference, scenario.name, {scenario.name: scenario})
        made = member(run, folder, reference, scenario, document)
        drawn = portrait(run, reference, scenario)
    except UsageError as fault:
        raise located(file, fault) from None
    plan = run.plan
    host_id = plan.host_id if plan.host_id != "unknown" else str(file)
    told = {
        "folder": folder, "id": shown(plan.id, 80), "sha256": run.sha256, "created_utc": shown(plan.created_utc, 40),
        "passes": document["passes"], "profile": plan.profile, "stopped": run.stopped.by,
        "half_width_ppm": run.stopped.half_width_ppm, "noise": document["noise"],
        "publishable": document["publishable"], "signer": None if signed_by is None else shown(signed_by, 80),
        "floor_percent": document["floor_percent"], "headline": document["headline"],
        "facts": facts(run.host, msgspec.to_builtins(msgspec.structs.replace(plan, variants=[])),
                       document["power"]),
        "unknown": unknown(run.host), "caches": _caches(run.host), "portrait": drawn, "notes": document["notes"],
    }  # fmt: skip
    return Loaded(file, folder, (at, host_id, plan.side.label if plan.side else ""), made, document, told)


def _caches(host: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The data caches of a host: the level's name and its bytes, whatever else its file says."""
    listed = host.get("caches")
    found = {}
    for one in listed if isinstance(listed, list) else ():
        size = one.get("size_bytes") if isinstance(one, dict) else None
        if type(size) is int and size > 0 and one.get("kind") != "Instruction":
            found[f"L{shown(str(one.get('level')), 4)}"] = size
    return list(found.items())


def check_once(runs: Sequence[Loaded]) -> None:
    """None if no run is there twice."""
    seen: dict[str, Loaded] = {}
    for one in runs:
        first = seen.setdefault(one.member.sha256, one)
        if first is not one:
            raise located(one.file, UsageError("twice", f"is the same run as {shown(str(first.file), 120)}"))


def _check_alike(side: Sequence[Loaded]) -> None:
    """None if all runs are divided alike: points per core of a whole host and of a quota have no common mean."""
    first, told = side[0], [f"{one.score['divisor']['n']:g} x {one.score['divisor']['kind']}" for one in side]
    for one, counted in zip(side, told, strict=True):
        if counted != told[0]:
            text = f"counts per {counted}, {first.folder} of the same host per {told[0]}: give each as its own path"
            raise located(one.file, UsageError("divisor", text))


def candidate(label: str, side: Sequence[Loaded]) -> Json:
    """The runs of one candidate together; UsageError where they are not divided alike."""
    _check_alike(side)
    whole = score_over_runs([one.score for one in side])
    latest = max(side, key=lambda one: one.told["created_utc"])
    host = latest.told["facts"]["host"] or "unknown host"
    folders = [one.folder for one in side]
    name = f"{host} ({folders[0]}{f' and {len(side) - 1} more' if len(side) > 1 else ''})"
    kept = {key: whole[key] for key in whole if key not in ("host", "noise", "power")}
    return {"label": label, "name": host, "title": name, "folders": folders,
            "facts": facts_over_runs([one.told for one in side]), "unknown": latest.told["unknown"],
            "caches": latest.told["caches"], "score": kept, "runs": [one.told for one in side], "tasks": [],
            "power": whole["power"]}  # fmt: skip
