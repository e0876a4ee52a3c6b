"""The task score of a run of tasks: ratios of the reference's times to its own, weighted as a scenario says.

A task is the geometric mean of its rows. Tasks that are done once a round are combined inside each round, as kernels
are inside each pass; T4, which is done in windows of its own, is added as an independent part. A task that the
reference has and the run lacks, or failed at in any repeat, makes the score null; one that no reference has yet is not
covered, and is named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cpubench.analysis.estimates import Array, Estimate, bounded_exp, of_passes, span, unpaired
from cpubench.analysis.flags import environment_verdicts
from cpubench.analysis.noise import MAX_FLAGGED
from cpubench.analysis.notes import of_host
from cpubench.analysis.quantity import null, quantity
from cpubench.analysis.scenarios import WHOLE, Scenario
from cpubench.analysis.task_levels import cap_of
from cpubench.analysis.task_reference import TaskReference
from cpubench.analysis.task_times import Times, programs_of, task_times, work_of
from cpubench.results.parse import shown
from cpubench.results.states import HELD
from cpubench.results.task_records import TaskRun

POINTS = 1000.0  # what the reference has
WINDOWS = ("T4",)  # tasks whose repeats are no part of the rounds of the others

Json = dict[str, Any]
Logs = dict[int, float]  # of the ratio to the reference, by the index of a repeat


def task_score(run: TaskRun, reference: TaskReference, scenario: Scenario) -> Json:
    """The document of the task score: 1000 = reference, with 95 % intervals over repeats, and every task beside it."""
    times = task_times(run)
    logs: dict[str, list[Logs]] = {}
    reasons: dict[str, str] = {}  # why a task is missing
    rows = []
    for name, row in reference.rows.items():
        found = times.get(name)
        reason = _obstacle(run, reference, name, found)
        seconds = found.seconds if found and not reason else {}
        ratios = {index: math.log(row.seconds.value) - math.log(value) for index, value in seconds.items()}
        logs.setdefault(row.task, []).append(ratios)
        if reason:
            reasons.setdefault(row.task, f"{name}: {reason}")
        rows.append({
            "name": name, "task": row.task, "reference_s": row.seconds.value,
            "seconds": quantity(np.log(list(seconds.values())), reason=reason or ""),
            "score": quantity(np.array(list(ratios.values())), POINTS, reason or ""),
        })  # fmt: skip
    tasks = {task: {} if task in reasons else _together(parts) for task, parts in logs.items()}
    for task, ratios in tasks.items():
        if not ratios:
            reasons.setdefault(task, f"{task}: no repeat has all of its rows")
    made = _tasks(scenario, tasks, reasons)
    whole = _whole(scenario.tasks, tasks, reasons)
    estimate = run.estimate or run.stopped != "done"
    sure = whole["low"] is not None and whole["high"] is not None
    cap = cap_of(run)
    held = cap is None or (cap["state"] in HELD and not cap["shortened"])
    faults = _faults(run)
    return {
        "suite": run.suite, "reference": reference.name, "hostname": run.host.get("hostname"),
        "divisor_kind": run.divisor.kind, "scenario": scenario.name, "weights_sha256": scenario.sha256,
        "source": scenario.tasks_source,
        "covers": sum(one["weight"] or 0.0 for one in made if one["score"]["value"] is not None) / WHOLE,
        "score": whole, "equal_weights": _whole(dict.fromkeys(tasks, 1.0), tasks, reasons),
        "tasks": made, "rows": rows, "profile": run.profile, "estimate": estimate,
        "cap": run.cap if run.capped else None, "work": work_of(run),
        "publishable": not estimate and sure and held and not faults, "notes": [*faults, *_notes(run, reference)],
    }  # fmt: skip


def no_task_score(scenario: Scenario, reason: str) -> Json:
    """The document where no task was done."""
    return {"scenario": scenario.name, "weights_sha256": scenario.sha256, "covers": 0.0, "score": null(reason),
            "equal_weights": null(reason), "tasks": [], "rows": [], "notes": []}  # fmt: skip


def _obstacle(run: TaskRun, reference: TaskReference, name: str, found: Times | None) -> str | None:
    """Why a row of the reference has no ratio here."""
    row = reference.rows[name]
    if run.suite != reference.suite:
        return f"is of suite {shown(run.suite, 40)}, in the reference of {shown(reference.suite, 40)}"
    if found is None:
        return "was not done"
    if found.version != row.version:
        return f"is version {found.version}, in the reference {row.version}"
    if row.task == "T4" and run.think != reference.think:
        return f"waits {run.think:g} times as long for the model, in the reference {reference.think:g} times"
    return None if found.seconds else found.reason


def _together(parts: list[Logs]) -> Logs:
    """A task from its rows: their mean in each repeat that all of them have."""
    common = set(parts[0]).intersection(*parts[1:])
    return {index: sum(part[index] for part in parts) / len(parts) for index in sorted(common)}


def _tasks(scenario: Scenario, tasks: Mapping[str, Logs], reasons: Mapping[str, str]) -> list[Json]:
    """Each task with its weight and score, those too that the scenario does not weigh or that have no reference yet."""
    weights = scenario.tasks or {}
    made = []
    for task in dict.fromkeys([*weights, *tasks]):
        values = np.array(list(tasks.get(task, {}).values()))
        reason = reasons.get(task, "the reference does not have it")
        made.append({"task": task, "weight": weights.get(task), "score": quantity(values, POINTS, reason)})
    return made


def _whole(weights: Mapping[str, float] | None, tasks: Mapping[str, Logs], reasons: Mapping[str, str]) -> Json:
    """The weighted mean of the tasks that the reference has; null by name where one of them is missing."""
    if weights is None:
        return null("the weights say nothing of tasks")
    weighed = {task: weight for task, weight in weights.items() if weight and task in tasks}
    if not weighed:
        return null("the reference has none of the tasks that are weighed")
    gone = [reasons[task] for task in weighed if task in reasons]
    if gone:
        return null(f"missing: {'; '.join(gone[:3])}{f' and {len(gone) - 3} more' if len(gone) > 3 else ''}")
    total = sum(weighed.values())
    shares = {task: weight / total for task, weight in weighed.items()}
    halves = [{task: tasks[task] for task in weighed if (task in WINDOWS) == there} for there in (False, True)]
    parts = [(half, _part(half, shares)) for half in halves if half]
    for half, values in parts:
        if not len(values):
            return null(f"no repeat has all of {', '.join(half)}")
    repeats = min(len(values) for _, values in parts)
    if repeats < 2:
        once = ", ".join(task for half, values in parts if len(values) < 2 for task in half)
        value = POINTS * bounded_exp(sum(float(np.mean(values)) for _, values in parts))
        return null(f"an interval needs two repeats; there is one of {once}", repeats) | {"value": value}
    first, *rest = (of_passes(values) for _, values in parts)
    value, low, high = (POINTS * end for end in span(_sum(first, rest[0]) if rest else first))
    return {"value": value, "low": low, "high": high, "passes": repeats, "reason": None}


def _part(tasks: Mapping[str, Logs], shares: Mapping[str, float]) -> Array:
    """Weighted sum of the tasks' logs in each repeat that all of them have."""
    common = set.intersection(*(set(logs) for logs in tasks.values()))
    sums = [sum(shares[task] * logs[index] for task, logs in tasks.items()) for index in sorted(common)]
    return np.array(sums, dtype=float)


