"""Watts and cap levels of a score, at 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cpubench.report.page import line, pairs, table_of

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]


def show_power(doc: Json, console: Console) -> None:
    """Nothing; writes what the figures per watt are of, and a row for each cap level."""
    power = doc["power"]
    if power is None:
        return
    console.print(line(console, "\nWatts and cap levels", "bold"))
    console.print(line(console, meter_line(power)))
    heads, rows = level_cells(power)
    table = table_of(console, *heads)
    for cells in rows:
        table.add_row(*(line(console, cell) for cell in cells))
    console.print(table)
    _families(power, console)
    pairs(console, said_of(power))


def level_cells(power: Json) -> tuple[list[str], list[list[str]]]:
    """Heads, those of numbers with a leading ">", and a line for each cap level."""
    from cpubench.report.terminal import points, spread

    made = []
    for row in power["levels"]:
        watts, figure, ratios = row["watts"]["value"], row["per_watt"], row["ratio"]
        mhz = "-" if row["frequency"] is None else f"{row['frequency']['mean_mhz']:.0f}"
        made.append([
            row["level"], row["state"], "-" if watts is None else f"{watts:.1f}", points(figure["value"]),
            spread(figure).strip().removeprefix("+-") or "-", _ratio(ratios["per_core"]), _ratio(ratios["per_watt"]),
            mhz,
        ])  # fmt: skip
    return ["level", "state", ">watts", ">points/W", ">+-", ">x rate", ">x points/W", ">MHz"], made


def _families(power: Json, console: Console) -> None:
    """A row for each family and level that has points per watt, or a ratio to the level as-is."""
    from cpubench.report.terminal import points, spread

    table = table_of(console, "family", "level", ">points/W", ">+-", ">x rate", ">x points/W")
    for family in power["levels"][0]["families"]:
        for row in power["levels"]:
            made = row["families"][family]
            figure, ratios = made["per_watt"], made["ratio"]
            if figure["value"] is None and ratios["per_core"]["value"] is None:
                continue
            width = spread(figure).strip().removeprefix("+-") or "-"
            cells = (family, row["level"], points(figure["value"]), width, *map(_ratio, ratios.values()))
            table.add_row(*(line(console, cell) for cell in cells))
    if table.row_count:
        console.print()
        console.print(table)


def meter_line(power: Json) -> str:
    """ "powercap:package: watts of package, measured; 61.2 W at rest before, 61.0 W after"."""
    if power["meter"] is None:
        return f"no meter: {power['problem'] or 'none was asked for'}"
    idle = power["idle"]
    when = (("before_watts", "before"), ("after_watts", "after"))
    rest = [f"{idle[key]:.1f} W at rest {words}" for key, words in when if idle[key] is not None]
    told = f"; {', '.join(rest)}" if rest else ""
    if power["scope"] is None:
        return f"{power['meter']}: watts are to be merged (cpubench power merge)"
    table = f" (CSV {power['merged']['sha256'][:12]})" if power.get("merged") else ""
    return f"{power['meter']}: watts of {power['scope']}, {power['provenance']}{table}{told}"


def _ratio(made: Json) -> str:
    return "-" if made["value"] is None else f"{made['value']:.3f}"


def said_of(power: Json) -> list[tuple[str, str]]:
    """What stands below the table: figures above idle, the best level, throttling, and why a level has no figure."""
    from cpubench.report.terminal import REASONS, points, spread

    best, mean, said = power["most_efficient"], power["efficiency"], []
    for row in power["levels"]:
        net = row["per_watt_net"]
        if net["value"] is not None:
            said.append((row["level"], f"{points(net['value'])} points per watt above idle{spread(net)}"))
    if mean["value"] is not None:
        said.append(("all levels", f"{points(mean['value'])} points per watt{spread(mean)}, geometric mean"))
    if best["level"] is not None:
        word = "told from" if best["separable"] else "not told from"
        said.append(("most efficient", f"{best['level']}, {word} {best['next']} (x {_ratio(best['ratio'])})"))
    why: dict[str, list[str]] = {}
    for row in power["levels"]:
        grown = [f"{name} {count}" for name, count in row["throttles"].items() if count]
        if grown:
            said.append((row["level"], f"throttled: {', '.join(grown)}"))
        for measure, words in (("watts", "no watts"), ("per_watt", "no points per watt")):
            if row[measure]["value"] is None and power["meter"] is not None:
                reason = row[measure]["reason"]
                why.setdefault(f"{words}: {REASONS.get(reason, reason)}", []).append(row["level"])
    return said + [(", ".join(levels), text) for text, levels in why.items()]
