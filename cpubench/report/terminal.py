"""Tables for people: at 80 columns, plain where the stream is no terminal, ASCII where it takes no more.

A missing number is "-" and its reason stands below the table. Text from files is foreign: it is never markup, and
what a terminal would act on is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from cpubench.report.page import console_of, line, pairs, table_of
from cpubench.report.task_score import show_task_score
from cpubench.report.watts import show_power
from cpubench.results.names import row_key
from cpubench.results.parse import shown

if TYPE_CHECKING:  # rich takes 0.1 s to import: late, in the functions
    from rich.console import Console

Json = Mapping[str, Any]

MEASURES = {
    "per_core": "per core", "speed": "speed", "equal_weights": "equal weights",
    "scaling_efficiency": "scaling eff.", "per_watt": "per watt",
}  # fmt: skip
HIDDEN = "control"  # rows of this family say something of the run and nothing of the host
NAMED = 6  # rows of a badge; the others are in the JSON document
REASONS = {"no_meter": "no meter was read (run --meter auto, if power probe finds one)"}


def show_score(doc: Json, out: IO[str], names: Sequence[str] = ()) -> None:
    """Nothing; writes a score document, or those of several runs by their names: headline, families, rows, notes."""
    console = console_of(out)
    for number, one in enumerate(doc.get("runs", [doc])):
        if number:
            console.print()
        if names:
            console.print(line(console, f"run {number + 1}: {names[number]}", "bold"))
        _show_one(one, console)


def _show_one(doc: Json, console: Console) -> None:
    if "headline" not in doc:  # tasks without a run
        show_task_score(doc["task_score"], console)
        return
    kind, cores = doc["divisor"]["kind"], doc["divisor"]["n"]
    host = ", ".join(
        shown(doc["host"][key], 40) for key in ("hostname", "cpu_model") if isinstance(doc["host"].get(key), str)
    )
    title = f"{host}: " if host else ""
    console.print(line(console, f"{title}suite {doc['suite']}, {cores:g} x {kind}, scenario {doc['scenario']}", "bold"))
    console.print(line(console, f"1000 points = reference {doc['reference']}"))
    console.print(line(console, f"measured families cover {100 * doc['covers']:.0f} % of the scenario's path weight"))
    console.print(line(console, f"weights {doc['weights_sha256']}"))
    console.print(line(console, _noise(doc["noise"])))
    console.print(line(console, floor_line(doc)))
    if not doc["publishable"]:
        console.print(line(console, "NOT PUBLISHABLE: see the notes.", "bold yellow"))
    console.print()
    _headline(doc["headline"], console)
    _families(doc["families"], console)
    _reasons(doc, console)
    show_power(doc, console)
    if "task_score" in doc:
        console.print()
        show_task_score(doc["task_score"], console)
    _rows(doc["variants"], doc["badges"], console)
    if doc["notes"]:
        console.print(line(console, "\nNotes", "bold"))
        pairs(console, notes_of(doc["notes"]))


def floor_line(doc: Json) -> str:
    """The A/A floor of a score or a comparison, or why it is unknown."""
    if doc["floor_percent"] is None:
        return f"A/A floor: {doc['floor_reason']}"
    rest = f" ({doc['floor_reason']})" if doc["floor_reason"] else ""
    return f"A/A floor {doc['floor_percent']:.2g} %: one kernel under two labels{rest}"


def notes_of(notes: Sequence[Json]) -> list[tuple[str, str]]:
    """Code and sentence of each note; notes that say the same of several places are one."""
    places: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        places.setdefault((note["code"], note["text"]), []).append(note["where"])
    lines = []
    for (code, text), where in places.items():
        named = ", ".join(filter(None, where[:3])) + (f" and {len(where) - 3} more" if len(where) > 3 else "")
        lines.append((f"  {code}", f"{text} ({named})" if named else text))
    return lines


def _is_there(family: Json) -> bool:
    return any(made["value"] is not None for made in family.values())


def _headline(headline: Json, console: Console) -> None:
    table = table_of(console, "", ">points", "95 % interval", ">passes")
    for key, words in MEASURES.items():
        if key in headline:
            made = headline[key]
            ends = "-" if made["low"] is None else f"{points(made['low'])} .. {points(made['high'])}"
            passes = "-" if made["value"] is None else str(made["passes"])
            style = "bold" if key == "per_core" else ""
            table.add_row(*(line(console, cell, style) for cell in (words, points(made["value"]), ends, passes)))
    console.print(table)


def _families(families: Json, console: Console) -> None:
    keys = [key for key in MEASURES if key != "equal_weights"]
    table = table_of(console, "family", *(f">{MEASURES[key]}" for key in keys))
    for family, row in families.items():
        if not _is_there(row):
            continue
        cells = [f"{points(row[key]['value'])}{spread(row[key])}" for key in keys]
        table.add_row(*(line(console, cell) for cell in (family, *cells)))
    if table.row_count:
        console.print()
        console.print(table)
    absent = [family for family, row in families.items() if not _is_there(row)]
    if absent:
        console.print(line(console, f"without any figure: {', '.join(absent)}"))


def _reasons(doc: Json, console: Console) -> None:
    """Nothing; writes each reason for a "-" above once, with all that it is for."""
    missing: dict[str, dict[str, list[str]]] = {}
    for key, made in doc["headline"].items():
        if made["value"] is None and key in MEASURES:
            missing.setdefault(made["reason"], {})[key] = []
    of_headline = {(reason, key) for reason, measures in missing.items() for key in measures}
    for family, row in doc["families"].items():
        for key, made in row.items() if _is_there(row) else ():
            if made["value"] is None and key in MEASURES and (made["reason"], key) not in of_headline:
                missing.setdefault(made["reason"], {}).setdefault(key, []).append(family)
    lines = []
    for reason, measures in missing.items():
        named = [MEASURES[key] + (f" of {', '.join(of)}" if of else "") for key, of in measures.items()]
        lines.append(("-", f"{', '.join(named)}: {REASONS.get(reason, reason)}"))
    pairs(console, lines)


def _noise(made: Json) -> str:
    """ "noise: 3 of 40 blocks flagged (contended 2, stolen 1), 1 measured again; busiest other process: gcc 0.4 %"."""
    if not made["looked"]:
        return "noise: not known, nobody looked"
    blocks = made["blocks"]
    kinds = ", ".join(f"{code} {count}" for code, count in blocks["flags"].items())
    parts = [f"{blocks['flagged']} of {blocks['count']} blocks flagged{f' ({kinds})' if kinds else ''}"]
    if blocks["set_aside"]:
        parts[0] += f", {blocks['set_aside']} measured again"
    if made["busiest"]:
        first = made["busiest"][0]
        parts.append(f"busiest other process: {shown(first['name'], 30)} {100 * first['share']:.1f} %")
    if made["doubts"]:
        parts.append(f"not told, or in part: {', '.join(made['doubts'])}")
    return f"noise: {'; '.join(parts)}"


def _rows(rows: Sequence[Json], badges: Mapping[str, str], console: Console) -> None:
    shown_rows = [row for row in rows if row["family"] != HIDDEN]
    there = [row for row in shown_rows if row["ns_per_op"]["value"] is not None]
    if there:
        table = table_of(console, "variant (* scored)", "copies", ">time/op", ">rate", ">+-", ">passes")
        for row in there:
            name = f"{row['name']} *" if row["scored"] else row["name"]
            time = amount(row["ns_per_op"]["value"] * 1e-9, "s")
            rate = amount(row["ops_per_s"]["value"], "/s")
            passes = str(row["ns_per_op"]["passes"])
            width = spread(row["ns_per_op"]).strip().removeprefix("+-") or "-"
            table.add_row(*(line(console, c) for c in (name, row["copies"], time, rate, width, passes)))
        console.print()
        console.print(table)
    raised = {code: [_key(row) for row in shown_rows if code in row["flags"]] for code in badges}
    badged = [(f"  {code}", f"{badges[code]}: {_named(names)}") for code, names in raised.items() if names]
    missing = [(f"  {_key(row)}", str(row["ns_per_op"]["reason"])) for row in rows if row["ns_per_op"]["value"] is None]
    for title, lines in (("Badges", badged), ("Skipped or failed", missing)):
        if lines:
            console.print(line(console, f"\n{title}", "bold"))
            pairs(console, lines)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def points(value: float | None) -> str:
    """A score or a ratio with three digits or more; "-" for None."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def spread(made: Json) -> str:
    """ " +-1.4 %": the farther end of the interval from the value; empty without an interval."""
    if made["low"] is None or not made["value"]:
        return ""
    percent = 100 * max(made["high"] / made["value"] - 1, 1 - made["low"] / made["value"])
    return f" +-{percent:.0f} %" if percent >= 9.95 else f" +-{percent:.1f} %"


def amount(value: float, unit: str) -> str:
    """Three digits and an SI prefix: "24.1 ms", "41.5 k/s"."""
    scales = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p"))
    size, prefix = next(((size, prefix) for size, prefix in scales if value >= 0.9995 * size), scales[-1])
    scaled = value / size
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f} {prefix}{unit}"


def _key(row: Json) -> str:
    return row_key(row["name"], row["copies"]) if row["copies"] else str(row["name"])
