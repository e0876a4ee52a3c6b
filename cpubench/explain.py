"""``cpubench tasks explain``: what the kernels of a run explain of tasks, and foretell of another host's."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpubench.cli import FOLDER, as_json, emit


@click.command()
@click.argument("run", metavar="RUN", type=FOLDER)
@click.argument("tasks", metavar="[TASKS]", type=FOLDER, required=False)
@click.option("--against", type=FOLDER, nargs=2, metavar="RUN TASKS",
              help="Another host or setting: what the kernels foretold of its tasks.")  # fmt: skip
@as_json
def explain(run: Path, tasks: Path | None, against: tuple[Path, Path] | None, json_: bool) -> None:
    """Where the time of tasks goes, at the prices that the kernels of RUN have; TASKS is by default in RUN too."""
    from cpubench.analysis.explained import explained
    from cpubench.results.load import load_run
    from cpubench.results.load_tasks import load_tasks

    here = load_run(run), load_tasks(tasks or run)
    there = None if against is None else (load_run(against[0]), load_tasks(against[1]))
    document = {"run": str(run), "tasks_run": str(tasks or run), **explained(here, there)}
    if json_:
        emit(document)
        return
    from cpubench.report.explained import show_explained

    show_explained(document, sys.stdout)