def _sum(a: Estimate, b: Estimate) -> Estimate:
    """Two independent parts together: their difference with one sign turned has the same error."""
    return unpaired(replace(a, log=-a.log), b)


def _faults(run: TaskRun) -> list[str]:
    """What forbids to publish the score of tasks as it does that of kernels: the host's CPUs, and disturbances."""
    made = [fault["text"] for fault in of_host(run.host, run.cpus, run.divisor)]
    every = [one for row in run.tasks for one in row.repeats]
    raised = [[flag.value for flag, found in environment_verdicts(one.environment, len(run.cpus)).items() if found]
              for one in every]  # fmt: skip
    flagged = sum(map(bool, raised))
    if flagged > MAX_FLAGGED * len(every):
        codes = Counter(code for codes in raised for code in codes)
        named = ", ".join(f"{code} {count}" for code, count in codes.items())
        made.append(f"{flagged} of {len(every)} repeats were disturbed ({named}): more than a fifth")
    return made


def _notes(run: TaskRun, reference: TaskReference) -> list[str]:
    """What else than the CPU differs from the reference, and what the numbers are not good for."""
    made = ["an estimate: too few repeats for verdicts"] if run.estimate else []
    if run.stopped != "done":
        made.append(f"the run of tasks was {run.stopped}")
    cap = cap_of(run)
    if cap is not None and run.capped:
        made.append(f"done under the cap {cap['level']}: {cap['state']} ({cap['text']})")
    if run.inputs_sha256 != reference.inputs_sha256:
        made.append("its inputs are others than the reference's: versions say which work is the same")
    if run.divisor.kind != reference.divisor_kind:
        kinds = f"a core is a {run.divisor.kind}, of the reference a {reference.divisor_kind}"
        made.append(f"{kinds}: agents a core are not alike")
    own = programs_of(run)
    for name, version in reference.programs.items():
        if name in own and own[name] != version:
            made.append(f"{name} is {shown(own[name], 60)}, of the reference {shown(version, 60)}")
    return made
