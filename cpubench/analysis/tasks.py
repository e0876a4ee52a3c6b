"""From ``tasks.json`` to the document that is printed: rates, phases, percentiles, density; by the rules of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from cpubench.analysis.density import burst_effect, density, stretches
from cpubench.analysis.flags import environment_verdicts
from cpubench.analysis.quantity import no_meter, null, quantity
from cpubench.analysis.task_levels import cap_of
from cpubench.analysis.task_rates import basis, core_seconds, per_hour, step_walls, unsteady
from cpubench.analysis.task_spans import (
    LEAST,
    PATHS,
    around_s,
    faults,
    good,
    lost,
    paths,
    percentiles,
    phases,
    pressure,
    prices,
    walls,
)
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, windowed

HOST = ("hostname", "cpu_model", "kernel", "arch", "virtual")

Json = dict[str, Any]


def tasks_document(run: TaskRun) -> Json:
    """All measures of a run of tasks, computed anew from its spans."""
    rows = [_row(run, row) for row in run.tasks]
    failures = [f"{row.name}: {text}" for row in run.tasks for one in row.repeats for text in faults(one)]
    notes = list(run.notes)
    if run.estimate:
        notes.append("an estimate: too few repeats for verdicts")
    cap = cap_of(run)
    if cap is not None and cap["shortened"]:
        notes.append("the times around caps are shorter than the profile's: no evidence of a cap")
    notes += sorted({f"not checked here: {text}" for row in run.tasks for one in row.repeats for text in one.unknown})
    return {
        "suite": run.suite, "profile": run.profile, "estimate": run.estimate, "seed": run.seed, "think": run.think,
        "stopped": run.stopped, "host": {name: run.host.get(name) for name in HOST},
        "divisor": {"kind": run.divisor.kind, "n": run.divisor.n}, "programs": run.programs, "missing": run.missing,
        "file_system": run.file_system, "inputs": run.inputs_sha256, "tasks": rows, "density": density(run),
        "harness": _harness(run), "failed": failures, "notes": notes,
        "cap": cap,
        "power": {"meter": run.meter, "scope": run.meter_scope, "provenance": run.meter_provenance,
                  "problem": run.meter_problem},
    }  # fmt: skip


def _row(run: TaskRun, row: TaskRow) -> Json:
    failed, fleet = lost(row), windowed(row)
    done = [] if failed else row.repeats
    shaky = unsteady(row, done)
    reason = row.skipped or failed or shaky or "not measured"
    counted = [] if shaky else done
    seconds = [core_seconds(row, one) for one in counted]
    rate = _quantity([per_hour(row, one) for one in counted], reason)
    whole_s = [] if fleet else [one.wall_ns / 1e9 for one in done]
    wall = _quantity(whole_s, "no task is whole in a window" if fleet else reason)
    made = {
        "task": row.name, "agents": row.agents, "version": row.version, "tools": row.tools, "skipped": row.skipped,
        "repeats": len(row.repeats), "failures": sum(not good(one) for one in row.repeats),
        "tasks_per_hour": rate, "basis": basis(run, row),
        "tasks_per_hour_per_core": _per_core(run, row, rate),
        **_power(run, row, counted, reason),
        "core_seconds_per_task": _quantity(seconds, reason), "wall_s": wall,
        "phases": _phases(row, done, reason), "paths": _paths(run, row, done, reason),
        "steps": _percentiles(step_walls(row, done), failed),
        "kinds": {kind: percentiles(times) for kind, times in walls(row, done).items()},
        "counts": _counts(done), "flags": _flags(run, [one for one in row.repeats if good(one)]),
    }  # fmt: skip
    if fleet:
        made["stretch"] = _percentiles([] if failed else stretches(run, row), failed, "")
        made["pressure"] = pressure(done)
        low = [one.memory_low_bytes for one in done if one.memory_low_bytes is not None]
        made["memory_low_bytes"] = min(low, default=None)
    if row.task == "T6":
        made["burst"] = burst_effect(made["kinds"]) | ({"reason": failed} if failed else {})
    return made


def _percentiles(times: Sequence[float], failed: str | None, unit: str = "_s") -> Json:
    """Percentiles of steps; null where a repeat ``failed``: its steps are not among them."""
    made = percentiles(times, unit)
    return made | {"reasons": dict.fromkeys(LEAST, failed)} if failed else made


def _per_core(run: TaskRun, row: TaskRow, rate: Json) -> Json:
    """The rate by cores; null where the agents do not fill them."""
    if row.task == "T6":
        return null("one agent is the burst, and the others use half of the CPUs at most")
    if windowed(row) and row.agents >= run.divisor.n:
        return _scaled(rate, 1 / run.divisor.n)
    return null("fewer agents than cores" if windowed(row) else "one agent does not fill the cores")


def _quantity(values: Sequence[float], reason: str) -> Json:
    """The mean with its interval over repeats; null where one of them is 0, whose logarithm is none."""
    if values and min(values) <= 0:
        return null("nothing was counted in some repeat", len(values))
    return quantity(np.log(np.array(values, dtype=float)), reason=reason)


def _scaled(one: Json, factor: float) -> Json:
    return {name: value * factor if name in ("value", "low", "high") and value is not None else value
            for name, value in one.items()}  # fmt: skip


def _power(run: TaskRun, row: TaskRow, done: Sequence[Repeat], reason: str) -> Json:
    """Mean watts, and what a task or an hour of it cost in them; null with the reason where a repeat has none."""
    if not run.meter:
        return {"watts": no_meter(), "tasks_per_hour_per_watt": no_meter(), "joules_per_task": no_meter()}
    unmetered = [one.power_reason or "the meter told nothing" for one in done if one.mean_w is None]
    if unmetered:
        return dict.fromkeys(("watts", "tasks_per_hour_per_watt", "joules_per_task"), null(unmetered[0]))
    each = [(one.mean_w, per_hour(row, one)) for one in done if one.mean_w is not None]
    drawn = {"watts": _quantity([watts for watts, _ in each], reason)}
    if row.task == "T6":
        burst = null("the burst draws power too, and is no task")
        return drawn | {"tasks_per_hour_per_watt": burst, "joules_per_task": burst}
    return drawn | {
        "tasks_per_hour_per_watt": _quantity([hour / watts for watts, hour in each], reason),
        "joules_per_task": _quantity([3600 * watts / hour if hour else 0.0 for watts, hour in each], reason),
    }


def _phases(row: TaskRow, done: Sequence[Repeat], reason: str) -> Json:
    """Wall and CPU time by phase, in the order of the task, and the share of all steps' wall time."""
    tables = [phases(row, one) for one in done]
    names = list(dict.fromkeys(step.phase for step in row.steps))
    total = sum(wall for table in tables for wall, _ in table.values())
    made = {}
    for name in names:
        both = [table.get(name, (0.0, 0.0)) for table in tables]
        made[name] = {
            "wall_s": _quantity([wall for wall, _ in both], reason),
            "cpu_s": _quantity([cpu for _, cpu in both], reason),
            "share": sum(wall for wall, _ in both) / total if total else None,
        }  # fmt: skip
    return made


