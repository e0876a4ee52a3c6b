"""The document of ``cpubench tasks explain``: each task by path, and changes between two hosts as foretold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any

import numpy as np

from cpubench.analysis.agreement import Point, agreement
from cpubench.analysis.estimates import Estimate, of_runs, span, unpaired
from cpubench.analysis.paths import COUNTED, RULES, one_ns, predicted, prices, seconds_of, summed, tallies
from cpubench.analysis.quantity import quantity
from cpubench.analysis.rates import run_rates
from cpubench.analysis.reference import BASE_CAP
from cpubench.analysis.task_spans import lost
from cpubench.analysis.task_spans import prices as start_prices
from cpubench.analysis.task_times import other_work, work_of
from cpubench.errors import UsageError
from cpubench.results.parse import shown
from cpubench.results.records import Run
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, windowed

Json = dict[str, Any]
Side = tuple[Run, TaskRun]
PRICED = {name for rule in RULES.values() for name in rule.rows}
AGAINST = "--against"


def explained(side: Side, other: Side | None = None) -> Json:
    """What the kernels of a run explain of the tasks; with another side also what they foretold of its tasks.

    UsageError where kernels and tasks are of two hosts, or the two sides did other work.
    """
    run, tasks = side
    _check_host(run, tasks)
    price = prices(run_rates(run, BASE_CAP))
    rows = [_task(tasks, row, price) for row in tasks.tasks if row.task != "T0"]
    document: Json = {
        "host": {name: tasks.host.get(name) for name in ("hostname", "cpu_model", "kernel")},
        "prices": {path: _price(path, price) for path in RULES},
        "tasks": rows,
        "notes": [f"no kernel prices {RULES[path].counted}: {', '.join(RULES[path].rows)} was not measured"
                  for path in COUNTED if path not in price]
                 + [f"{row['task']}: nobody counted the bytes of {row['bytes_uncounted']} steps: their time is "
                    "under files" for row in rows if row["paths"] is not None and row["bytes_uncounted"]],
        "against": None,
    }  # fmt: skip
    if other is not None:
        _check_host(*other)
        _check_kernels(run, other[0])
        document["notes"] += _check_tasks(tasks, other[1])
        document["against"] = _against(side, other, price)
    return document


def _check_host(run: Run, tasks: TaskRun) -> None:
    """UsageError where the two were measured on different hosts, or one of them under a cap."""
    if tasks.capped:
        text = f"the tasks were done under {tasks.cap}; prices are of kernels without a cap"
        raise UsageError("cap", text, "tasks")
    ids = run.host.get("id"), tasks.host.get("id")
    if None not in ids and ids[0] != ids[1]:
        raise UsageError("host", "the kernels and the tasks were measured on two hosts; give runs of one host", "tasks")


def _check_kernels(run: Run, other: Run) -> None:
    """UsageError where kernels that price something did other work on the other side."""
    suites = run.plan.suite, other.plan.suite
    if suites[0] != suites[1]:
        text = f"its kernels are of suite {suites[1]}, those of RUN of suite {suites[0]}: their prices mean other work"
        raise UsageError("suite", text, AGAINST)
    known = {one.name: one for one in run.plan.variants if one.name in PRICED}
    for one in other.plan.variants:
        same = known.get(one.name, one)
        if one.version != same.version:
            text = f"{one.name} is version {one.version}, in RUN version {same.version}: that is other work"
            raise UsageError("version", text, AGAINST)
        if one.unit != same.unit:
            text = f"an operation of {one.name} is a {shown(one.unit, 40)}, in RUN a {shown(same.unit, 40)}"
            raise UsageError("unit", text, AGAINST)


def _check_tasks(tasks: TaskRun, other: TaskRun) -> list[str]:
    """Notes on what may differ, which is the file system: kernels have files of their own, and the change may be just
    that. UsageError where the tasks did other work."""
    if tasks.suite != other.suite:
        text = f"its tasks are of suite {shown(other.suite, 40)}, those of TASKS of suite {shown(tasks.suite, 40)}"
        raise UsageError("suite", f"{text}: that is other work", AGAINST)
    one, two = work_of(tasks), work_of(other)
    places = one.pop("file system"), two.pop("file system")
    if told := other_work(one, two):
        raise UsageError("work", told, AGAINST)
    named = [shown(place, 40) for place in places]
    return [f"the tasks' files were on {named[0]}, of the other side on {named[1]}"] if places[0] != places[1] else []


def _price(path: str, price: Mapping[str, Estimate]) -> Json:
    rule = RULES[path]
    found = None
    if path in price:
        value, low, high = span(price[path])
        found = {"value": value, "low": low, "high": high}
    return {"counted": rule.counted or None, "rows": list(rule.rows), "ns": found}


def _task(tasks: TaskRun, row: TaskRow, price: Mapping[str, Estimate]) -> Json:
    done = row.repeats
    if (failed := lost(row)) or not done:
        return {"task": row.name, "repeats": 0, "paths": None, "reason": row.skipped or failed or "no repeat"}
    ns = one_ns(price)
    tables = [summed(seconds_of(row, one, ns)) for one in done]
    uncounted = max(_uncounted(one) for one in done)
    counts = {path: median(sum(t.counts[path] for t in tallies(row, one).values()) for one in done) for path in COUNTED}
    system_s = mean(sum(t.sys_s for t in tallies(row, one).values()) for one in done)
    total = sum(sum(table.values()) for table in tables)
    asked_s = sum(counts[path] * ns[path] / 1e9 for path in ns)
    return {
        "task": row.name, "repeats": len(done), "reason": None,
        "paths": {
            path: {
                "count": None if path == "copy" and uncounted else counts.get(path),
                "s": quantity(np.log(values), reason="nothing was counted") if min(values) > 0 else None,
                "share": sum(values) / total if total else None,
            } for path, values in ((path, np.array([table[path] for table in tables])) for path in RULES)
        },
        "counted_from_agents": None in (fork for one in done for fork in one.spans.forks),
        "bytes_uncounted": uncounted,
        "asked_of_system": asked_s / system_s if system_s else None,
        "starts": _starts(tasks, row, done[0], total / len(done)),
    }  # fmt: skip


def _uncounted(one: Repeat) -> int:
    """How many steps of a repeat moved bytes that nobody counted."""
    return sum(None in both for both in zip(one.spans.read_bytes, one.spans.written_bytes, strict=True))


def _starts(tasks: TaskRun, row: TaskRow, one: Repeat, total_s: float) -> Json | None:
    """Of the time above, what as many empty interpreters and shells take (T0): it lies in several paths."""
    price = start_prices(tasks)
    if price is None:
        return None
    steps = [row.steps[step] for step, back in zip(one.spans.step, one.spans.background, strict=True) if not back]
    pythons, shells = sum(step.pythons for step in steps), sum(step.shells for step in steps)
    taken_s = pythons * sum(price["python"]) + shells * sum(price["shell"])
    return {"pythons": pythons, "shells": shells, "s": taken_s, "share": taken_s / total_s if total_s else None}


def walls(row: TaskRow, repeats: Sequence[Repeat], kind: str | None = None) -> Any:
    """Log seconds of the steps of a repeat (of one kind, where asked for), the harness left out; an array."""
    found = []
    for one in repeats:
        parts = [wall for wall, step, back in zip(one.spans.wall_ns, one.spans.step, one.spans.background, strict=True)
                 if not back and kind in (None, row.steps[step].kind)]  # fmt: skip
        found.append(sum(parts) / 1e9)
    with np.errstate(divide="ignore"):
        return np.log(np.array(found))


def split(row: TaskRow, repeats: Sequence[Repeat], ns: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Mean seconds by kind and path over repeats."""
    tables = [seconds_of(row, one, ns) for one in repeats]
    return {kind: {path: mean(table[kind][path] for table in tables) for path in RULES}
            for kind in tables[0] if all(kind in table for table in tables)}  # fmt: skip


