"""Folders of a fleet's results for tests: made-up units of which the truth is known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from made import made_run

from cpubench.fleet.layout import FAILURE, RUN, SUM, Cell, cell_folder
from cpubench.results.files import canonical, sealed
from cpubench.results.packed import sum_line

SUITE = "0123456789ab"
GIB = 2**30
USUAL = {"virtual": False, "memory_total_bytes": 512 * GIB, "microcode": "0x1", "governor": "performance",
         "kernel": "6.1", "firmware": "BIOS 1.0", "mitigations": {"meltdown": "Not affected"}}  # fmt: skip


def cell(host: str, repeat: int = 1, cap: str = "as-is", suite: str = SUITE) -> Cell:
    return Cell(host, cap, repeat, suite)


def document_of(
    name: str, seed: int, model: str = "made CPU", passes: int = 8, facts: dict[str, Any] | None = None, **made: Any
) -> dict[str, Any]:  # fmt: skip
    """A run of a host of that name and id, on which made-up runs have about 1000 points by the made-up reference."""
    made = {"host_id": f"id of {name}", **made}
    run = made_run(passes, seed=seed, **made)
    host = {**run["host"], **USUAL, "hostname": name, "cpu_model": model, "id": made["host_id"], **(facts or {})}
    return sealed({**run, "host": host})


def put_run(fleet: Path, where: Cell, document: dict[str, Any]) -> Path:
    """The packed file of a result, with its sum beside it."""
    folder = cell_folder(fleet, where)
    folder.mkdir(parents=True, exist_ok=True)
    raw = gzip.compress(canonical(document), 6, mtime=0)
    (folder / RUN).write_bytes(raw)
    (folder / SUM).write_text(sum_line(raw, RUN))
    return folder / RUN


def unit(fleet: Path, name: str, seed: int, model: str = "made CPU", **made: Any) -> Path:
    """A result of a unit."""
    return put_run(fleet, cell(name), document_of(name, seed, model, **made))


def fail(fleet: Path, where: Cell, **document: str) -> Path:
    folder = cell_folder(fleet, where)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FAILURE).write_text(json.dumps(document))
    return folder / FAILURE
