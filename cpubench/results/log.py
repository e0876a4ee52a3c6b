"""The log of a run folder against its run: it is no evidence by itself, but it must not say something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.parse import located, read, shown
from cpubench.results.records import Run

MOST_BYTES = 50_000_000  # a run of 200 passes logs 30 kB


def check_log(folder: Path, run: Run) -> None:
    """None if the log, where the folder has one, tells of this plan, and of no pass or stop that the run has not.

    A full disk leaves out lines and cuts them, without stopping a run: what is not there proves nothing.
    """
    file = folder / "log.jsonl"
    if not file.exists() and not file.is_symlink():
        return
    try:
        stopped = None
        for number, event in _events(read(file, MOST_BYTES)):
            where = f"line {number}"
            if event["event"] == "planned" and event.get("id") != run.plan.id:
                raise UsageError("log", f"is of the plan {shown(str(event.get('id')), 40)}", where)
            if event["event"] == "pass" and event.get("index") not in range(len(run.passes)):
                text = f"pass {shown(str(event.get('index')), 20)} was measured, and run.json holds {len(run.passes)}"
                raise UsageError("log", text, where)
            stopped = (where, event) if event["event"] == "stopped" else stopped
        if stopped and (stopped[1].get("by"), stopped[1].get("passes")) != (run.stopped.by, run.stopped.passes):
            by, passes = (shown(str(stopped[1].get(key)), 20) for key in ("by", "passes"))
            text = f"the run stopped by {by} after {passes}; run.json says {run.stopped.by}, {run.stopped.passes}"
            raise UsageError("log", text, stopped[0])
    except UsageError as fault:
        raise located(file, fault) from None


def _events(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """The events of a log with their lines, without lines that are none."""
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            found.append((number, event))
    return found
