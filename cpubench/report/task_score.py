"""The task score as a person reads it: beside the path score, with each task alone and all that is not covered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cpubench.report.page import line, pairs, table_of

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]


def show_task_score(doc: Json, console: Console) -> None:
    """Nothing; writes the document of a task score."""
    made = doc["score"]
    if not doc["tasks"]:
        console.print(line(console, f"task score: - ({made['reason']})"))
        return
    console.print(line(console, f"Task score, scenario {doc['scenario']}: {_figure(made)}", "bold"))
    console.print(line(console, f"1000 points = tasks of {doc['reference']}; covers {100 * doc['covers']:.3g} of 100"))
    table = table_of(console, "task", ">weight", ">points", ">+-")
    for row in doc["tasks"]:
        weight = "-" if row["weight"] is None else f"{row['weight']:.3g}"
        table.add_row(*(line(console, cell) for cell in (row["task"], weight, *_cells(row["score"]))))
    table.add_row(*(line(console, cell) for cell in ("all alike", "", *_cells(doc["equal_weights"]))))
    console.print(table)
    rows = table_of(console, "row", ">seconds", ">reference", ">points", ">+-")
    for row in doc["rows"]:
        seconds = row["seconds"]["value"]
        times = ("-" if seconds is None else f"{seconds:.3g}", f"{row['reference_s']:.3g}")
        rows.add_row(*(line(console, cell) for cell in (row["name"], *times, *_cells(row["score"]))))
    console.print()
    console.print(rows)
    lines = [] if made["reason"] is None else [("task score", made["reason"])]
    lines += [(row["task"], row["score"]["reason"]) for row in doc["tasks"] if row["score"]["value"] is None]
    pairs(console, [*lines, *(("note", text) for text in doc["notes"])])


def _figure(made: Json) -> str:
    points, width = _cells(made)
    return points if made["value"] is None else f"{points} points" + (f" (+-{width})" if made["low"] else "")


def _cells(made: Json) -> tuple[str, str]:
    """Points and the farther end of their interval in per cent."""
    if made["value"] is None:
        return "-", "-"
    points = f"{made['value']:.0f}" if made["value"] >= 99.95 else f"{made['value']:#.3g}"
    if made["low"] is None:
        return points, "-"
    return points, f"{100 * max(made['high'] / made['value'] - 1, 1 - made['low'] / made['value']):.1f} %"
