"""What tests of tasks share: a place with generated inputs, and made-up runs of tasks."""

import json
import os
import subprocess
import sys
from pathlib import Path

from cpubench.host.topology import allowed_cpus
from cpubench.results.files import sealed
from cpubench.results.load_tasks import load_tasks
from cpubench.tasks import desk, inputs, programs, spans
from cpubench.tasks.catalogue import Task, fleets
from cpubench.tasks.steps import Place, environment


def spec_of(task, inputs_folder, scratch, **other):
    """What an agent's process is told."""
    paths = programs.probe(scratch).paths
    spec = {
        "task": task.task, "params": task.params, "tools": task.tools, "agents": task.agents, "index": 0,
        "inputs": str(inputs_folder), "python": paths["python3"], "cc": paths["cc"], "shell": paths["sh"],
        "cpus": allowed_cpus().value, "pins": inputs.outputs(task.pinned()), "seed": 1, "window_ns": 0, "think": 0.0,
        "paced_cpus": len(allowed_cpus().value),
    }  # fmt: skip
    return spec | other


def desk_at(root, pins=None):
    """An agent without inputs, in a new folder."""
    for part in ("work", "home", "tmp"):
        (root / part).mkdir(parents=True)
    found = programs.probe(root / "tmp").paths
    (root / "tmp" / "probe.c").unlink()
    (root / "tmp" / "probe.so").unlink()
    place = Place("", str(root), found["python3"], found["cc"], found["sh"])
    return desk.Desk(place, environment(place, {}), spans.counters(True), os.cpu_count(), pins)


def made_span(step, start_ns, wall_ns, user_us, agent=0, background=False):
    return spans.Span(step, agent, start_ns, wall_ns, user_us=user_us, sys_us=100, around_ns=100_000,
                      background=background, forks=2, read_bytes=10, written_bytes=5)  # fmt: skip


def made_repeat(found, index=0, wall_ns=None, window_ns=0, **other):
    return {
        "index": index, "wall_ns": wall_ns or sum(one.wall_ns for one in found) + 1000, "window_ns": window_ns,
        "harness_us": 1000, "tools_us": 99_000, "failures": [], "leftovers": [], "unknown": [], "ready_ns": 0,
        "pressure": None, "memory_low_bytes": None, "environment": {}, "spans": spans.columns(found),
    } | other  # fmt: skip


def made_row(task, names, repeats, skipped=None):
    """A row whose steps are (label, kind, phase)."""
    steps = [{"label": label, "kind": kind, "phase": phase, "pythons": 1, "shells": 0} for label, kind, phase in names]
    return {"name": task.name, "task": task.task, "params": list(task.params), "tools": [], "agents": task.agents,
            "version": 1, "skipped": skipped, "steps": steps, "repeats": repeats}  # fmt: skip


STEPS = [("search.1", "search", "explore"), ("test.1", "test", "test")]
SOLO = Task("T1", ("verify-heavy", "light"))


def made_run(rows=None, factors=(1.0, 1.0, 1.0)):
    """A sealed run: T1 with a search of 0.1 s and a test of 0.3 s, each repeat times a factor, and T0."""
    if rows is None:
        repeats = [
            made_repeat(
                [made_span(0, 0, round(1e8 * f), 80_000), made_span(1, round(1e8 * f), round(3e8 * f), 200_000)], i
            )
            for i, f in enumerate(factors)
        ]
        empty = [made_span(0, 0, 10_000_000, 9000), made_span(1, 10_000_000, 1_000_000, 500)]
        names = [("python.0", "python", "env.setup"), ("shell.0", "shell", "env.setup")]
        rows = [made_row(Task("T0"), names, [made_repeat(empty)]), made_row(SOLO, STEPS, repeats)]
    return sealed({
        "schema": "cpubench.tasks/1", "cpubench": "0.1.0", "suite": "tasks-1", "created_utc": "2026-01-01T00:00:00Z",
        "profile": "quick", "estimate": True, "seed": 1, "think": 1.0, "cpus": [0, 1],
        "divisor": {"kind": "vcpu", "n": 2}, "host": {"hostname": "h"}, "programs": {}, "missing": {},
        "file_system": {}, "inputs_sha256": "0" * 64, "tasks": rows, "stopped": "done", "notes": [],
    })  # fmt: skip


def loaded(document, tmp_path):
    (tmp_path / "tasks.json").write_text(json.dumps(document))
    return load_tasks(tmp_path)


def row_of(document, name):
    return next(row for row in document["tasks"] if row["task"] == name)


def fleet(agents, factor, count=30, failures=(), **other):
    """A window of 10 s in which each step took so many times what it takes alone."""
    names = {0: 1e8, 1: 3e8}
    found = [made_span(n % 2, n * 10**8, int(names[n % 2] * factor), 50_000, agent=n % agents) for n in range(count)]
    repeat = made_repeat(found, wall_ns=10**10, window_ns=10**10, failures=list(failures), **other)
    return made_row(fleets([agents])[0], STEPS, [repeat])


def inputs_in(folder: Path) -> Path:
    """The generated inputs."""
    (folder / "inputs").mkdir()
    inputs.generate(folder / "inputs")
    return folder / "inputs"


def agent_of(task, generated, tmp_path, prepare="", **other):
    """What the agent's process tells of a task."""
    spec = spec_of(task, generated, tmp_path, **other)
    code = f"""
import sys, json, os
sys.path[:0] = {sys.path!r}
from pathlib import Path
from cpubench.tasks import agent
os.setsid()
{prepare}
spec = json.loads(sys.argv[1])
print(json.dumps(agent.work(spec, [], Path(sys.argv[2]), 0)))
"""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-I", "-c", code, json.dumps(spec), str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
