"""Runs of tasks for a report: those beside the runs of a candidate, and those that were given for its host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpubench.analysis.task_levels import run_name
from cpubench.analysis.tasks import tasks_document
from cpubench.errors import UsageError
from cpubench.results.load_tasks import load_tasks, tasks_file
from cpubench.results.parse import located, shown
from cpubench.results.states import under_cap

Json = dict[str, Any]


def add_tasks(candidates: Sequence[Json], hosts: Sequence[str], runs: Sequence[Sequence[Path]],
              given: Sequence[str]) -> None:  # fmt: skip
    """Nothing; each candidate gets its ``tasks``, that to be shown last (the newest without a cap): a ``tasks.json`` in
    a folder of its ``runs``, or given as PATH or LABEL=PATH.

    ``hosts`` are the candidates' host ids. Tasks of another host than the candidate's are refused.
    """
    for one, host, files in zip(candidates, hosts, runs, strict=True):
        beside = [file.with_name("tasks.json") for file in files]
        one["tasks"] = [_told(file, host) for file in dict.fromkeys(beside) if file.is_file()]
    labels = [one["label"] for one in candidates]
    for text in given:
        label, _, rest = text.partition("=")
        if label in labels and rest:
            at = labels.index(label)
            candidates[at]["tasks"].append(_told(tasks_file(Path(rest)), hosts[at]))
            continue
        made, own = _loaded(tasks_file(Path(text)))
        found = [one for one, host in zip(candidates, hosts, strict=True) if own == host]
        if len(found) != 1:
            named = " and ".join(one["label"] for one in found)
            why = f"is of the host of {named}: say which, as {found[0]['label']}=PATH" if found else _stranger(own)
            raise UsageError("tasks", why, shown(text, 120))
        found[0]["tasks"].append(made)
    for one in candidates:
        _check_once(one)
        one["tasks"].sort(key=lambda made: (not under_cap(made), made["created_utc"]))


def _told(file: Path, host: str) -> Json:
    made, own = _loaded(file)
    if own is not None and own != host:
        raise located(file, UsageError("tasks", _stranger(own)))
    return made


def _stranger(host: object) -> str:
    return f"is of the host {shown(str(host), 16)}, which is not that of a candidate's runs"


def _check_once(one: Json) -> None:
    hashes = [made["sha256"] for made in one["tasks"]]
    if len(set(hashes)) != len(hashes):
        raise UsageError("tasks", f"{one['label']} has one run of tasks twice", "--tasks")


def _loaded(file: Path) -> tuple[Json, str | None]:
    """What the report needs of a run of tasks, and the id of its host."""
    run = load_tasks(file)
    document = tasks_document(run)
    host = run.host.get("id")
    programs = {name: str(facts.get("version") or "?") for name, facts in document["programs"].items()}
    kept = ("suite", "cap", "profile", "estimate", "think", "stopped", "divisor", "missing", "inputs", "tasks",
            "density", "failed", "notes")  # fmt: skip
    made = {key: document[key] for key in kept}
    made |= {"folder": run_name(file.parent, document), "created_utc": shown(run.created_utc, 40),
             "sha256": run.sha256, "programs": programs,
             "storage": str(run.file_system.get("file_system") or "unknown")}  # fmt: skip
    return made, host if isinstance(host, str) and host != "unknown" else None