def _against(side: Side, other: Side, price: Mapping[str, Estimate]) -> Json:
    """Each task of both sides, its time on B by that on A, foretold by the kernels and measured; or why it has none."""
    after = prices(run_rates(other[0], BASE_CAP))
    theirs = {row.name: row for row in other[1].tasks if row.task != "T0"}
    rows: list[Json] = []
    points = []
    for row in side[1].tasks:
        if row.task == "T0":
            continue
        match = theirs.pop(row.name, None)
        reason = _apart(row, match)
        told = None if reason else predicted(summed(split(row, row.repeats, one_ns(price))), price, after)
        if match is None or told is None:
            rows.append({"task": row.name, "reason": reason or "its steps took no time"})
            continue
        logs = [walls(each, each.repeats) for each in (row, match)]
        seen = float(np.mean(logs[1]) - np.mean(logs[0]))
        many = min(len(each) for each in logs) >= 2
        rows.append({
            "task": row.name, "reason": None, "predicted": dict(zip(("value", "low", "high"), span(told), strict=True)),
            "measured": dict(zip(("value", "low", "high"), span(unpaired(*map(of_runs, logs))), strict=True)) if many
                        else {"value": float(np.exp(seen)), "low": None, "high": None},
        })  # fmt: skip
        points.append(Point("against", row.name, float(told.log), seen))  # all share one pair of runs of kernels
    rows += [{"task": name, "reason": "was done on the other side alone"} for name in theirs]
    unpriced = [path for path in RULES if RULES[path].rows and not (path in price and path in after)]
    return {"rows": rows, "agreement": agreement(points), "unchanged": unpriced}


def _apart(row: TaskRow, match: TaskRow | None) -> str | None:
    """Why a task has no time on the other side by that on this one; None where it has."""
    if match is None:
        return "was done on this side alone"
    if row.version != match.version:
        return f"is version {row.version}, on the other side {match.version}: that is other work"
    for one, where in ((row, "this side"), (match, "the other side")):
        if why := one.skipped or lost(one) or (None if one.repeats else "no repeat"):
            return f"on {where}: {why}"
    return "is done by many in windows; whole tasks are foretold" if windowed(row) else None
