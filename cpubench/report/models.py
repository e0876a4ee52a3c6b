"""A model as a person reads it, at 80 columns: what went in and from where, a row per speed-up or node, break-evens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs, table_of

Json = Mapping[str, Any]
# Of each model the columns: heading, key, factor, and how a figure is written.
COLUMNS: dict[str, Sequence[tuple[str, str, float, str]]] = {
    "stall": ((">CPU x", "speedup", 1, "g"), (">task s", "task_s", 1, ".4g"), (">gain", "gain", 1, ".2f"),
              (">place waits", "stall", 100, ".1f"), (">GPU idle", "gpu_idle", 100, ".1f"),
              (">tries/h", "attempts_per_hour", 1, ".0f"), (">cores busy", "cores_busy", 1, ".0f"),
              ("limit", "limit", 1, "")),
    "cost": ((">CPU x", "speedup", 1, "g"), (">task s", "task_s", 1, ".4g"), (">GPU", "gpu", 1, ".5f"),
             (">vCPU", "vcpu", 1, ".5f"), (">other", "other", 1, ".5f"), (">completed", "per_completed", 1, ".4f"),
             (">vCPU-h may cost", "break_even_vcpu_price", 1, ".4f")),
    "rack": (("node", "node", 1, ""), (">nodes", "nodes", 1, ".0f"), (">tasks/h", "tasks_per_hour", 1, ".0f"),
             (">per kW", "tasks_per_hour_per_kw", 1, ".0f"), (">J/task", "joules_per_task", 1, ".0f"),
             (">per watt x", "amplification", 1, ".3f"), (">rack x", "rack_ratio", 1, ".3f"),
             (">even at W", "break_even_watts", 1, ".0f")),
}  # fmt: skip
LEGEND = {
    "stall": "place waits: % of the time that a sequence's place on a GPU is held while tools work; GPU idle: % of all "
             "GPUs' time at these tries",
    "cost": "money per attempt by part, and per completed task; vCPU-h may cost: the price of a vCPU-hour at which an "
            "attempt costs what it costs at speed-up 1",
    "rack": "per watt x, rack x: against the first node; even at W: watts of the node at which its rack does as much",
}  # fmt: skip


def show_model(doc: Json, out: IO[str]) -> None:
    """Nothing; writes the model's page."""
    console = console_of(out)
    for kind, title in (("measured", "measured"), ("user", "given"), ("assumed", "assumed")):
        if doc["inputs"][kind]:
            console.print(line(console, title, "bold"))
            pairs(console, [(one["name"], _input(one)) for one in doc["inputs"][kind]], 24)
    columns = COLUMNS[doc["model"]]
    table = table_of(console, *(column[0] for column in columns))
    for row in doc["rows"]:
        table.add_row(*(line(console, _cell(row, column)) for column in columns))
    console.print()
    console.print(table)
    console.print(line(console, LEGEND[doc["model"]]))
    lines = [*_beside(doc), *(("note", text) for text in doc["notes"])]
    pairs(console, [one for one in lines if one[1]])


def _input(one: Json) -> str:
    unit = f" {one['unit']}" if one["unit"] else ""
    ends = "" if one["low"] is None else f" ({one['low']:.6g} to {one['high']:.6g})"
    ends = " (no interval)" if one["kind"] == "unknown" else ends
    source = "" if one["source"] in ("inputs", "assumed") else f"  from {one['source']}"
    return f"{one['value']:.6g}{unit}{ends}{source}"


def _cell(row: Json, column: tuple[str, str, float, str]) -> str:
    _, key, factor, form = column
    value = row["memory"]["value"] + row["energy"]["value"] if key == "other" else row[key]
    if isinstance(value, Mapping):
        value = value["value"]
    return "-" if value is None else value if isinstance(value, str) else _figure(factor * value, form)


def _figure(value: float, form: str) -> str:
    """The number with fixed decimals (".0f"), but never with fewer than three digits that count: no small one is 0."""
    few = form[0] == "." and form[-1] == "f" and abs(value) < 10.0 ** (2 - int(form[1:-1]))
    return format(value, ".3g" if few else form)


def _beside(doc: Json) -> list[tuple[str, str]]:
    """Sentences beside the table: intervals, limits, break-evens."""
    last = doc["rows"][-1]
    first = next((row for row in doc["rows"] if row.get("speedup") == 1), doc["rows"][0])
    if doc["model"] == "stall":
        even = doc["break_even"]
        feed = _told(first["cores_per_gpu"], ".3g")
        lines = [("gain at most", f"{_told(doc['gain_limit'], '.2f')}, with tools that take no time"),
                 ("cores to fill", f"{_told(even['cores'], '.0f')}: {even['what']}"),
                 ("cores per GPU", f"{feed}, never to starve one")]  # fmt: skip
        if even["speedup"]:
            lines.append(("break-even", f"the cores keep up at a speed-up of {_told(even['speedup'], '.2f')}"))
        return [*lines, ("at the last row", f"gain {_told(last['gain'], '.2f')}, place waits "
                                            f"{_told(last['stall'], '.3f')}")]  # fmt: skip
    if doc["model"] == "cost":
        return [("completed task", f"{_told(first['per_completed'], '.4f')} at speed-up 1; "
                                   f"{_told(last['per_completed'], '.4f')} at {last['speedup']:g}"),
                ("reserved / used", f"{_told(first['waste'], '.1f')} vCPU-seconds; a completed task would cost "
                                    f"{_told(first['per_completed_used'], '.4f')} by those used")]  # fmt: skip
    freed = [f"{_told(one['gpus'], '.1f')} at {one['speedup']:g}" for one in doc["gpus_freed"] if one["speedup"] > 1]
    return [("GPUs freed", f"{'; '.join(freed)} (by a CPU so many times as fast, at equal tries)" if freed else ""),
            *((row["node"], f"per watt {_told(row['amplification'], '.3f')}, rack {_told(row['rack_ratio'], '.3f')} "
                            f"times {first['node']}") for row in doc["rows"][1:])]  # fmt: skip


def _told(quantity: Json, form: str) -> str:
    if quantity["value"] is None:
        return f"- ({quantity['reason']})"
    if quantity["low"] is None:
        open_ = quantity["reason"] and quantity["reason"].startswith("no interval")
        return _figure(quantity["value"], form) + (f" ({quantity['reason']})" if open_ else "")
    value, low, high = (_figure(quantity[name], form) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"
