"""The vendor report: which runs are meant, each loaded and reduced in turn, as one document that a page is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from cpubench import __version__
from cpubench.analysis.answers import answers
from cpubench.analysis.compare import compare
from cpubench.analysis.power_over_runs import mixed_watts
from cpubench.analysis.ranks import ranks
from cpubench.analysis.reference import load_reference
from cpubench.analysis.scenarios import Scenario, load_scenarios, pick
from cpubench.errors import UsageError
from cpubench.report.html.page import SCHEMA, load_report, need_extra, page_of
from cpubench.report.html.prices import load_prices, priced
from cpubench.report.html.refusals import ALLOWED, refusals, status
from cpubench.report.html.sidecar import DATA
from cpubench.report.html.staged import data_beside
from cpubench.report.output import check_output, write_output
from cpubench.results.files import sealed
from cpubench.results.gather import run_files
from cpubench.results.parse import shown
from cpubench.results.signature import signer
from cpubench.results.states import BASE_CAP
from cpubench.vendor_runs import Loaded, candidate, check_once, loaded
from cpubench.vendor_tasks import add_tasks

Json = dict[str, Any]
MOST = 8  # candidates that are compared; more are shown as a fleet
LABELS = "ABCDEFGH"
APART = frozenset({"suite", "divisor", "version", "unit", "nothing"})  # codes of two sides that did other work


def report_document(
    paths: Sequence[Path], scenario: str = "equal", reference: Path | None = None, prices: Path | None = None,
    allow: Sequence[str] = (), signers: Path | None = None, under: str | None = None, tasks: Sequence[str] = (),
) -> Json:  # fmt: skip
    """The sealed document of a report on the runs of some paths. Each path is a candidate, a folder with runs of
    several hosts one for each host. With ``signers`` every run must be signed by one of them. ``under`` is the cap
    level that the first page answers for, by default all; ``tasks`` are runs of tasks that are not beside a run."""
    scale, weights = load_reference(reference), pick(load_scenarios(), scenario)
    costs = None if prices is None else load_prices(prices)
    files = [(at, file) for at, path in enumerate(paths) for file in run_files(path)]
    groups: dict[tuple[int, str, str], list[Loaded]] = {}
    for at, file in files:
        one = loaded(at, file, scale, weights, None if signers is None else signer(file, signers))
        groups.setdefault(one.key, []).append(one)
    sides = list(groups.values())
    check_once([one for side in sides for one in side])
    fleet = len(sides) > MOST
    labels = [f"U{at + 1}" for at in range(len(sides))] if fleet else list(LABELS[: len(sides)])
    candidates = [candidate(label, side) for label, side in zip(labels, sides, strict=True)]
    add_tasks(candidates, [side[0].key[1] for side in sides], [[one.file for one in side] for side in sides], tasks)
    _check_level(candidates, under)
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
        "under": under,
        "mixed_watts": mixed_watts([one["power"] for one in candidates]),
        "answers": [] if fleet else answers(labels, candidates, pairs),
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
    json_: bool = False, under: str | None = None, tasks: Sequence[str] = (),
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
        document = report_document(paths, scenario or "equal", reference, prices, allow, signers, under, tasks)
    elif any((scenario, reference, prices, allow, signers, under, tasks)):
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
            # Two sides without one common figure may well have done the same work: too little of it.
            made[a, b] = {"error": str(fault), "rule": "R10" if fault.code == "nothing" else "R3"}
    return made


def _pair(labels: Sequence[str], at: tuple[int, int], made: Json) -> Json:
    """What the report keeps of a comparison: rows only of those with the first candidate, which tables stand beside."""
    named = {"a": labels[at[0]], "b": labels[at[1]]}
    if "error" in made:
        return named | {
            "headline": None,
            "error": made["error"],
            "rule": made["rule"],
            "differences": [],
            "levels": [],
            "rows": None,
        }
    kept = ("headline", "subset", "families", "differences", "unalike", "scope", "pairing", "claims", "band_percent",
            "margin_percent", "floor_percent", "refused")  # fmt: skip
    runs = {side: len(facts["runs"]) for side, facts in made["sides"].items()}
    return (
        named
        | {key: made[key] for key in kept}
        | {"runs": runs, "error": None, "rule": None, "rows": made["rows"] if at[0] == 0 else None}
        | {"levels": [{"level": one["level"], "headline": one["headline"]} for one in made["levels"]]}
    )


def _check_level(candidates: Sequence[Json], under: str | None) -> None:
    """None if some candidate was measured under this cap level, or none is asked for."""
    levels = dict.fromkeys(row["level"] for one in candidates for row in (one["power"] or {"levels": []})["levels"])
    known = [name for name in levels if name != BASE_CAP]
    if under is not None and under not in known:
        named = f"those of these runs are {', '.join(shown(name, 40) for name in known)}" if known else "there are none"
        raise UsageError("usage", f"no candidate has the cap level {shown(under, 40)}: {named}", "--under")


def _order(candidates: Sequence[Json]) -> list[Json]:
    """How much the order of two depends on the weights."""
    labels = [one["label"] for one in candidates]
    return [{**one, "a": labels[one["a"]], "b": labels[one["b"]]} for one in ranks([c["score"] for c in candidates])]
