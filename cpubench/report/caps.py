"""Limits and the states of caps as a person reads them, at 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs, table_of


def show_limits(document: Mapping[str, Any], out: IO[str]) -> None:
    """Nothing; writes a row for each limit, then what of it is ours and what is in the way of a cap."""
    console = console_of(out)
    if document["limits"]:
        table = table_of(console, "zone", "limit", ">W", "on", "capped")
        for row in document["limits"]:
            watts = "-" if row["watts"] is None else f"{row['watts']:.1f}"
            on = {None: "", True: "yes", False: "no"}[row["enabled"]]
            cells = (row["backend"] + " " + row["zone"], row["constraint"], watts, on, "yes" if row["offered"] else "")
            table.add_row(*(line(console, cell) for cell in cells))
        console.print(table)
    by = document["capped_by"]
    console.print(line(console, f"a cap is set by {by}" if by else "no cap can be set here"))
    told = [(p["code"], f"{p['path']}: {p['hint']}") for p in document["problems"]]
    told += [(p["name"], p["text"]) for p in document["proxies"]]
    journal = document["journal"]
    if journal is not None:
        told.append(("journal", journal.get("text") or f"{journal['state']}, of process {journal['pid']}"))
        told += [(entry["path"], f"{entry['written']}, was {entry['old']}") for entry in journal.get("entries", ())]
    pairs(console, told)


def show_levels(rows: Sequence[Mapping[str, Any]], out: IO[str]) -> None:
    """Nothing; writes the state of each cap level and its sentence."""
    console = console_of(out)
    pairs(console, [(f"{row['level']}  {row['state']}", row["text"]) for row in rows])
