"""What ``cpubench score`` tells: the path score of runs and the task score of tasks, side by side, never merged."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpubench.analysis.ranks import ranks, task_ranks
from cpubench.analysis.reference import load_reference
from cpubench.analysis.scenarios import Scenario, load_scenarios, pick
from cpubench.analysis.score import score
from cpubench.analysis.task_reference import TaskReference, load_task_reference
from cpubench.analysis.task_score import no_task_score, task_score
from cpubench.analysis.weights import load_weights
from cpubench.errors import UsageError
from cpubench.report.output import as_text
from cpubench.results.gather import MOST, is_tasks
from cpubench.results.load import load_run
from cpubench.results.load_tasks import load_tasks
from cpubench.results.parse import located, shown
from cpubench.results.records import Run

Json = dict[str, Any]
Pair = tuple[Path | None, Path | None]  # a run and its tasks
NO_TASKS = "no tasks were done: `cpubench tasks run`, and give their folder after the run's"


def weighing(scenario: str | None, weights: Path | None) -> Scenario:
    """The scenario that is meant: by its name, or that of a file."""
    if scenario is not None and weights is not None:
        raise UsageError("usage", "give a scenario or a file of weights, not both", "--weights")
    return pick(load_scenarios(), scenario or "equal") if weights is None else load_weights(weights)


def paired(paths: Sequence[Path]) -> list[Pair]:
    """Runs with their tasks: the ``tasks.json`` of a run's own folder, or the tasks that are given after the run.

    What holds tasks is told by its content. Tasks alone are one pair without a run.
    """
    pairs: list[Pair] = []
    given = False  # whether the last run has tasks after it
    for path in paths:
        if not is_tasks(path):
            beside = path / "tasks.json"
            pairs.append((path, beside if path.is_dir() and beside.is_file() else None))
            given = False
        elif pairs and pairs[-1][0] is not None and not given:
            pairs[-1] = (pairs[-1][0], path)
            given = True
        else:
            pairs.append((None, path))
    if len(pairs) > 1 and any(run is None for run, _ in pairs):
        alone = next(tasks for run, tasks in pairs if run is None)
        raise UsageError("usage", "tasks without a run: give each run before its tasks", shown(str(alone), 120))
    return pairs


def scored(
    paths: Sequence[Path], scenario: Scenario, reference: Path | None = None, task_reference: Path | None = None
) -> Json:
    """The score document of one run, or of several with how sure their order is."""
    if len(paths) > MOST:
        text = f"{len(paths)} paths; at most {MOST} are scored at once: `cpubench fleet collect` reads those of a fleet"
        raise UsageError("many", text, "RUN")
    scale = load_task_reference(task_reference)
    documents = [_scored(*pair, scenario, reference, scale) for pair in paired(paths)]
    if len(documents) == 1:
        return documents[0]
    whole = {"runs": documents, "ranks": ranks(documents, {scenario.name: scenario})}
    if sum(document["task_score"]["score"]["value"] is not None for document in documents) > 1:
        whole["task_ranks"] = task_ranks([document["task_score"] for document in documents])
    return whole


def tell(document: Json, paths: Sequence[Path], json_: bool, markdown: bool = False) -> None:
    """Nothing; prints the document in one form."""
    if json_:
        print(as_text(document))
    elif markdown:
        from cpubench.report.score_markdown import score_as_markdown

        print(score_as_markdown(document, [str(run or tasks) for run, tasks in paired(paths)]), end="")
    elif "runs" in document:
        from cpubench.report.ranking import show_scores

        show_scores(document, [str(run) for run, _ in paired(paths)], sys.stdout)
    else:
        from cpubench.report.terminal import show_score

        show_score(document, sys.stdout)


def reference_of(path: Path, name: str, description: str) -> tuple[str, Json]:
    """What the rows of a reference are called, and the reference that a run or a run of tasks makes."""
    from cpubench.analysis import reference as of_runs
    from cpubench.analysis.task_reference import make_task_reference

    if is_tasks(path):
        return "rows", make_task_reference(load_tasks(path), name, description)
    loaded, shipped = load_run(path), of_runs.load_reference()
    wanted = shipped["variants"] if shipped["suite"] == loaded.plan.suite else ()
    return "variants", of_runs.make_reference(loaded, name, description, wanted)


def publishable(document: Json) -> bool:
    """Whether all that a document tells may be published; tasks that were not done take nothing away."""
    every = document.get("runs", [document])
    return all(one.get("publishable", True) and one["task_score"].get("publishable", True) for one in every)


def _scored(
    run: Path | None, tasks: Path | None, scenario: Scenario, reference: Path | None, scale: TaskReference
) -> Json:
    document: Json = {"scenario": scenario.name, "weights_sha256": scenario.sha256}
    loaded = None
    if run is not None:
        loaded = load_run(run)
        document = score(loaded, load_reference(reference), scenario.name, {scenario.name: scenario})
    made = no_task_score(scenario, NO_TASKS) if tasks is None else _of_tasks(tasks, loaded, scenario, scale)
    return document | {"task_score": made}


def _of_tasks(tasks: Path, run: Run | None, scenario: Scenario, scale: TaskReference) -> Json:
    found = load_tasks(tasks)
    ids = [None if run is None else run.host.get("id"), found.host.get("id")]
    if None not in ids and ids[0] != ids[1]:
        raise located(tasks, UsageError("host", "the tasks were done on another host than the run"))
    return task_score(found, scale, scenario)