def _paths(run: TaskRun, row: TaskRow, done: Sequence[Repeat], reason: str) -> Json:
    """Seconds by path and their shares: an estimate, see ``task_spans.paths``."""
    price = prices(run)
    if price is None or not done:
        return {name: {"s": null(reason if price else "T0 was not done"), "share": None} for name in PATHS}
    tables = [paths(row, one, price) for one in done]
    total = sum(sum(table.values()) for table in tables)
    return {
        name: {"s": _quantity([table[name] for table in tables], reason),
               "share": sum(table[name] for table in tables) / total if total else None}
        for name in PATHS
    }  # fmt: skip


def _counts(done: Sequence[Repeat]) -> Json:
    """Medians over repeats of what was counted; null where nobody counts it."""
    made: Json = {}
    for name in ("forks", "read_bytes", "written_bytes", "minor_faults", "major_faults", "voluntary", "involuntary"):
        sums = []
        for one in done:
            column = getattr(one.spans, name)
            shown = [value for value, back in zip(column, one.spans.background, strict=True) if not back]
            sums.append(None if None in shown else sum(shown))
        known = [value for value in sums if value is not None]
        made[name] = median(known) if known and len(known) == len(sums) else None
    made["peak_bytes"] = max((peak for one in done for peak in one.spans.peak_bytes), default=None)
    return made


def _flags(run: TaskRun, done: Sequence[Repeat]) -> dict[str, int]:
    """How many repeats each flag has."""
    found: dict[str, int] = {}
    for one in done:
        for flag, raised in environment_verdicts(one.environment, len(run.cpus)).items():
            if raised:
                found[flag.value] = found.get(flag.value, 0) + 1
    return found


def _harness(run: TaskRun) -> Json:
    """What the harness took: between the steps of one agent, and of the CPU time with many."""
    solo = [one for row in run.tasks if row.task != "T0" and not windowed(row) for one in row.repeats if good(one)]
    times = around_s(solo)
    steps_s = sum(one.wall_ns for one in solo) / 1e9 - sum(times)
    made: Json = {
        "between_steps": percentiles(times),
        "share_of_wall": sum(times) / (steps_s + sum(times)) if times else None,
        "share_of_cpu": {},
    }
    for row in run.tasks:
        done = [one for one in row.repeats if good(one)]
        used = sum(one.harness_us + one.tools_us for one in done)
        if used and row.task != "T0":
            made["share_of_cpu"][row.name] = sum(one.harness_us for one in done) / used
    enough = len(times) >= LEAST["p95"]
    mean_s = sum(times) / len(times) if times else None
    made["mean_s"] = mean_s
    made["holds"] = None if not enough or mean_s is None else bool(mean_s < 0.002 or made["share_of_wall"] < 0.02)
    return made
