"""What a fleet's folder holds, as one document: hosts and what they lack, models, odd units and tiers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cpubench import __version__
from cpubench.analysis.units import Unit, fleet_of
from cpubench.errors import UsageError
from cpubench.fleet.collect import Bad, Rules, cells, refresh
from cpubench.fleet.index import FILE, Index, open_index
from cpubench.fleet.layout import FAILURE, PLAN, RUN, Cell
from cpubench.results.files import sealed
from cpubench.results.parse import parse, read, shown

Json = dict[str, Any]
SCHEMA = "cpubench.fleet-results/1"
FAULTS = 3  # reasons of a unit that are told
WITH_RESULT = ("cap not given back", "timed out")  # failures that a person must see although there is a result


def collect(fleet: Path, rules: Rules) -> Json:
    """The sealed document of RESULTS/<fleet>, after bringing its index up to date.

    ``collected`` beside it, which is not under its seal, says what was new: the same results make the same document.
    """
    if not fleet.is_dir():
        raise UsageError("missing", "there is no such folder", str(fleet))
    found = cells(fleet)
    with open_index(fleet, rules.mark) as index:
        counts, bad = refresh(fleet, index, rules, found)
        return {**_document(fleet, index, rules, found, bad), "collected": counts}


def _document(
    fleet: Path, index: Index, rules: Rules, found: Sequence[tuple[Cell, Path]], bad: list[Bad]
) -> Json:  # fmt: skip
    runs = index.runs()
    planned, plan_problem = _planned(fleet)
    suite = next(iter(planned)).suite if planned else _commonest([run["suite"] for run in runs])
    bad = bad + _twice(runs)
    refused = {(one.cell.host, one.cell.cap, one.cell.repeat, one.cell.suite) for one in bad}
    counting = [run for run in runs if run["suite"] == suite and _key(run) not in refused]
    units = _units(index, counting)
    failed = _failed(found, suite)
    told = {Cell(*_key(run)) for run in counting} | {one.cell for one in bad} | failed.keys()
    missing = sorted(planned - told)
    newest = max((run["created"] for run in counting), default=None)
    made = {
        "schema": SCHEMA, "cpubench": __version__, "folder": shown(fleet.resolve().name, 100), "index": FILE,
        "suite": suite, "reference": {"name": rules.reference.name, "sha256": rules.reference.sha256},
        "scenario": rules.scenario.name, "newest_utc": newest,
        "counts": {"results": len(counting), "planned": len(planned) if planned else None, "bad": len(bad),
                   "failed": len(failed), "missing": len(missing) if planned else None,
                   "of_another_plan": sum(run["suite"] != suite for run in runs)},
        "plan_problem": plan_problem,
        "bad": [_of_cell(one.cell) | {"code": one.code, "text": one.text} for one in bad],
        "failed": list(failed.values()), "missing": [_of_cell(cell) for cell in missing],
        "medians": index.medians({run["path"] for run in counting}), **fleet_of(units),
        "units": [_told(unit) for unit in units],
    }  # fmt: skip
    made["hosts"] = _hosts(made, counting)
    return sealed(made)


def _key(run: Mapping[str, Any]) -> tuple[str, str, int, str]:
    return run["host"], run["cap"], run["repeat"], run["suite"]


def _of_cell(cell: Cell) -> Json:
    return {"host": cell.host, "cap": cell.cap, "repeat": cell.repeat}


def _commonest(values: Sequence[str]) -> str | None:
    return Counter(values).most_common(1)[0][0] if values else None


def _planned(fleet: Path) -> tuple[set[Cell], str | None]:
    """The cells of the plan beside the results, or why what is missing cannot be told."""
    file = fleet / PLAN
    if not file.exists():
        return set(), f"there is no {PLAN}: what is missing is not known"
    try:
        document = parse(read(file))
        suite = str(document["suite_hash"])
        return {Cell(str(host), str(cap), int(repeat), suite) for host, cap, repeat in document["cells"]}, None
    except UsageError as fault:
        return set(), f"{PLAN} cannot be read: {fault.text}"
    except (KeyError, TypeError, ValueError):
        return set(), f"{PLAN} is no plan of a fleet: what is missing is not known"


def _failed(found: Sequence[tuple[Cell, Path]], suite: str | None) -> dict[Cell, Json]:
    """Why cells of the suite have no result; with one, a failure of an earlier try is none, but for WITH_RESULT."""
    told = {}
    for cell, folder in found:
        if (folder / FAILURE).exists() and suite in (None, cell.suite):
            one = _failure(cell, folder)
            if one["class"] in WITH_RESULT or not (folder / RUN).exists():
                told[cell] = one
    return told


def _failure(cell: Cell, folder: Path) -> Json:
    """How the last try of a cell failed, by the file that the controller left."""
    try:
        document = parse(read(folder / FAILURE, 100_000))
        told = {key: shown(str(document.get(key, "not told")), 250) for key in ("class", "text", "at")}
    except UsageError as fault:
        told = {"class": "unknown", "text": f"{FAILURE} {fault.text}", "at": "not told"}
    return _of_cell(cell) | told


def _twice(runs: Sequence[Json]) -> list[Bad]:
    """Runs that are another's copy: one measurement must not count for two."""
    seen: dict[str, Json] = {}
    found = []
    for run in runs:
        first = seen.setdefault(run["seal"], run)
        if first is not run:
            found.append(Bad(Cell(*_key(run)), "twice", f"is the same run as {first['path']}"))
    return found


