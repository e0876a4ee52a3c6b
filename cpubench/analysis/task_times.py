"""How long each task took: seconds of a whole task by repeat, and what the steps of a class of tool calls take."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cpubench.analysis.density import solo_s
from cpubench.analysis.task_spans import good
from cpubench.analysis.tasks import tasks_document
from cpubench.results.parse import shown
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, windowed

LOAD = 4  # agents a core in the scored row of T4: every profile has it, and two CPUs carried it within twice solo
FLEET = f"T4[{LOAD} agents a core]"
ADAPTERS = {"bwrap", "runc", "runsc"}  # of T3: programs that a host may have; a score cannot ask for them
# Kinds of steps by the class of the tool call that they stand for; traces without times get theirs.
CLASSES = {
    "test": "test", "target": "test", "install": "install", "venv": "install", "build": "build", "snippet": "py",
    "transform": "py", "script": "py", "search": "search", "grep": "search", "read": "read", "edit": "edit",
    "config": "edit", "status": "git", "sqlite": "db", "http": "net",
}  # fmt: skip


@dataclass(frozen=True)
class Times:
    """Seconds of a task by the index of its repeat; ``reason`` says why there are none. ``failed`` repeats are counted,
    and where there is one the task has no time: those that a timeout spared would be the fast ones."""

    task: str
    version: int
    seconds: dict[int, float]
    reason: str
    failed: int = 0


def task_times(run: TaskRun) -> dict[str, Times]:
    """The times of all tasks but T0, by row. T4 is there as ``FLEET``, at 4 agents a core: see ``_loaded``; of other
    tasks that are done in windows nobody has said what their time is: they and rows of adapters are no scored rows."""
    rates = {row["task"]: row["tasks_per_hour"] for row in tasks_document(run)["tasks"]}
    told = {name: rate["reason"] if rate["value"] is None else None for name, rate in rates.items()}
    made: dict[str, Times] = {}
    for row in run.tasks:
        failed = sum(not good(one) for one in row.repeats)
        done = [] if failed else row.repeats
        if row.task == "T4":
            if row.agents != scored_agents(run.divisor.n) or row.tools:
                continue
            found = {} if told[row.name] else {one.index: _loaded(run, row, one) for one in done}
            seconds = {index: value for index, value in found.items() if value is not None}
            made[FLEET] = Times(row.task, row.version, seconds, told[row.name] or "T1 alone was not done", failed)
        elif row.task != "T0" and not windowed(row) and not ADAPTERS.intersection(row.params):
            seconds = {one.index: one.wall_ns / 1e9 for one in done}
            made[row.name] = Times(row.task, row.version, seconds, told[row.name] or "not measured", failed)
    return made


def scored_agents(cores: float) -> int:
    """Agents of the scored row of T4: 4 a core, rounded down as levels are where a quota grants parts of a CPU."""
    return max(1, int(LOAD * cores))


def _loaded(run: TaskRun, row: TaskRow, one: Repeat) -> float | None:
    """Seconds that the steps of a task take beside the other agents of a window, waits for the model left out.

    The steps that ended in the window against the very same steps alone, by their sums, times what the steps of one
    task take alone: which steps a short window drew does not matter, how long the model thinks neither.
    """
    alone = solo_s(run, row)
    there = [at for at, step in enumerate(one.spans.step) if not one.spans.background[at]
             and row.steps[step].label in alone]  # fmt: skip
    alone_s = math.fsum(alone[row.steps[one.spans.step[at]].label] for at in there)
    if not alone_s:
        return None
    loaded_s = math.fsum(one.spans.wall_ns[at] / 1e9 for at in there)
    return math.fsum(alone.get(step.label, 0.0) for step in row.steps) * loaded_s / alone_s


def class_times(run: TaskRun) -> dict[str, float]:
    """Mean seconds of a step by class of tool calls, over the tasks of one agent that start a process for each."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in run.tasks:
        if row.task not in ("T1", "T2") or row.tools or "server" in row.params:
            continue
        for one in filter(good, row.repeats):
            for at, step in enumerate(one.spans.step):
                kind = CLASSES.get(row.steps[step].kind)
                if kind and not one.spans.background[at]:
                    found[kind].append(one.spans.wall_ns[at] / 1e9)
    return {kind: math.fsum(times) / len(times) for kind, times in sorted(found.items())}


def work_of(run: TaskRun) -> dict[str, str]:
    """What makes the tasks of two runs other work, whatever their CPUs: versions of the tools, file system, inputs."""
    found = programs_of(run)
    return {name: found[name] for name in ("python3", "cc", "sh", "file system") if name in found} | {
        "inputs": run.inputs_sha256[:12]
    }


def other_work(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """Which of the tools of two runs of tasks, as ``work_of`` tells them, are not the same: their times are of other
    work."""
    unlike = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    told = "; ".join(f"{name} {shown(one.get(name, '-'), 40)}, {shown(other.get(name, '-'), 40)}" for name in unlike)
    return f"the tasks are not the same work: {told}" if unlike else None


def programs_of(run: TaskRun) -> dict[str, str]:
    """What the times depend on beside the CPU: the programs by name with their versions, and the file system."""
    made: dict[str, Any] = {name: str(facts.get("version")) for name, facts in sorted(run.programs.items())}
    return made | {"file system": str(run.file_system.get("file_system"))}
