"""The section on agent tasks: rates, where the time of a task goes, and how many agents a host carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.report.html.blocks import Block, Section, Table, Text
from cpubench.report.html.figures.phases import NO_TASKS, WHOLE, phases
from cpubench.report.html.words import MISSING
from cpubench.report.terminal import spread
from cpubench.results.states import under_cap

Json = Mapping[str, Any]
NOTE = (
    "Tasks are pieces of work that agents do, with real compilers, interpreters and servers. Each candidate's newest "
    "run of tasks without a cap is shown, or its newest where all are under one. Intervals are over repeats; no words "
    "of faster or slower are made of them here, and they are in no points of this page. T4 counts steps of many agents "
    "that wait for their models."
)


def tasks(doc: Json) -> Section:
    every = [one for one in doc["candidates"] if one["tasks"]]
    if not every:
        return Section("tasks", "Agent tasks", [Text([f"No figures: {NO_TASKS}."])])
    blocks: list[Block] = [Text([NOTE]), _runs(every)]
    if unlike := _unlike(every):
        blocks.append(Text([f"Not the same on all, so times are of different work: {', '.join(unlike)}."]))
    blocks += [_rates(every), *(phases(every, task) for task in WHOLE)]
    blocks += [table for table in (_density(every), _faults(every)) if table.rows]
    without = [one["label"] for one in doc["candidates"] if not one["tasks"]]
    if without:
        blocks.append(Text([f"No run of tasks of {', '.join(without)}."]))
    return Section("tasks", "Agent tasks", blocks)


def _runs(every: Sequence[Json]) -> Table:
    rows = []
    for one in every:
        for at, made in enumerate(one["tasks"], 1):
            profile = made["profile"] + (", an estimate" if made["estimate"] else "")
            cap = f"{made['cap']['level']} ({made['cap']['state']})" if made.get("cap") else "none set"
            programs = "; ".join(f"{name} {version}" for name, version in made["programs"].items())
            rows.append([one["label"], made["folder"], made["created_utc"], profile, cap, made["stopped"],
                         made["storage"], programs,
                         "yes" if at == len(one["tasks"]) else _passed_over(made, one["tasks"][-1])])  # fmt: skip
    heads = ["candidate", "run", "started", "profile", "power cap", "ended", "files on", "programs", "shown"]
    return Table("task-runs", "Runs of tasks", heads, rows)


def _passed_over(made: Json, shown: Json) -> str:
    return "no, there is one without a cap" if under_cap(made) and not under_cap(shown) else "no, there is a newer one"


def _unlike(every: Sequence[Json]) -> list[str]:
    """What of the newest runs of tasks is not the same."""
    newest = [one["tasks"][-1] for one in every]
    named = {"suite": "suite", "inputs": "inputs", "programs": "programs", "storage": "file system",
             "think": "scale of the waits"}  # fmt: skip
    caps = {made["cap"]["level"] if under_cap(made) else None for made in newest}
    unlike = [words for key, words in named.items() if any(made[key] != newest[0][key] for made in newest)]
    return [*unlike, "power cap"] if len(caps) > 1 else unlike


def _rates(every: Sequence[Json]) -> Table:
    """By task, so that candidates stand below each other."""
    found: dict[str, list[list[str]]] = {}
    for one in every:
        for row in one["tasks"][-1]["tasks"]:
            rate, steps = row["tasks_per_hour"], row["steps"]
            flags = ", ".join(f"{flag} {count}" for flag, count in row["flags"].items())
            found.setdefault(row["task"], []).append([
                row["task"], one["label"], f"{_figure(rate['value'])}{spread(rate)}".replace("+-", "±"),
                _figure(row["core_seconds_per_task"]["value"]), _ms(steps["p50_s"]), _ms(steps["p95_s"]),
                f"{row['failures']} of {row['repeats']}", row["skipped"] or (rate["reason"] or "") or flags,
            ])  # fmt: skip
    rows = [cells for task in found.values() for cells in task]
    heads = ["task", "candidate", ">tasks per hour", ">core-seconds a task", ">p50 of steps", ">p95", ">failed",
             "flags, or why not"]  # fmt: skip
    return Table("task-rates", "Tasks: rate, CPU time, and how long their steps take", heads, rows)


def _figure(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _ms(seconds: float | None) -> str:
    return MISSING if seconds is None else f"{_figure(1000 * seconds)} ms"


def _density(every: Sequence[Json]) -> Table:
    rows = []
    for one in every:
        found = one["tasks"][-1]["density"]
        for level in found["levels"]:
            verdict = {True: "yes", False: "no", None: level["reason"] or "too few steps"}[level["within"]]
            waits = ", ".join(f"{name} {100 * share:.0f} %" for name, share in (level["pressure"] or {}).items())
            rows.append([one["label"], str(level["agents"]), _figure(level["stretch_p95"]), verdict,
                         waits or MISSING])  # fmt: skip
    heads = ["candidate", ">agents at once", ">p95 of steps, times alone", "within twice", "tasks waited for"]
    return Table("density", "How many agents a host carries", heads, rows)


def _faults(every: Sequence[Json]) -> Table:
    rows = []
    for one in every:
        made = one["tasks"][-1]
        rows += [[one["label"], "failed", text] for text in made["failed"]]
        rows += [[one["label"], f"not there: {name}", text] for name, text in made["missing"].items()]
        rows += [[one["label"], "note", text] for text in made["notes"]]
    return Table("task-notes", "Said of the tasks", ["candidate", "what", "text"], rows)
