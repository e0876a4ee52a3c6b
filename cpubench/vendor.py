"""The vendor report: which runs are meant, each loaded and reduced in turn, as one document that a page is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from cpubench import __version__
from cpubench.analysis.compare import compare
from cpubench.analysis.members import Member, member
from cpubench.analysis.over_runs import score_over_runs
from cpubench.analysis.portrait import portrait
from cpubench.analysis.ranks import ranks
from cpubench.analysis.reference import load_reference
from cpubench.analysis.scenarios import Scenario, load_scenarios, pick
from cpubench.analysis.score import score
from cpubench.analysis.tiers import comparable, tiers
from cpubench.errors import UsageError
from cpubench.report.html.facts import facts, unknown
from cpubench.report.html.page import SCHEMA, load_report, need_extra, page_of
from cpubench.report.html.prices import load_prices, priced
from cpubench.report.html.refusals import ALLOWED, refusals, status
from cpubench.report.html.sidecar import DATA
from cpubench.report.html.staged import data_beside
from cpubench.report.output import check_output, write_output
from cpubench.results.files import sealed
from cpubench.results.gather import run_files
from cpubench.results.load import load_run
from cpubench.results.parse import located, shown
from cpubench.results.signature import signer

Json = dict[str, Any]
MOST = 8  # candidates that are compared; more are shown as a fleet
LABELS = "ABCDEFGH"
APART = frozenset({"suite", "divisor", "version", "unit", "nothing"})  # codes of two sides that did other work


@dataclass(frozen=True)
class Loaded:
    """A run, reduced to what the report needs of it."""

    file: Path
    folder: str
    key: tuple[int, str, str]  # runs with the same are one candidate: argument, host, side of run --ab
    member: Member
    score: Json
    told: Json


def report_document(
    paths: Sequence[Path], scenario: str = "equal", reference: Path | None = None, prices: Path | None = None,
    allow: Sequence[str] = (), signers: Path | None = None,
) -> Json:  # fmt: skip
    """The sealed document of a report on the runs of some paths. Each path is a candidate, a folder with runs of
    several hosts one for each host. With ``signers`` every run must be signed by one of them."""
    scale, weights = load_reference(reference), pick(load_scenarios(), scenario)
    costs = None if prices is None else load_prices(prices)
    files = [(at, file) for at, path in enumerate(paths) for file in run_files(path)]
    groups: dict[tuple[int, str, str], list[Loaded]] = {}
    for at, file in files:
        one = _loaded(at, file, scale, weights, None if signers is None else signer(file, signers))
        groups.setdefault(one.key, []).append(one)
    sides = list(groups.values())
    _check_once([one for side in sides for one in side])
    fleet = len(sides) > MOST
    labels = [f"U{at + 1}" for at in range(len(sides))] if fleet else list(LABELS[: len(sides)])
    candidates = [_candidate(label, side) for label, side in zip(labels, sides, strict=True)]
    pairs = {} if fleet else _pairs(sides, scale, weights)
    newest = max(run["created_utc"] for one in candidates for run in one["runs"])
    document: Json = {
        "schema": SCHEMA,
        "cpubench": __version__,
        "suite": candidates[0]["score"]["suite"],
        "reference": {key: scale[key] for key in ("name", "description", "divisor_kind", "suite", "sha256")},
        "scenario": {"name": weights.name, "source": weights.source, "families": weights.families,
                     "uncovered": weights.uncovered, "sha256": weights.sha256},
        "newest_utc": newest,
        "fleet": fleet,
        "allowed": list(allow),
        "candidates": candidates,
        "pairs": [_pair(labels, at, made) for at, made in pairs.items()],
        "tiers": {measure: _tiers(labels, candidates, pairs, measure) for measure in ("per_core", "speed")},
        "order": [] if fleet or len(candidates) < 2 else _order(candidates),
        "prices": None if costs is None else {"rows": priced(candidates, costs["candidates"], newest, "R13" in allow)},
    }  # fmt: skip
    document["refusals"] = found = refusals(document)
    document["status"] = status(document, found)
    # As a file holds it: the page that is made now and one that is made of report.json later are the same.
    return sealed(json.loads(json.dumps(document, allow_nan=False)))


def make_report(
    paths: Sequence[Path], output: Path, scenario: str | None = None, reference: Path | None = None,
    prices: Path | None = None, allow: Sequence[str] = (), signers: Path | None = None, paper: str = "a4",
    json_: bool = False,
) -> Json:  # fmt: skip
    """What was made, after writing it: a page of runs, or again of the data of an earlier one."""
    need_extra()
    check_output(output, json_)
    for rule in allow:
        if rule not in ALLOWED:
            text = f"{shown(rule, 20)} cannot be allowed: there is no figure to show; {', '.join(ALLOWED)} can"
            raise UsageError("usage", text, "--allow")
    data = _data_file(paths)
    if data is None:
        document = report_document(paths, scenario or "equal", reference, prices, allow, signers)
    elif any((scenario, reference, prices, allow, signers)):
        raise UsageError("usage", "the data of a report have all but -o and --paper fixed", shown(str(data), 120))
    else:
        document = load_report(data)
    page = page_of(document, paper)
    folder = None if str(output) == "-" else output.with_suffix(".data")
    anew = folder is not None and (data is None or data.parent.resolve() != folder.resolve())
    with data_beside(folder if anew else None, document, page.sections):
        write_output(output, page.html)
    return {
        "file": str(output), "data": None if folder is None else str(folder), "sha256": document["sha256"],
        "bytes": len(page.html.encode()), "status": document["status"],
        "candidates": [{"label": one["label"], "title": one["title"]} for one in document["candidates"]],
        "refused": document["refusals"],
    }  # fmt: skip


def _data_file(paths: Sequence[Path]) -> Path | None:
    """The ``report.json`` that a single path is or holds; None where it means runs."""
    if len(paths) != 1:
        return None
    path = paths[0] if paths[0].name == DATA else paths[0] / DATA
    return path if path.is_file() else None


def _loaded(at: int, file: Path, reference: Json, scenario: Scenario, signed_by: str | None) -> Loaded:
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
        "facts": facts(run.host, msgspec.to_builtins(msgspec.structs.replace(plan, variants=[]))),
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


def _check_once(runs: Sequence[Loaded]) -> None:
    seen: dict[str, Loaded] = {}
    for one in runs:
        first = seen.setdefault(one.member.sha256, one)
        if first is not one:
            raise located(one.file, UsageError("twice", f"is the same run as {shown(str(first.file), 120)}"))


def _candidate(label: str, side: Sequence[Loaded]) -> Json:
    whole = score_over_runs([one.score for one in side])
    latest = max(side, key=lambda one: one.told["created_utc"])
    host = latest.told["facts"]["host"] or "unknown host"
    folders = [one.folder for one in side]
    name = f"{host} ({folders[0]}{f' and {len(side) - 1} more' if len(side) > 1 else ''})"
    kept = {key: whole[key] for key in whole if key not in ("host", "noise")}
    return {"label": label, "name": host, "title": name, "folders": folders, "facts": latest.told["facts"],
            "unknown": latest.told["unknown"], "caches": latest.told["caches"], "score": kept,
            "runs": [one.told for one in side], "tasks": None, "power": None}  # fmt: skip


def _pairs(sides: Sequence[Sequence[Loaded]], scale: Json, weights: Scenario) -> dict[tuple[int, int], Json]:
    """The comparison of each two candidates; all of them together have the 5 % of one page."""
    count = len(sides) * (len(sides) - 1) // 2
    made: dict[tuple[int, int], Json] = {}
    for a, b in combinations(range(len(sides)), 2):
        members = [[one.member for one in sides[at]] for at in (a, b)]
        try:
            made[a, b] = compare(members, scale, weights, tables=count)
        except UsageError as fault:
            if fault.code not in APART:
                raise
            made[a, b] = {"error": str(fault)}
    return made


def _pair(labels: Sequence[str], at: tuple[int, int], made: Json) -> Json:
    """What the report keeps of a comparison: rows only of those with the first candidate, which tables stand beside."""
    named = {"a": labels[at[0]], "b": labels[at[1]]}
    if "error" in made:
        return named | {"headline": None, "error": made["error"], "differences": [], "rows": None}
    kept = ("headline", "subset", "families", "differences", "unalike", "scope", "pairing", "claims", "band_percent",
            "margin_percent", "floor_percent", "refused")  # fmt: skip
    runs = {side: len(facts["runs"]) for side, facts in made["sides"].items()}
    return (
        named
        | {key: made[key] for key in kept}
        | {"runs": runs, "error": None, "rows": made["rows"] if at[0] == 0 else None}
    )


def _tiers(labels: Sequence[str], candidates: Sequence[Json], pairs: Mapping[Any, Json], measure: str) -> Json:
    """Labels by tier, or the reason why there are none."""
    if len(candidates) < 2:
        return {"tiers": [], "reason": "one candidate alone: nothing to order"}
    there = {at: made for at, made in pairs.items() if "error" not in made}
    points = [one["score"]["headline"][measure]["value"] for one in candidates]
    if not comparable(len(candidates), there, measure):
        return {"tiers": [], "reason": "not every pair of candidates could be compared"}
    return {"tiers": [[labels[at] for at in tier] for tier in tiers(points, there, measure)], "reason": None}


def _order(candidates: Sequence[Json]) -> list[Json]:
    """How much the order of two depends on the weights."""
    labels = [one["label"] for one in candidates]
    return [{**one, "a": labels[one["a"]], "b": labels[one["b"]]} for one in ranks([c["score"] for c in candidates])]
