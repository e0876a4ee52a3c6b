"""The sections that tell what was measured: candidates side by side, scores, single tests, pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.report.html.blocks import Block, Cell, Section, Table, Text, chunks
from cpubench.report.html.facts import UNKNOWN
from cpubench.report.html.figures.fleet import fleet
from cpubench.report.html.figures.power import kinds
from cpubench.report.html.figures.scores import bars
from cpubench.report.html.words import claim_cells, interval, why
from cpubench.report.terminal import HIDDEN, amount, points, spread

Json = Mapping[str, Any]
WITH_WORDS = 3  # candidates in a table of tests: with the words beside them as many as an A4 page is wide


def hosts(doc: Json) -> Section:
    """Field by field; what differs is marked."""
    every = doc["candidates"]
    blocks: list[Block] = [Text(["≠ marks what is not the same on all candidates."])]
    every_name = list(every[0]["facts"])
    names = [name for name in every_name if any(one["facts"][name] or one["unknown"].get(name) for one in every)]
    for number, part in enumerate(chunks(len(every)), 1):
        rows: list[list[str | Cell]] = []
        for name in names:
            values = [one["facts"][name] or one["unknown"].get(name, UNKNOWN) for one in every]
            differs = len(set(values)) > 1
            rows.append([name, *(Cell(values[at], differs) for at in part)])
        heads = ["field", *(every[at]["label"] for at in part)]
        blocks.append(Table(f"hosts-{number}", f"Candidates {heads[1]} to {heads[-1]}, field by field", heads, rows))
    if absent := [name for name in every_name if name not in names]:
        blocks.append(Text([f"{UNKNOWN.capitalize()} on any candidate: {', '.join(absent)}."]))
    return Section("candidates", "Candidates side by side", blocks)


def units(doc: Json) -> Section:
    """The candidates of a fleet, a line each."""
    every = doc["candidates"]
    rows = []
    for one in every:
        made, watts = (one["score"]["headline"][key] for key in ("per_core", "per_watt"))
        power = one["power"]
        of = f"{power['scope']}, {power['provenance']}" if power and power["meter"] else "-"
        rows.append([one["label"], one["title"], one["facts"]["CPU"] or UNKNOWN, points(made["value"]),
                     one["score"]["divisor"]["kind"], interval(made), points(watts["value"]), of,
                     "yes" if one["score"]["publishable"] else "no"])  # fmt: skip
    heads = ["unit", "host", "CPU", ">points", "counted per", "95 % interval", ">points per W", "watts of",
             "publishable"]  # fmt: skip
    strips = [fleet(every)]
    for number, kind in enumerate(kinds(every)):
        strips.append(fleet(every, kind, f"fleet-watts{f'-{number + 1}' if number else ''}"))
    return Section("candidates", "Units", [*strips, Table("units", "All units", heads, rows)])


def scores(doc: Json) -> Section:
    """Points by family and candidate, the whole last; and the pairs."""
    every, scenario = doc["candidates"], doc["scenario"]
    families = list(every[0]["score"]["families"])
    total = sum(scenario["families"].get(family, 0) for family in families)
    blocks: list[Block] = [bars(every, doc["reference"]["name"])]
    for number, part in enumerate(chunks(len(every)), 1):
        rows = []
        for family in [*families, "whole", "equal weights"]:
            weight = scenario["families"].get(family)
            told = f"{100 * weight / total:.3g} %" if weight else "-"
            rows.append([family, told if family in families else "", *(_points(every[at], family) for at in part)])
        heads = ["family", ">weight", *(f">{every[at]['label']}" for at in part)]
        caption = f"Points per core, {heads[2][1:]} to {heads[-1][1:]}: value and half-width of the 95 % interval"
        blocks.append(Table(f"scores-{number}", caption, heads, rows))
    uncovered = ", ".join(f"{name} {weight:g} %" for name, weight in scenario["uncovered"].items()) or "nothing"
    blocks.append(Text([
        f"Reference {doc['reference']['name']} = 1000 points ({doc['reference']['description'] or 'no description'}).",
        f"Scenario {scenario['name']}: {scenario['source']}. Weighed by it and not measured: {uncovered}. Hash of its "
        f"weights: {scenario.get('sha256') or 'not in these data'}.",
        "Missing rows: required. A family or whole that lacks a scored row is blank, never made of the others.",
    ]))  # fmt: skip
    reasons = [f"{one['label']}, {family}: {why(q)}" for one in every for family, q in _missing(one, families)]
    if reasons:
        blocks.append(Text(reasons, bullets=True))
    if doc["pairs"]:
        blocks.append(_pairs(doc))
    return Section("scores", "Scores", blocks)


def _points(one: Json, family: str) -> str:
    score = one["score"]
    key = {"whole": "per_core", "equal weights": "equal_weights"}.get(family)
    made = score["headline"][key] if key else score["families"][family]["per_core"]
    return f"{points(made['value'])}{spread(made)}".replace("+-", "±")


def _missing(one: Json, families: Sequence[str]) -> list[tuple[str, Json]]:
    every = [(family, one["score"]["families"][family]["per_core"]) for family in families]
    every.append(("whole", one["score"]["headline"]["per_core"]))
    return [(name, made) for name, made in every if made["value"] is None]


MEASURES = {"per_core": "per core", "speed": "speed", "per_watt": "per watt"}


def _pairs(doc: Json) -> Table:
    """Each pair's ratio, plain interval, the one that decided, and word."""
    shares = {(one["a"], one["b"]): one for one in doc["order"]}
    rows = []
    for pair in doc["pairs"]:
        name = f"{pair['b']} / {pair['a']}"
        if pair["headline"] is None:
            rows.append([name, "", "-", "-", "-", f"not compared: {pair['error']}", "-", "-"])
            continue
        share = shares.get((pair["a"], pair["b"]), {}).get("share")
        draws = "-" if share is None else f"{100 * (1 - share):.0f} %"
        for measure, words in MEASURES.items():
            claim = pair["headline"][measure]
            if measure == "per_watt" and claim["ratio"]["value"] is None:
                continue  # of which the summary says why
            rows.append([name, words, *claim_cells(pair, claim), draws if measure == "per_core" else "-"])
    heads = ["pair", "measure", ">ratio", "95 % CI", "for all claims", "verdict", "of", ">ahead in draws"]
    return Table("pairs", "Pairs: ratio of rates, and its word, which the wider interval for all claims decides", heads,
                 rows)  # fmt: skip


