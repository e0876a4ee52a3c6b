"""A run of tasks as a person reads it, at 80 columns: rates, where the time went as bars, density, the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from cpubench.report.page import console_of, line, pairs, table_of
from cpubench.report.terminal import spread

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]
BAR = 30  # columns of the largest share
PATHS = {"process": "process starts", "kernel": "kernel, files", "user": "user code", "off_cpu": "not on a CPU"}


def show_tasks(doc: Json, out: IO[str]) -> None:
    """Nothing; writes the tables of a run of tasks."""
    console = console_of(out)
    if doc["cap"] is not None:
        console.print(line(console, f"\nUnder {doc['cap']['level']}: {doc['cap']['state']}", "bold"))
        pairs(console, [("cap", doc["cap"]["text"])])
    _rates(doc, console)
    for row in doc["tasks"]:
        if row["task"] != "T0" and row["tasks_per_hour"]["value"] is not None:
            _bars(row, console)
    _ladder(doc, console)
    _density(doc, console)
    _bursts(doc, console)
    _harness(doc, console)
    lines = [("failed", text) for text in doc["failed"][:10]]
    lines += [(row["task"], f"not done: {row['skipped']}") for row in doc["tasks"] if row["skipped"]]
    lines += [(row["task"], f"no rate: {row['tasks_per_hour']['reason']}") for row in doc["tasks"]
              if row["tasks_per_hour"]["value"] is None and not row["skipped"]]  # fmt: skip
    lines += [("note", text) for text in doc["notes"]]
    if lines:
        console.print()
        pairs(console, lines)


def show_levels(ratios: Sequence[Json], out: IO[str]) -> None:
    """Nothing; writes tasks per hour of each cap level over those of another, paired by repeat."""
    console = console_of(out)
    lacking = [(f"{row['task']}, {row['level']}", row["ratio"]["reason"]) for row in ratios
               if row["ratio"]["value"] is None]  # fmt: skip
    over = ratios[0]["over"] if ratios else ""
    table = table_of(console, "task", "level", f">x {over}", ">95 %")
    for row in ratios:
        made = row["ratio"]
        ends = "-" if made["low"] is None else f"{made['low']:.3f} to {made['high']:.3f}"
        value = "-" if made["value"] is None else f"{made['value']:.3f}"
        table.add_row(*(line(console, cell) for cell in (row["task"], row["level"], value, ends)))
    console.print()
    console.print(table)
    pairs(console, lacking)


def _rates(doc: Json, console: Console) -> None:
    table = table_of(console, "task", ">tasks/h", ">95 %", ">core-s", ">p50 ms", ">p95 ms", ">failed")
    for row in doc["tasks"]:
        rate, steps = row["tasks_per_hour"], row["steps"]
        width = spread(rate).strip() or "-"
        failed = f"{row['failures']} of {row['repeats']}"
        cells = (row["task"], _figure(rate["value"]), width, _figure(row["core_seconds_per_task"]["value"]),
                 _figure(_ms(steps["p50_s"])), _figure(_ms(steps["p95_s"])), failed)  # fmt: skip
        table.add_row(*(line(console, cell) for cell in cells))
    console.print(table)
    console.print(line(console, "One agent without waits for a model; of many, by steps per task, in T4 with waits."))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _bars(row: Json, console: Console) -> None:
    """Two blocks of bars on one scale: phases, and the estimate of paths."""
    console.print(line(console, f"\n{row['task']}", "bold"))
    phases = [(name, one["wall_s"], one["cpu_s"], one["share"]) for name, one in row["phases"].items()]
    paths = [(PATHS[name], one["s"], None, one["share"]) for name, one in row["paths"].items()]
    most = max((share or 0 for *_, share in (*phases, *paths)), default=0)
    for title, block in (("phase", phases), ("path (estimate)", paths)):
        console.print(line(console, f"{title:17}{'s':>8}{'CPU s':>8}{'share':>9}"))
        for name, wall, cpu, share in block:
            seconds = f"{_figure(wall['value']):>8}{'' if cpu is None else _figure(cpu['value']):>8}"
            part = "-" if share is None else f"{100 * share:.1f} %"
            bar = "#" * round(BAR * share / most) if share and most else ""
            console.print(line(console, f"{name:17}{seconds}{part:>9}  {bar}"))


def _ladder(doc: Json, console: Console) -> None:
    """What each rung of isolation costs at the median: made, used, taken down."""
    rows = [row for row in doc["tasks"] if row["task"].startswith("T3[")]
    if not any(row["kinds"] for row in rows):
        return
    table = table_of(console, "sandbox, ms at p50 (p95)", ">create", ">run", ">destroy")
    for row in rows:
        if row["kinds"]:
            cells = [_both(row["kinds"].get(kind)) for kind in ("create", "run", "destroy")]
            table.add_row(*(line(console, cell) for cell in (row["task"], *cells)))
    console.print()
    console.print(table)


def _both(found: Json | None) -> str:
    if found is None:
        return "-"
    return f"{_figure(_ms(found['p50_s']))} ({_figure(_ms(found['p95_s']))})"


def _bursts(doc: Json, console: Console) -> None:
    for row in doc["tasks"]:
        if row.get("burst"):
            found = row["burst"]
            outside, during = (_figure(_ms(found[name])) for name in ("outside_p95_s", "during_p95_s"))
            told = f"neighbours' p95 {outside} ms, in bursts {during} ms"
            console.print(line(console, f"{row['task']}: {told} ({_figure(found['stretch'])} times)"))


def _density(doc: Json, console: Console) -> None:
    found = doc["density"]
    if not found["levels"]:
        return
    table = table_of(console, "agents at once", ">stretch p95", ">CPU", ">memory", ">I/O", "")
    for level in found["levels"]:
        waits = level["pressure"] or {}
        cells = [str(level["agents"]), _figure(level["stretch_p95"])]
        cells += ["-" if name not in waits else f"{100 * waits[name]:.0f} %" for name in ("cpu", "memory", "io")]
        verdict = {True: "within twice solo", False: "beyond twice solo", None: "too few steps"}[level["within"]]
        cells.append("failed" if level["reason"] and level["within"] is False else verdict)
        table.add_row(*(line(console, cell) for cell in cells))
    console.print()
    console.print(table)
    agents = "unknown" if found["agents"] is None else found["agents"]
    limit = f"; waited for most: {found['first_limit']}" if found["first_limit"] else ""
    console.print(line(console, f"most agents within twice solo: {agents} ({found['reason']}{limit})"))


def _harness(doc: Json, console: Console) -> None:
    found = doc["harness"]
    if found["mean_s"] is None:
        return
    p95 = found["between_steps"]["p95_s"]
    told = f"{1000 * found['mean_s']:.2f} ms between two steps" + ("" if p95 is None else f" (p95 {1000 * p95:.2f})")
    told += f", {100 * found['share_of_wall']:.1f} % of the time (allowed: 2 ms or 2 %)"
    fleets = {name: share for name, share in found["share_of_cpu"].items() if name.startswith("T4")}
    if fleets:
        name, share = max(fleets.items(), key=lambda item: item[1])
        told += f"; {100 * share:.1f} % of CPU time in {name}"
    console.print()
    pairs(console, [("harness", told)])
