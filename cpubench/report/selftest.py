"""A self-test as a person reads it: at 80 columns, what was true, what was measured, and whether it was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from cpubench.report.page import console_of, line, pairs, table_of

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]


def show_selftest(doc: Json, out: IO[str]) -> None:
    """Nothing; writes the table of the twins, the quota, the competitor and the sentence."""
    console = console_of(out)
    _twins(doc, console)
    floor = "unknown" if doc["floor_percent"] is None else f"{doc['floor_percent']:.2f} %"
    lines = [("A/A floor", f"{floor}; a difference is found beyond +-{doc['band_percent']:.2f} %")]
    lines += [("quota", _quota(doc["quota"])), ("contended", _contended(doc["contended"]))]
    console.print()
    pairs(console, lines)
    console.print(line(console, f"\n{doc['sentence']}", "bold"))


def _twins(doc: Json, console: Console) -> None:
    table = table_of(console, "", ">true", ">measured", ">95 % interval", ">passes", "")
    for twin in doc["twins"]:
        made, same = twin["measured"], not twin["true_percent"]
        name = "one kernel, two labels" if same else "twin that does more"
        value, ends = "-", "-"
        if made["value"] is not None:
            value, ends = f"{made['value']:+.2f} %", f"{made['low']:+.2f} .. {made['high']:+.2f}"
        found = "found" if twin["found"] else "not found"
        if twin["covered"] is False:
            found += ", not its size" if twin["true_percent"] else ", yet not equal"
        cells = (name, f"{twin['true_percent']:+.0f} %", value, ends, str(made["passes"]), found)
        table.add_row(*(line(console, cell) for cell in cells))
    console.print(table)
    reasons = [(f"{one['true_percent']:+.0f} %", one["measured"]["reason"]) for one in doc["twins"]]
    pairs(console, [(f"  {true}", reason) for true, reason in reasons if reason])


def _quota(found: Json) -> str:
    made = found["ratio"]
    if made["value"] is None:
        return f"not tested: {found['reason']}"
    seen = "flagged in every window" if found["flagged"] else "NOT flagged in every window"
    free = "; without it flagged too" if found["free_flagged"] else ""
    free += "; others were busy meanwhile" if found["free_contended"] else ""
    ends = "" if made["low"] is None else f" ({made['low']:.3f} .. {made['high']:.3f})"
    return f"half of the CPU time gave {made['value']:.3f}{ends} of the rate; {seen}{free}"


def _contended(found: Json) -> str:
    if found["slower_percent"] is None:
        return f"not tested: {found['reason']}"
    seen = "flagged" if found["flagged"] else "NOT flagged"
    alone = "flagged" if found["alone_flagged"] else "not flagged"
    others = "" if found["others_percent"] is None else f", others had {found['others_percent']:.0f} % of a CPU"
    rest = "" if found["alone_others_percent"] is None else f" ({found['alone_others_percent']:.1f} %)"
    return f"beside a busy process {found['slower_percent']:+.0f} % time{others}: {seen}; alone {alone}{rest}"
