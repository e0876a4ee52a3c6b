"""Weights of a user's own: files of path and task weights, most often made of a trace by ``cpubench weights``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from cpubench.analysis.scenarios import PATHS, TASKS, Scenario, load_scenarios, of_paths, weights_of
from cpubench.errors import UsageError
from cpubench.results.check import check_seal
from cpubench.results.fields import Sha256
from cpubench.results.load import typed
from cpubench.results.parse import located, parse, read

SCHEMA = "cpubench.weights/1"
MAX_BYTES = 1_000_000


class Weights(Struct, frozen=True, kw_only=True):
    """What a file says; ``sha256`` may be left out by one who writes it by hand."""

    schema: Literal["cpubench.weights/1"]
    name: Annotated[str, Meta(pattern="^[ -~]{1,60}$(?!\n)")]
    paths: dict[str, float]
    tasks: dict[str, float] | None = None
    evidence: Annotated[str, Meta(max_length=2000)] = "no evidence"
    confidence: Annotated[str, Meta(max_length=60)] = "unknown"
    sources: list[dict[str, Any]] = []
    sha256: Sha256 | None = None


def load_weights(path: Path) -> Scenario:
    """The scenario that a file of weights makes; its name may not be that of a shipped one."""
    try:
        document = parse(read(path, MAX_BYTES))
        record = typed(document, SCHEMA, Weights)
        if record.sha256 is not None:
            check_seal(document)
        if record.name in load_scenarios():
            raise UsageError("weights", f"'{record.name}' is a scenario of cpubench: give yours another name", "name")
        paths = weights_of(document["paths"], PATHS, "paths")
        tasks = None if record.tasks is None else weights_of(document["tasks"], TASKS, "tasks")
    except UsageError as fault:
        raise located(path, fault) from None
    source = f"{record.evidence}; confidence {record.confidence}"
    return of_paths(record.name, source, paths, tasks, source)