def _units(index: Index, runs: Sequence[Json]) -> list[Unit]:
    """Each host at each level that it has a result of, by what the cap limits, with the logs of the runs that may be
    published."""
    facts, known = index.facts(), {run["path"]: run for run in runs}
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for head in index.headlines():
        run = known.get(head["path"])
        if run is not None and head["cap"] == run["cap"]:
            groups.setdefault((run["host"], head["cap"], head["cap_scope"]), []).append(run | head)
    return [_unit(*key, members, facts) for key, members in groups.items()]


def _unit(
    host: str, cap: str, cap_scope: str, members: Sequence[Json], facts: Mapping[str, dict[str, str]]
) -> Unit:  # fmt: skip
    good = [one for one in members if not one["faults"] and one["value"]]
    newest = max(members, key=lambda one: str(one["created"]))
    faults = [text for one in members for text in one["faults"] or ([one["reason"]] if not one["value"] else [])]
    machines = list(dict.fromkeys(one["machine"] for one in members))
    kinds = sorted({one["kind"] for one in members})
    if len(machines) > 1:
        good, faults = [], [f"its runs are of {len(machines)} machines by their host ids: which is meant?", *faults]
    elif len(kinds) > 1:  # points per one and per another have no mean
        good, faults = [], [f"its runs are counted per {' and per '.join(kinds)}: which is meant?", *faults]
    halves = [math.log(one["high"] / one["value"]) for one in good if one["high"]]
    return Unit(
        host, newest["machine"], newest["model"], newest["kind"], cap, [math.log(one["value"]) for one in good],
        sum(halves) / len(halves) if halves else 0.0, facts[newest["path"]], list(dict.fromkeys(faults)), cap_scope,
    )  # fmt: skip


def _told(unit: Unit) -> Json:
    return {
        "unit": unit.name, "model": unit.model, "kind": unit.kind, "cap": unit.cap, "cap_scope": unit.cap_scope,
        "runs": len(unit.logs),
        "points": math.exp(unit.log) if unit.logs else None, "half_width_percent": 100 * math.expm1(unit.half_width),
        "faults": unit.faults[:FAULTS], "facts": dict(unit.facts),
    }  # fmt: skip


def _hosts(made: Json, runs: Sequence[Json]) -> list[Json]:
    """A line for each host: what is there, and what is not."""
    names = dict.fromkeys(sorted({one["host"] for what in ("bad", "failed", "missing") for one in made[what]}
                                 | {run["host"] for run in runs}))  # fmt: skip
    counts = {what: Counter(one["host"] for one in made[what]) for what in ("bad", "failed", "missing")}
    there, models = Counter(run["host"] for run in runs), {run["host"]: run["model"] for run in runs}
    known = made["counts"]["missing"] is not None
    return [{"host": name, "model": models.get(name), "results": there[name], "bad": counts["bad"][name],
             "failed": counts["failed"][name], "missing": counts["missing"][name] if known else None}
            for name in names]  # fmt: skip
