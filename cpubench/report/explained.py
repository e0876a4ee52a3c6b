"""Tasks by path as a person reads them, at 80 columns: counts, the price of one, seconds, what nothing explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from cpubench.report.page import console_of, line, pairs, table_of

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]
NAMES = {
    "spawn": "starts of processes", "fault": "page faults", "switch": "switches", "copy": "bytes moved by calls",
    "meta": "files: look-ups, reads", "small": "files: small writes", "tree": "files: trees", "user": "user code",
    "off_cpu": "not on a CPU",
}  # fmt: skip


def show_explained(doc: Json, out: IO[str]) -> None:
    """Nothing; writes a table for each task, and what was foretold where a second side is there."""
    console = console_of(out)
    for row in doc["tasks"]:
        if row["paths"] is not None:
            _task(doc, row, console)
    if doc["against"] is not None:
        _against(doc["against"], console)
    lines = [(row["task"], f"not explained: {row['reason']}") for row in doc["tasks"] if row["paths"] is None]
    lines += [("note", text) for text in doc["notes"]]
    lines.append(("note", "files: what is left of the system time; user code: no kernel is an interpreter's; see "
                          "docs/prediction.md"))  # fmt: skip
    console.print()
    pairs(console, lines)


def _task(doc: Json, row: Json, console: Console) -> None:
    console.print(line(console, f"\n{row['task']}", "bold"))
    table = table_of(console, "path", ">count", ">ns of one", ">s", ">share")
    for path, one in row["paths"].items():
        counted = doc["prices"][path]["counted"] is not None
        price = doc["prices"][path]["ns"] if counted else None
        seconds = None if one["s"] is None else one["s"]["value"]
        share = "-" if one["share"] is None else f"{100 * one['share']:.1f} %"
        cells = (NAMES[path], _figure_of(one["count"], counted), _figure(price and price["value"], counted),
                 _figure(seconds), share)  # fmt: skip
        table.add_row(*(line(console, cell) for cell in cells))
    console.print(table)
    asked, starts = row["asked_of_system"], row["starts"]
    if asked is not None:
        much = " (more than there was, so all were scaled down)" if asked > 1 else ""
        console.print(line(console, f"what was counted is {100 * asked:.0f} % of the system time{much}"))
    if starts is not None and starts["share"] is not None:
        text = f"of all, {100 * starts['share']:.0f} % are {starts['pythons']} starts of interpreters"
        console.print(line(console, f"{text} and {starts['shells']} of shells, at the price of empty ones"))


def _against(found: Json, console: Console) -> None:
    console.print(line(console, "\ntime of the other side to this one's", "bold"))
    table = table_of(console, "task", ">foretold", ">95 %", ">measured", ">95 %")
    for row in found["rows"]:
        if row["reason"] is None:
            cells = (row["task"], *_ratio(row["predicted"]), *_ratio(row["measured"]))
            table.add_row(*(line(console, cell) for cell in cells))
    console.print(table)
    pairs(console, [(row["task"], f"not compared: {row['reason']}") for row in found["rows"] if row["reason"]])
    said = found["agreement"]
    if said["reason"] is not None:
        console.print(line(console, f"no rank correlation: {said['reason']}"))
        return
    rank = "-" if said["rank"]["value"] is None else f"{said['rank']['value']:.2f}"
    console.print(line(console, f"rank correlation {rank}; error of size {100 * said['error']:.1f} %, "
                                f"{100 * said['unpredicted']:.1f} % if nothing were foretold"))  # fmt: skip


def _ratio(one: Json) -> tuple[str, str]:
    interval = "-" if one["low"] is None else f"{one['low']:.3f} to {one['high']:.3f}"
    return f"{one['value']:.3f}", interval


def _figure_of(count: float | None, counted: bool) -> str:
    return ("-" if counted else "") if count is None else f"{count:.0f}"


def _figure(value: float | None, there: bool = True) -> str:
    return ("-" if there else "") if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
