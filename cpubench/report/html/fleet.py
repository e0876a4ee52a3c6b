"""The page of a fleet: units against their models, odd ones with what differs in them, and what has no result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpubench.errors import UsageError
from cpubench.report.fleet import counted, differs_text, level, tiers_text, where
from cpubench.report.html.blocks import Block, Section, Table, Text
from cpubench.report.html.figures.units import units
from cpubench.report.html.page import PAPERS, environment, need_extra, style_sheet
from cpubench.report.terminal import points
from cpubench.results.parse import shown

Json = Mapping[str, Any]
MOST_ROWS = 2000  # of a table: a browser lays out so many in a second


def fleet_page(doc: Json, paper: str = "a4") -> str:
    """The HTML of the document of ``fleet collect``; a pure function of it."""
    need_extra()
    from markupsafe import Markup

    try:
        sections = [models(doc), odd(doc), absent(doc), hosts(doc), method(doc)]
        heading, said = counted(doc), _said(doc)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        text = f"does not have the shape of a fleet's document: {shown(repr(error), 120)}"
        raise UsageError("report", text) from error
    short = str(doc["sha256"])[:12]
    page = environment().get_template("fleet.html").render(
        doc=doc, sections=sections, short=short, css=style_sheet(), svg=Markup, paper=PAPERS[paper],
        counted=heading, said=said,
    )  # fmt: skip
    return str(page)


def _said(doc: Json) -> list[str]:
    """The first page's sentences."""
    said = [f"Tiers at {level(one)}, per {one['kind']}: {tiers_text(one)}." for one in doc["tiers"]]
    if doc["odd"]:
        names = ", ".join(dict.fromkeys(one["unit"] for one in doc["odd"]))
        said.append(f"Odd for their model: {shown(names, 200)}.")
    idle = sum(one["points"] is None for one in doc["units"])
    if idle:
        said.append(f"{idle} units have no points that may be published, and are in no median.")
    if doc["one_machine"]:
        said.append(f"{len(doc['one_machine'])} host ids have several names: each counts as one unit.")
    return said


def models(doc: Json) -> Section:
    """A row for each model and level, and the figures of each level."""
    heads = ["model", "counted per", "level", ">units", ">runs", ">median", ">lowest", ">highest", ">spread"]
    rows = [[one["model"], one["kind"], level(one), str(one["units"]), str(one["runs"]), points(one["median"]),
             points(one["lowest"]), points(one["highest"]),
             "-" if one["spread_percent"] is None else f"{one['spread_percent']:.1f} %"]
            for one in doc["models"]]  # fmt: skip
    blocks: list[Block] = [Table("models", "Models: points of their units", heads, rows[:MOST_ROWS])]
    for name in dict.fromkeys(level(one) for one in doc["units"]):
        blocks += units(doc, name)
    return Section("models", "Models and units", blocks)


def odd(doc: Json) -> Section:
    """Units that are unlike the others of their model, each with all facts in which it differs."""
    reasons = dict.fromkeys(f"{one['model']} (per {one['kind']}), {level(one)}: {one['odd_reason']}."
                            for one in doc["models"] if one["odd_reason"])  # fmt: skip
    rows = [[one["unit"], one["model"], one["kind"], level(one), points(one["points"]),
             f"{100 * (one['ratio'] - 1):+.1f} %", f"{one['z']:+.1f}", f"{one['limit']:g}",
             differs_text(one["differs"], one["others"])]
            for one in doc["odd"]]  # fmt: skip
    blocks: list[Block] = []
    if rows:
        heads = ["unit", "model", "counted per", "level", ">points", ">off its median", ">z", ">limit", "differs in"]
        blocks.append(Table("odd", "Odd units", heads, rows[:MOST_ROWS]))
        facts = [[one["unit"], level(one), fact["what"], fact["value"], fact["others"],
                  f"{fact['count']} of {one['others']}"]
                 for one in doc["odd"] for fact in one["differs"]]  # fmt: skip
        if facts:
            heads = ["unit", "level", "fact", "here", "most others", ">of them"]
            blocks.append(Table("differs", "What differs in them", heads, facts[:MOST_ROWS], folded=True))
    else:
        blocks.append(Text(["No unit is odd for its model."]))
    if reasons:
        blocks.append(Text(list(reasons)[:MOST_ROWS], bullets=True))
    return Section("odd", "Odd units", blocks)


def absent(doc: Json) -> Section:
    """What has no result, or none that counts, and why."""
    blocks: list[Block] = []
    kinds = {
        "failed": ("Failed", ["cell", "class", "what", "when"],
                   [[where(one), one["class"], one["text"], one["at"]] for one in doc["failed"]]),
        "bad": ("Bad results, which count nowhere", ["cell", "code", "why"],
                [[where(one), one["code"], one["text"]] for one in doc["bad"]]),
        "missing": ("Missing: planned, and nothing came of it", ["cell"], [[where(one)] for one in doc["missing"]]),
        "unpublishable": ("Not publishable, so in no median", ["unit", "level", "why"],
                          [[one["unit"], level(one), "; ".join(one["faults"])]
                           for one in doc["units"] if one["points"] is None]),
    }  # fmt: skip
    for name, (caption, heads, rows) in kinds.items():
        if rows:
            blocks.append(Table(name, caption, heads, rows[:MOST_ROWS]))
    if doc["plan_problem"]:
        blocks.append(Text([f"{doc['plan_problem'].capitalize()}."]))
    return Section("absent", "What has no figure", blocks or [Text(["Every planned result is there and counts."])])


def hosts(doc: Json) -> Section:
    """A line for each host."""
    rows = [[one["host"], one["model"] or "-", str(one["results"]), str(one["bad"]), str(one["failed"]),
             "-" if one["missing"] is None else str(one["missing"])] for one in doc["hosts"]]  # fmt: skip
    heads = ["host", "model", ">results", ">bad", ">failed", ">missing"]
    return Section("hosts", "Hosts", [Table("hosts", f"{len(rows)} hosts", heads, rows[:MOST_ROWS], folded=True)])


def method(doc: Json) -> Section:
    """How the figures are made."""
    return Section("method", "Method", [Text([
        f"1000 points are what the reference {doc['reference']['name']} does; weights of the scenario "
        f"{doc['scenario']}. A unit's points are the geometric mean of its runs that may be published.",
        "A unit is odd where it is farther from the median of its model than the limit, in median absolute distances "
        "scaled to a standard deviation of logs, and by more than 2 % and more than its own 95 % interval. The limit "
        "depends on the number of units, so that 5 % of models of equal units have an odd one; six are needed.",
        "Tiers are of models with three units or more: the unit is what is repeated. In a tier no model was shown to "
        "be behind the tier's first (Welch on logs of units, Holm over all pairs, 5 % of this page).",
        "What differs is named, not blamed: facts in which a unit is not as most of its model are.",
    ])])  # fmt: skip
