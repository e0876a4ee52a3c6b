"""T4: many agents at once, each a process of its own that works, waits for its model, and works on.

They start at random places of the trajectory: what it needs by then is done before the window, without pauses. A step
counts where it ended inside the window.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.host.fact import ROOT
from cpubench.host.limits import meminfo_bytes
from cpubench.tasks import agent, desk, spans, watts
from cpubench.tasks.catalogue import Task
from cpubench.tasks.steps import Step

RAMP_NS = 2_000_000_000  # of pauses and steps before the window
GAP_MEDIAN_S, GAP_SIGMA = 3.0, 0.94  # lognormal: p50 3 s and p90 10 s, as from a tool's result to the next call
GAP_MOST_S = 60.0
LOOK_S = 0.25  # how often free memory is looked at
READY_S = 600.0
TEMPLATE = 10**9  # the number of no agent
WORD = 32  # bytes of the signal to each agent; of a pipe's pages a power of two is never read in halves
PRESSURES = ("cpu", "memory", "io")

Json = dict[str, Any]
Roam = Callable[[Json, Task, desk.Desk, int, int], Json]  # (spec, task, desk, tells, go) -> spans, failures, CPU time


def gaps(seed: str, scale: float) -> Iterator[float]:
    """Seconds that an agent waits for its model before each step; the first wait has begun already."""
    rng = random.Random(seed)
    drawn = (min(GAP_MOST_S, rng.lognormvariate(0, GAP_SIGMA) * GAP_MEDIAN_S) for _ in iter(int, 1))
    yield rng.random() * next(drawn) * scale
    for gap in drawn:
        yield gap * scale


def work(spec: Json, task: Task, folder: Path, roam: Roam | None = None) -> Json:
    """What all agents did in one window, each by ``roam``; OSError where one of them did not come to its place."""
    began_ns, own = time.monotonic_ns(), os.getpid()
    _prepare(spec, task, folder)
    told, tells = os.pipe()
    go, starts = os.pipe()
    pids: list[int] = []
    try:
        for number in range(task.agents):
            pid = os.fork()
            if not pid:
                _agent(spec, task, folder, number, tells, go, (told, starts), own, roam or _roam)
            pids.append(pid)
        _await(told, pids, folder)
        ready_ns = time.monotonic_ns()
        open_ns = ready_ns + RAMP_NS
        end_ns = open_ns + spec["window_ns"]
        os.write(starts, (b"%%0%dd" % WORD % open_ns) * len(pids))
        seen = watch(open_ns, end_ns, spec)
    except BaseException:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)  # not reaped yet, so it is ours
        raise
    finally:
        for pid in pids:
            os.waitpid(pid, 0)
        for one in (told, tells, go, starts):
            os.close(one)
    parts = _parts(folder)
    failures = [text for part in parts for text in part["failures"]]
    failures += [f"{len(pids) - len(parts)} agents ended without a word"] * (len(parts) < len(pids))
    columns: dict[str, list[object]] = {name: [] for name in spans.columns([])}
    for part in parts:
        for name in columns:
            columns[name] += part["spans"][name]
    used = {name: sum(part[name] for part in parts) for name in ("harness_us", "tools_us")}
    used["tools_us"] = max(used["tools_us"], spans.told_us(columns))
    return {
        "wall_ns": spec["window_ns"], "window_ns": spec["window_ns"], "failures": failures, "spans": columns, **used,
        "outputs": {}, "leftovers": [], **seen, "ready_ns": ready_ns - began_ns,
    }  # fmt: skip


def _prepare(spec: Json, task: Task, folder: Path) -> None:
    """Does the first steps once, for all agents that begin behind them: 64 would take two minutes of CPU time."""
    if not task.prepared:
        return
    table = agent.opened(spec, task, folder, TEMPLATE, alone=False)
    try:
        for number, step in enumerate(task.steps(table.place)[: task.prepared]):
            desk.do(table, number, step)
    except desk.Failed as error:
        raise OSError(0, str(error)) from None
    finally:
        desk.clear(table)
        os.chdir(folder)


def _parts(folder: Path) -> list[Json]:
    """What agents have told at their end."""
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("told-*.json"))]


def _await(told: int, pids: Sequence[int], folder: Path) -> None:
    """Waits until each agent has said that it is ready; OSError where one ended instead."""
    ready, end_ns = 0, time.monotonic_ns() + round(READY_S * 1e9)
    while ready < len(pids):
        if select.select([told], [], [], LOOK_S)[0]:
            ready += len(os.read(told, 65536))
        ended = [pid for pid in pids if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)]
        if ended or time.monotonic_ns() > end_ns:
            reasons = [text for part in _parts(folder) for text in part["failures"]]
            what = reasons[0] if reasons else f"{len(pids) - ready} of {len(pids)} agents did not come to their place"
            raise OSError(0, what)


def watch(open_ns: int, end_ns: int, spec: Json) -> Json:
    """What is seen of the host in the window: its least free memory, its power, and the time in it that some task
    waited for CPUs, memory or I/O (PSI)."""
    with watts.metered(spec) as meter:
        _sleep_until(open_ns)
        meter.begin()
        seen = _watched(end_ns)
        meter.end()
    return {**seen, **meter.found}


def _watched(end_ns: int) -> Json:
    before, low = _stalled_us(), meminfo_bytes("MemAvailable", ROOT).value
    while (now_ns := time.monotonic_ns()) < end_ns:
        _sleep_until(min(end_ns, now_ns + round(LOOK_S * 1e9)))
        free = meminfo_bytes("MemAvailable", ROOT).value
        low = free if low is None or free is None else min(low, free)
    after = _stalled_us()
    known = None not in (*before.values(), *after.values())
    grown = {f"{name}_us": after[name] - before[name] for name in PRESSURES} if known else None  # type: ignore[operator]
    return {"pressure": grown, "memory_low_bytes": low}


def _stalled_us() -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name in PRESSURES:
        try:
            match = re.search(r"^some .*total=(\d+)", Path("/proc/pressure", name).read_text(), re.MULTILINE)
        except OSError:
            match = None
        found[name] = int(match[1]) if match else None
    return found


def _sleep_until(end_ns: int) -> None:
    time.sleep(max(0, end_ns - time.monotonic_ns()) / 1e9)


def _agent(
    spec: Json, task: Task, folder: Path, number: int, tells: int, go: int, others: Sequence[int], parent: int,
    roam: Roam,
) -> None:  # fmt: skip
    """The process of an agent; it does not return."""
    try:
        _native.die_with(parent)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        for one in others:
            os.close(one)
        desk.adopt_orphans()
        table = agent.opened(spec, task, folder, number, alone=task.agents == 1)
        try:
            found = roam(spec, task, table, tells, go)
        except (desk.Failed, OSError, ValueError) as error:
            found = {"spans": spans.columns([]), "failures": [str(error)], "harness_us": 0, "tools_us": 0}
        finally:
            desk.clear(table)
        os.chdir(folder)
        shutil.rmtree(table.place.root, ignore_errors=True)  # 1,000 files each: all agents at once, not the guard alone
        temporary = folder / f".told-{number}"
        temporary.write_text(json.dumps(found))
        temporary.replace(folder / f"told-{number:05d}.json")
    finally:
        os._exit(0)


def _roam(spec: Json, task: Task, table: desk.Desk, tells: int, go: int) -> Json:
    """Goes to the agent's first place, and works there from the signal to the end of the window."""
    todo = task.steps(table.place)
    seed = f"{spec['seed']} {spec['index']} {table.agent}"
    first = random.Random(f"first {seed}").randrange(len(todo))
    first -= first % task.unit
    done = 0
    if task.prepared and first >= task.prepared:
        begun = Path(table.place.root).with_name(f"agent-{TEMPLATE}") / "work"
        shutil.copytree(begun, table.place.work, symlinks=True, dirs_exist_ok=True)
        done = task.prepared
    for number, step in enumerate(todo[done:first], done):
        if not step.pure:
            desk.do(table, number, step)
    table.spans.clear()
    open_ns = await_signal(tells, go)
    table.zero_ns, before = open_ns, used_us()
    waits = gaps(seed, spec["think"]) if task.task == "T4" else repeat(0.0)
    failures = _steps(table, todo, first, waits, open_ns + spec["window_ns"])
    own_us, tools_us = (new - old for new, old in zip(used_us(), before, strict=True))
    counted = [span for span in table.spans if span.start_ns + span.wall_ns >= 0]
    return {"spans": spans.columns(counted), "failures": failures, "harness_us": own_us, "tools_us": tools_us}


def await_signal(tells: int, go: int) -> int:
    """Says that this agent is at its place; when the window opens."""
    os.write(tells, b"+")
    return int(os.read(go, WORD))


def used_us() -> tuple[int, int]:
    """CPU time of this process, and of its reaped children."""
    return spans.used_us(resource.RUSAGE_SELF), spans.used_us(resource.RUSAGE_CHILDREN)


def _steps(table: desk.Desk, todo: list[Step], first: int, waits: Iterator[float], end_ns: int) -> list[str]:
    """Does steps, from ``first`` on and around, until the end; the sentence of a failure."""
    at = first
    for wait in waits:
        due_ns = time.monotonic_ns() + round(wait * 1e9)
        _sleep_until(min(due_ns, end_ns))
        if due_ns >= end_ns:
            return []
        table.idle_ns = time.monotonic_ns()
        try:
            desk.do(table, at, todo[at], end_ns)
        except desk.Late:
            return []
        except (desk.Failed, OSError) as error:
            return [str(error)]
        at = (at + 1) % len(todo)
    return []
