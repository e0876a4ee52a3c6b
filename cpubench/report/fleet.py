"""A fleet's results as a person reads them: what is there, models, odd units and in what they differ, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs, table_of
from cpubench.report.terminal import points

Json = Mapping[str, Any]
MOST = 20  # lines of a kind; --json and the page have all
DIFFERENCES = 3


def show_fleet(doc: Json, out: IO[str]) -> None:
    """Nothing; writes the document of ``fleet collect``."""
    console = console_of(out)
    made = doc["collected"]
    gone = f", {made['gone']} gone since" if made["gone"] else ""
    console.print(line(console, f"{counted(doc)} ({made['new']} new, {made['same']} known{gone})"))
    if doc["plan_problem"]:
        console.print(line(console, doc["plan_problem"]))
    if doc["models"]:
        console.print(line(console, "\nModels: medians of their units, in points", "bold"))
        table = table_of(console, "model", "level", ">units", ">runs", ">median", ">lowest", ">highest")
        for one in doc["models"][: 2 * MOST]:
            cells = (f"{one['model']} (per {one['kind']})", level(one), str(one["units"]), str(one["runs"]))
            figures = (points(one[name]) for name in ("median", "lowest", "highest"))
            table.add_row(*(line(console, cell) for cell in (*cells, *figures)))
        console.print(table)
        if len(doc["models"]) > 2 * MOST:
            console.print(line(console, f"  and {len(doc['models']) - 2 * MOST} more; --json has all"))
    for title, rows in lists(doc).items():
        if rows:
            console.print(line(console, f"\n{title}", "bold"))
            pairs(console, [(f"  {name}", text) for name, text in rows[:MOST]])
            if len(rows) > MOST:
                console.print(line(console, f"  and {len(rows) - MOST} more; --json has all"))


def counted(doc: Json) -> str:
    """How many results there are, and what became of the others."""
    counts = doc["counts"]
    told = [f"{counts['results']} results of {sum(one['results'] > 0 for one in doc['hosts'])} hosts"]
    told += [f"{counts[key]} {words}" for key, words in (
        ("bad", "bad"), ("failed", "failed"), ("missing", "missing"),
        ("of_another_plan", "of another plan, which are left out")) if counts[key]]  # fmt: skip
    return ", ".join(told)


def lists(doc: Json) -> dict[str, list[tuple[str, str]]]:
    """What there is to say in names and sentences, by its title."""
    idle = [(one["unit"], "; ".join(one["faults"]) or "no points") for one in doc["units"] if one["points"] is None]
    return {
        "Tiers": [(f"{level(one)}, per {one['kind']}", tiers_text(one)) for one in doc["tiers"]],
        "Odd units": [(f"{one['unit']}, {level(one)}", odd_text(one)) for one in doc["odd"]],
        "Not counted: not publishable": idle,
        "One host id under several names: one unit": [(names[0], ", ".join(names[1:])) for names in doc["one_machine"]],
        "Bad results": [(where(one), f"{one['code']}: {one['text']}") for one in doc["bad"]],
        "Failed": [(where(one), f"{one['class']}: {one['text']} ({one['at']})") for one in doc["failed"]],
        "Missing": [(where(one), "planned, and nothing came of it") for one in doc["missing"]],
    }


def level(one: Json) -> str:
    """A cap level in words, with what its cap limits: "200W of package"."""
    return f"{one['cap']} of {one['cap_scope']}" if one["cap_scope"] else str(one["cap"])


def where(one: Json) -> str:
    """A cell of the plan in words."""
    return f"{one['host']}, {one['cap']}, repeat {one['repeat']}"


def tiers_text(one: Json) -> str:
    """The tiers of models at a level, or why there are none."""
    left = f"; without three units: {', '.join(one['left_out'][:8])}" if one["left_out"] else ""
    if one["reason"]:
        return f"none: {one['reason']}{left}"
    made = "; ".join(f"tier {at}: {', '.join(models)}" for at, models in enumerate(one["tiers"], 1))
    return f"{made}{left}"


def odd_text(one: Json) -> str:
    """How far an odd unit is from its model, and in what it differs."""
    percent = 100 * (one["ratio"] - 1)
    far = f"{percent:+.1f} % off the median of its model (robust z {one['z']:+.1f}, the limit is {one['limit']:g})"
    return f"{far}; {differs_text(one['differs'], one['others'])}"


def differs_text(differs: Sequence[Json], others: int) -> str:
    """The facts in which a unit is not as the others are."""
    if not differs:
        return "in no recorded fact is it unlike the others: look at what is not recorded, such as memory modules"
    told = [f"{one['what']} {one['value']}, {one['count']} of {others} others {one['others']}" for one in differs]
    more = f"; and {len(told) - DIFFERENCES} more" if len(told) > DIFFERENCES else ""
    return "; ".join(told[:DIFFERENCES]) + more
