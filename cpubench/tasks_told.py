"""A run of tasks, or its cap levels beside each other, as a document, as tables, or as a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cpubench.cli import emit

Json = dict[str, Any]


def tell(path: Path, trace: Path | None, form: str, json_: bool) -> int:
    """How many repeats failed, after printing the run; the trace is written too."""
    from cpubench.analysis.tasks import tasks_document
    from cpubench.results.load_tasks import level_files, load_tasks

    files = level_files(path)
    if len(files) > 1 and trace is None:
        return _levels(path, files, json_)
    path = files[0].parent if len(files) == 1 else path  # a run that ended before its second level began
    loaded = load_tasks(path)
    document = {"run": str(path), **tasks_document(loaded)}
    if trace is not None:
        from cpubench.report.output import as_text, check_output, write_output
        from cpubench.report.traces import trace as trace_of

        check_output(trace, json_)
        write_output(trace, as_text(trace_of(loaded, form)) + "\n")
    _show(document, json_)
    return len(document["failed"])


def publishable(path: Path, reference: Path | None = None) -> bool:
    """Whether `cpubench score` may publish what was done, under each cap level: its own rule, with its own weights."""
    from cpubench.analysis.scenarios import load_scenarios, pick
    from cpubench.analysis.task_reference import load_task_reference
    from cpubench.analysis.task_score import task_score
    from cpubench.results.load_tasks import level_files, load_tasks

    scale, scenario = load_task_reference(reference), pick(load_scenarios(), "equal")
    runs = [load_tasks(file) for file in level_files(path) or [path]]
    return all(task_score(run, scale, scenario)["publishable"] for run in runs)


def _levels(path: Path, files: list[Path], json_: bool) -> int:
    """The same of several cap levels of one run, with their ratios."""
    from cpubench.analysis.task_levels import one_run, over_levels
    from cpubench.analysis.tasks import tasks_document
    from cpubench.results.load_tasks import load_tasks

    runs = one_run(path, [load_tasks(file) for file in files])
    documents = {cap: tasks_document(run) for cap, run in runs.items()}
    whole: Json = {"run": str(path), "levels": documents, "ratios": over_levels(runs)}
    if json_:
        emit(whole)
    else:
        from cpubench.report.tasks import show_levels

        for document in documents.values():
            _show(document, json_=False)
        show_levels(whole["ratios"], sys.stdout)
    return sum(len(document["failed"]) for document in documents.values())


def _show(document: Json, json_: bool) -> None:
    if json_:
        emit(document)
    else:
        from cpubench.report.tasks import show_tasks

        show_tasks(document, sys.stdout)
