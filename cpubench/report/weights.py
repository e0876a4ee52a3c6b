"""What a trace was understood to be, as a person reads it: calls by class, what was left out, and the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs, table_of

Json = Mapping[str, Any]


def show_weights(doc: Json, names: Mapping[str, tuple[str, str | None]], out: IO[str]) -> None:
    """Nothing; writes what was understood. ``names`` has the words and the family of each path."""
    console = console_of(out)
    size = sum(one["bytes"] for one in doc["sources"]) / 1e6
    forms = ", ".join(dict.fromkeys(one["format"] for one in doc["sources"]))
    console.print(line(console, f"sources: {len(doc['sources'])}, {size:.3g} MB, format {forms}", "bold"))
    if doc["classes"]:
        table = table_of(console, "class", ">calls", ">seconds", ">share")
        for name, row in doc["classes"].items():
            share = "-" if row["share"] is None else f"{100 * row['share']:.1f} %"
            cells = (name, str(row["calls"]), _seconds(row["seconds"]), share)
            table.add_row(*(line(console, cell) for cell in cells))
        console.print(table)
    if doc["left_out"]:
        table = table_of(console, "left out", ">calls", ">seconds")
        for row in doc["left_out"]:
            some = f" ({row['timed']} timed)" if 0 < row["timed"] < row["calls"] else ""
            told = (row["why"], f"{row['calls']}{some}", _seconds(row["seconds"]))
            table.add_row(*(line(console, cell) for cell in told))
        console.print()
        console.print(table)
    table = table_of(console, "path", "", "family", ">weight")
    for path, weight in doc["paths"].items():
        words, family = names[path]
        table.add_row(*(line(console, cell) for cell in (path, words, family or "not covered", f"{weight:.1f}")))
    console.print()
    console.print(table)
    console.print(line(console, f"families of kernels cover {100 * doc['covers']:.0f} of 100"))
    console.print(line(console, f"weights {doc['weights_sha256']}"))
    pairs(console, [("note", text) for text in doc["notes"]])


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