def tests(doc: Json) -> Section:
    """Every row: what it took, how sure, and its word against the first candidate."""
    every = doc["candidates"]
    words = {pair["b"]: {(row["name"], row["copies"]): row["verdict"] for row in pair["rows"]}
             for pair in doc["pairs"] if pair["rows"] is not None}  # fmt: skip
    known = [{(row["name"], row["copies"]): row for row in one["score"]["variants"]} for one in every]
    keys = [key for key in dict.fromkeys(key for rows in known for key in rows)
            if any(rows[key]["family"] != HIDDEN for rows in known if key in rows)]  # fmt: skip
    scored = [key for key in keys if any(rows[key]["scored"] for rows in known if key in rows)]
    blocks: list[Block] = [Text([
        "Time of one operation of one copy with the half-width of its 95 % interval, the number n of passes, or of "
        "runs where a candidate has several, and badges. Words against A are of rates: faster does more work.",
    ])]  # fmt: skip
    for scored_too, chosen in ((True, scored), (False, [key for key in keys if key not in scored])):
        for number, part in enumerate(chunks(len(every), WITH_WORDS), 1):
            kind = "scored" if scored_too else "shown"
            heads, rows = ["test", "copies"], [[name, copies or "any"] for name, copies in chosen]
            for at in part:
                label = every[at]["label"]
                heads += [f">{label}", ">n", "badges"]
                for key, row in zip(chosen, rows, strict=True):
                    row += _test(known[at].get(key), len(every[at]["runs"]))
                if label in words:
                    heads.append(f"{label} to A")
                    for key, row in zip(chosen, rows, strict=True):
                        row.append(words[label].get(key, "-"))
            span = f"{every[part[0]]['label']} to {every[part[-1]]['label']}"
            if rows:
                caption = f"{len(rows)} {kind} tests, {span}"
                name = f"tests-{kind}-{number}"
                blocks.append(Table(name, caption, heads, rows, folded=not scored_too, lean=len(part) > 2))
    missing = [
        [name, copies or "any", one["label"], reason]
        for name, copies in keys
        for one, rows in zip(every, known, strict=True)
        if (reason := _reason(rows.get((name, copies))))
    ]
    if missing:
        heads = ["test", "copies", "candidate", "reason"]
        blocks.append(Table("missing", "Not measured, and why", heads, missing))
    badges = {code: text for one in every for code, text in one["score"]["badges"].items()}
    if badges:
        blocks.append(Table("badges", "Badges: they remove nothing and change no number", ["badge", "meaning"],
                            [[code, text] for code, text in badges.items()]))  # fmt: skip
    return Section("tests", "Tests", blocks)


def _test(row: Json | None, runs: int) -> list[str]:
    made = row["ns_per_op"] if row else None
    if made is None or made["value"] is None:
        return ["-", "-", ""]
    value = f"{amount(made['value'] * 1e-9, 's')}{spread(made)}".replace("+-", "±")
    return [value, str(made["passes"] if runs == 1 else runs), ", ".join(row["flags"]) if row else ""]


def _reason(row: Json | None) -> str:
    """Why a row has no value; empty where it has one."""
    if row is None:
        return "not in its plan"
    return why(row["ns_per_op"]) if row["ns_per_op"]["value"] is None else ""
