"""How much of a task a repeat did: rates, CPU time by task, and on what basis; T6's burst is no neighbour's work."""

from __future__ import annotations

from collections.abc import Sequence

from cpubench.analysis.task_spans import LEAST, cpu_s, percentiles, walls
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, paced_cpus, windowed

STEADY = 10  # windows are so many times as long as the 95th percentile of steps
NEIGHBOUR_STEPS = 50  # of a task of T6, as many as T4's has
BURST = "burst"  # the kind of T6's step that takes memory and is no neighbour's
BASES = {
    "T3": "steps that ended in the window, by the steps of a task, without waits",
    "T4": "steps that ended in the window, by the steps of a task, waits for the model included",
    "T5": "turns that ended in the window, by the turns of a task, without waits",
    "T6": f"steps of neighbours that ended in the window, by {NEIGHBOUR_STEPS}",
}


def basis(run: TaskRun, row: TaskRow) -> str:
    """What the rate of a row counts, and what agents waited for."""
    if not windowed(row):
        return "one agent, no waits for a model"
    made = BASES.get(row.task, BASES["T3"])
    if row.task != "T6":
        return made
    cpus, neighbours = paced_cpus(run.divisor, run.cpus), row.agents - 1
    if 2 * neighbours > cpus:
        return f"{made}, paced to half of the CPUs"
    return f"{made}, without waits: {neighbours} use no more than half of {cpus:g} CPUs"


def step_walls(row: TaskRow, done: Sequence[Repeat]) -> list[float]:
    """Seconds of all steps that are work of the row."""
    return [wall for kind, times in walls(row, done).items() if kind != BURST for wall in times]


def tasks_done(row: TaskRow, one: Repeat) -> float:
    """How many tasks a repeat did: one, or the steps that ended in the window by the steps of a task."""
    if not windowed(row):
        return 1.0
    steps = [step for step, back in zip(one.spans.step, one.spans.background, strict=True) if not back]
    if row.task == "T6":
        return sum(row.steps[step].kind != BURST for step in steps) / NEIGHBOUR_STEPS
    if row.task == "T5":
        return len(steps) / sum(step.kind == "turn" for step in row.steps)
    return len(steps) / len(row.steps)


def per_hour(row: TaskRow, one: Repeat) -> float:
    """Tasks per hour of a repeat."""
    return 3600 * tasks_done(row, one) / (one.wall_ns / 1e9)


def core_seconds(row: TaskRow, one: Repeat) -> float:
    """CPU time of tools and servers by task; 0 where none was done."""
    tasks = tasks_done(row, one)
    used_s = sum(cpu_s(one, at) for at, step in enumerate(one.spans.step) if row.steps[step].kind != BURST)
    return used_s / tasks if tasks else 0.0


def unsteady(row: TaskRow, done: Sequence[Repeat]) -> str | None:
    """Why the windows of many agents tell no rate; None where they do.

    Steps that take a good part of the window are cut at its end, the long ones most often: 64 agents on two CPUs and
    20 s, whose p95 was 7 s, used 2.8 core-seconds a task by the steps that ended, and 4.0 each alone.
    """
    times = step_walls(row, done)
    if not windowed(row) or not done:
        return None
    if len(times) < LEAST["p95"]:
        return f"{len(times)} steps; {LEAST['p95']} are needed: give a longer --window"
    slow_s, window_s = percentiles(times)["p95_s"], done[0].wall_ns / 1e9
    if slow_s > window_s / STEADY:
        return f"not steady: steps of {slow_s:.1f} s in a window of {window_s:g} s; give a longer --window"
    return None
