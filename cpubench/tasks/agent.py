"""The process of one agent: it does the steps of a task once, and tells what each took and what is left.

Standard library and the extension only, started like a block: it dies with its parent, and its folder with it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from cpubench.host.noise import environment, snapshot
from cpubench.measure.inside import serve
from cpubench.measure.window import held, limits
from cpubench.tasks import crew, desk, spans, steps, verify, watts
from cpubench.tasks.catalogue import Task

Json = dict[str, Any]


def work(spec: Json, own: list[str], folder: Path, started_ns: int) -> Json:
    """What the spec's task did in ``folder``: a repeat as it is stored, with ``outputs`` by label for the pins."""
    task = Task(spec["task"], tuple(spec["params"]), tuple(spec["tools"]), spec["agents"])
    adopted = desk.adopt_orphans()
    unknown = [] if adopted and verify.children() is not None else ["processes left behind: the kernel does not tell"]
    told = spec.get("power") or {}
    before = snapshot(spec["cpus"], os.getsid(0))
    limits_before = held(told) if told.get("limits") else {}
    there = verify.mounts(folder), verify.groups()
    found = _window(spec, task, folder) if spec["window_ns"] else alone(spec, task, folder)
    leftovers = verify.grown("mount", there[0], verify.mounts(folder)) + verify.grown(
        "control group", there[1], verify.groups()
    )
    found["leftovers"] += leftovers
    if told.get("limits"):
        found["limits"] = limits(told, limits_before)
    after = snapshot(spec["cpus"], os.getsid(0))
    return {**found, "unknown": unknown, "environment": environment(before, after)}


def _window(spec: Json, task: Task, folder: Path) -> Json:
    """Many at once."""
    if task.task == "T5":
        from cpubench.tasks import chat

        return chat.work(spec, task, folder)
    if task.task == "T6":
        from cpubench.tasks import burst

        return crew.work(spec, task, folder, burst.roam)
    return crew.work(spec, task, folder)


def alone(spec: Json, task: Task, folder: Path) -> Json:
    """One agent that does the task once, without pauses."""
    with watts.metered(spec) as meter:
        found = _alone(spec, task, folder, meter)
    return {**found, **meter.found}


def _alone(spec: Json, task: Task, folder: Path, meter: watts.Metered) -> Json:
    table = opened(spec, task, folder, 0, alone=True)
    todo = task.steps(table.place)
    failures = []
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    meter.begin()
    before = [spans.used_us(who) for who in kinds]
    table.zero_ns = table.idle_ns = time.monotonic_ns()
    try:
        for number, step in enumerate(todo):
            desk.do(table, number, step)
    except (desk.Failed, OSError) as error:
        failures.append(str(error))
    finally:
        wall_ns = time.monotonic_ns() - table.zero_ns
        own_us, tools_us = (spans.used_us(who) - old for who, old in zip(kinds, before, strict=True))
        meter.end()
        desk.clear(table)
    tools_us = max(tools_us, spans.told_us(spans.columns(table.spans)) + table.load_us)
    left = [] if failures else [f"file left behind: {name}" for name in verify.files_left(table.place.root)]
    return {
        "wall_ns": wall_ns, "window_ns": 0, "harness_us": own_us + table.load_us,
        "tools_us": tools_us - table.load_us, "failures": failures,
        "leftovers": left, "spans": spans.columns(table.spans), "outputs": table.outputs, "pressure": None,
        "memory_low_bytes": None, "ready_ns": 0,
    }  # fmt: skip


def opened(spec: Json, task: Task, folder: Path, agent: int, alone: bool) -> desk.Desk:
    """The desk of an agent in a new folder of its own."""
    root = folder / f"agent-{agent}"
    place = steps.Place(spec["inputs"], str(root), spec["python"], spec["cc"], spec["shell"])
    for part in ("work", "home", "tmp"):
        (root / part).mkdir(parents=True)
    desk.on_alarm()
    env = steps.environment(place, task.variables())
    return desk.Desk(place, env, spans.counters(alone), len(spec["cpus"]), spec["pins"], agent)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.chdir("/")
    sys.exit(serve(sys.argv[1:], work))
