"""The document of a run of tasks before anything was done: host, programs, inputs, and a row for each task."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from cpubench import __version__
from cpubench.errors import UsageError
from cpubench.host.facts import divisor
from cpubench.measure.scratch import storage_facts
from cpubench.tasks import inputs, plan, programs, rungs
from cpubench.tasks.catalogue import Task
from cpubench.tasks.plan import PROFILES, Options
from cpubench.tasks.steps import Place

SUITE = "tasks-1"

Json = dict[str, Any]


def document_of(options: Options, facts: Json, cores: Sequence[Any], tasks: Sequence[Task], scratch: Path) -> Json:
    """The document without repeats: rows with their steps, or with the reason why there will be none."""
    try:
        found = programs.probe(scratch)
        rungs.try_rungs(found, [task.params[0] for task in tasks if task.task == "T3"], scratch)
        (scratch / "inputs").mkdir()
        digest = inputs.generate(scratch / "inputs")
    except OSError as error:
        raise UsageError(
            "prepare", f"the tasks cannot be prepared: {error.strerror}", str(error.filename or "")
        ) from None
    kind, n = divisor(facts, len(cores))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    where = Place("", "", found.paths["python3"], found.paths.get("cc", ""), found.paths["sh"])
    rows = [_row(task, where, found.reason(task) or plan.too_many(task, facts["memory_bytes"])) for task in tasks]
    return {
        "schema": "cpubench.tasks/1", "cpubench": __version__, "suite": SUITE,
        "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "profile": options.profile,
        "estimate": PROFILES[options.profile].estimate or options.repeats is not None or options.window_s is not None,
        "seed": seed, "think": options.think, "cpus": sorted(cpu for core in cores for cpu in core.cpus),
        "divisor": {"kind": kind, "n": n}, "host": facts, "programs": found.stored, "missing": found.missing,
        "file_system": storage_facts(scratch), "inputs_sha256": digest, "tasks": rows, "stopped": "running",
        "notes": [],
    }  # fmt: skip


def _row(task: Task, where: Place, skipped: str | None) -> Json:
    steps = [msgspec.to_builtins({key: value for key, value in asdict(step).items()
                                  if key in ("label", "kind", "phase", "pythons", "shells")})
             for step in task.steps(where)]  # fmt: skip
    return {"name": task.name, "task": task.task, "params": list(task.params), "tools": list(task.tools),
            "agents": task.agents, "version": task.version, "skipped": skipped, "steps": steps,
            "repeats": []}  # fmt: skip
