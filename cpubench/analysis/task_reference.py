"""The reference of the task score: what tasks take on one named machine, so that the score has a scale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from cpubench.analysis.quantity import quantity
from cpubench.analysis.reference import Amount, Figure
from cpubench.analysis.task_times import class_times, programs_of, task_times
from cpubench.errors import UsageError
from cpubench.results.check import check_seal
from cpubench.results.files import sealed
from cpubench.results.load import typed
from cpubench.results.parse import located, parse, read, shown
from cpubench.results.records import Positive, Sha256
from cpubench.results.task_records import TaskRun

FILE = Path(__file__).parents[1] / "data" / "tasks-reference.json"
SCHEMA = "cpubench.tasks-reference/1"


class TaskReferenceRow(Struct, frozen=True, kw_only=True):
    """A scored row of the tasks on the reference machine."""

    task: str
    version: Positive
    seconds: Figure


class TaskReference(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.tasks-reference/1"]
    name: str
    suite: str
    description: str
    profile: str
    think: float
    divisor_kind: Literal["physical_core", "vcpu", "granted_cpu"]
    host: dict[str, Any]
    programs: dict[str, str]
    inputs_sha256: Sha256
    rows: Annotated[dict[str, TaskReferenceRow], Meta(min_length=1)]
    class_s: dict[str, Amount]  # mean seconds of a step, by class of tool calls
    sha256: Sha256


def load_task_reference(path: Path | None = None) -> TaskReference:
    """The reference of a file, checked; by default the shipped one."""
    file = FILE if path is None else path
    try:
        document = parse(read(file))
        reference = typed(document, SCHEMA, TaskReference)
        check_seal(document)
    except UsageError as fault:
        raise located(file, fault) from None
    return reference


def make_task_reference(run: TaskRun, name: str, description: str = "") -> dict[str, Any]:
    """The sealed reference document that a run of tasks makes, of its rows without optional tools. What this host lacks
    of a task (a runtime of sandboxes) is no part of it; a task that it lacks as a whole, or that failed, is a fault."""
    where = f"tasks of {shown(str(run.host.get('hostname')), 60)}"
    if run.stopped != "done":
        raise UsageError("incomplete", f"a reference needs a whole run of tasks; this one was {run.stopped}", where)
    if run.capped:
        raise UsageError("cap", f"a reference is of a host without a cap; this run was done under {run.cap}", where)
    variants = {row.name for row in run.tasks if row.tools}
    times = {row: found for row, found in task_times(run).items() if row not in variants}
    there = {found.task for found in times.values() if found.seconds}
    absent = {row.name for row in run.tasks if row.skipped is not None and row.task in there}
    times = {row: found for row, found in times.items() if row not in absent}
    missing = [f"{row} ({found.reason})" for row, found in times.items() if not found.seconds]
    if missing or not times:
        text = f"a reference needs every task; missing: {'; '.join(missing[:3]) or 'all'}"
        raise UsageError("incomplete", text, where)
    rows = {
        row: TaskReferenceRow(task=found.task, version=found.version,
                              seconds=Figure(**quantity(np.log(list(found.seconds.values())))))
        for row, found in times.items()
    }  # fmt: skip
    return sealed(
        {
            "schema": SCHEMA,
            "name": name,
            "suite": run.suite,
            "description": description,
            "profile": run.profile,
            "think": run.think,
            "divisor_kind": run.divisor.kind,
            "host": {name: run.host.get(name) for name in ("arch", "cpu_model", "kernel", "virtual")},
            "programs": programs_of(run),
            "inputs_sha256": run.inputs_sha256,
            "rows": msgspec.to_builtins(rows),
            "class_s": class_times(run),
        }
    )
