"""Meters as a person reads them: what each says, and what to do where it says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from cpubench.report.page import console_of, line

Json = Mapping[str, Any]
NOTHING = "No power can be measured here: scores per watt are null, with this reason; all others are as usual."


def show_probe(document: Json, out: IO[str]) -> None:
    """Nothing; writes each meter with its watts and channels, and each problem with what can be done about it."""
    from rich.table import Table

    console = console_of(out)
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(overflow="fold", max_width=22)
    table.add_column(overflow="fold")
    told: dict[str, str] = {}  # a hint is printed once, under the first meter that has it
    for row in document["meters"]:
        style = "green" if row["usable"] else "dim"
        table.add_row(line(console, row["name"], style), line(console, _said(row)))
        for problem in row["problems"]:
            text = f"{problem['code']}: {problem['path']}"
            table.add_row("", line(console, text, "bold yellow"))
            hint = str(problem["hint"])
            as_above = f"do: as for {told[hint]}" if hint in told else f"do: {hint}"
            table.add_row("", line(console, as_above))
            told.setdefault(hint, str(row["name"]))
    console.print(table)
    if not document["caps"]:
        console.print(line(console, "\ncap: none can be set here; cpubench power show says why", "dim"))
    for cap in document["caps"]:
        zones = f"{len(cap['controls'])} zone{'' if len(cap['controls']) == 1 else 's'}"
        text = f"cap: {cap['name']}: {zones} can be limited" if cap["usable"] else "cap: none can be set here"
        console.print(line(console, f"\n{text}", "green" if cap["usable"] else "dim"))
        for problem in cap["problems"]:
            console.print(line(console, f"{problem['code']}: {problem['path']}: {problem['hint']}"))
    console.print(line(console, f"\n{_sum(document['meters'])}"))


def show_watts(document: Json, out: IO[str]) -> None:
    """Nothing; writes the watts of each meter that can be used, or why there are none."""
    console = console_of(out)
    for row in document["watts"]:
        console.print(line(console, f"{row['watts']:9.1f} W  {row['scope']:<14} {row['name']} ({row['provenance']})"))
    if not document["watts"]:
        console.print(line(console, NOTHING))
        for problem in document["problems"]:
            console.print(line(console, f"{problem['code']}: {problem['path']}: {problem['hint']}"))


def show_merged(document: Json, out: IO[str]) -> None:
    """Nothing; writes how much of a run got its watts, and where it is."""
    console = console_of(out)
    there = document["windows"] - document["without_watts"]
    text = f"{there} of {document['windows']} windows have watts of {document['scope']}, from {document['rows']} rows"
    console.print(line(console, text + "".join(f"; {flag}" for flag in document["flags"])))
    console.print(line(console, f"run folder: {document['run']}"))


def _said(row: Json) -> str:
    count = len(row["channels"])
    channels = f"{count} channel{'' if count == 1 else 's'}"
    if row["watts"] is None:
        return f"{row['scope']}: cannot be used" + (f" ({channels})" if count else "")
    beside = [row["provenance"], channels, *row["flags"]]
    return f"{row['scope']}: {row['watts']:.1f} W ({', '.join(beside)})" + ("" if row["usable"] else ": not for scores")


def _sum(meters: Sequence[Json]) -> str:
    usable = [str(row["name"]) for row in meters if row["usable"]]
    if not usable:
        return f"{NOTHING} Nothing was changed."
    best, *others = usable
    text = f"This host can measure power: --meter {best}"
    return f"{text}{'; also ' + ', '.join(others) if others else ''}. Scopes are never added up or compared."
