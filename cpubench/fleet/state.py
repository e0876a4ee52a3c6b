"""What is there of a plan, read from the folder of results alone: a valid result is done, all else is missing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.fleet.layout import CLASSES, FAILURE, RUN, SUM, UNRETURNED, VISITS, Cell, cell_folder, cell_of
from cpubench.fleet.plan import cells_of
from cpubench.results.files import canonical, write_atomic
from cpubench.results.parse import MAX_BYTES, parse, read, read_raw, shown

Json = dict[str, Any]
MOST_BYTES = 10_000


def is_done(fleet: Path, cell: Cell) -> bool:
    """Whether the cell holds a result that is what its sum says."""
    folder = cell_folder(fleet, cell)
    try:
        told = (folder / SUM).read_text().split()
        return told[:1] == [hashlib.sha256(read_raw(folder / RUN, MAX_BYTES)).hexdigest()]
    except (OSError, ValueError, UsageError):
        return False


def failure(fleet: Path, cell: Cell) -> Json | None:
    """{"class", "text", "at"} of the last try; None where there is none, or it cannot be read."""
    try:
        told = parse(read(cell_folder(fleet, cell) / FAILURE, MOST_BYTES))
    except UsageError:
        return None
    known = told.get("class") in CLASSES and all(isinstance(told.get(key), str) for key in ("text", "at"))
    return {key: told[key] for key in ("class", "text", "at")} if known else None


def write_failure(fleet: Path, cell: Cell, kind: str, text: str) -> None:
    """Stores how the last try of a cell ended; a result of an earlier one stays."""
    told = {"class": kind, "text": shown(text), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    write(cell_folder(fleet, cell) / FAILURE, canonical(told))


def not_tried(cell: Cell, text: str) -> str:
    """What is told of the other cells of a host that was set aside after this one."""
    return f"not tried after {cell.cap} repeat {cell.repeat}: {text}"


def given_back(fleet: Path, host: str) -> None:
    """Forgets that limits of a host were not given back after runs that have their results: now they are."""
    for file in (fleet / host).glob(f"*/{FAILURE}"):
        cell = cell_of(file.parent)
        if cell and (failure(fleet, cell) or {}).get("class") == UNRETURNED and is_done(fleet, cell):
            file.unlink(missing_ok=True)


def write(file: Path, data: bytes) -> None:
    """Writes a file of the results, and its folder; UsageError with its name where that fails."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, data)
    except OSError as error:
        raise UsageError("results", f"cannot be written: {error.strerror}", str(file)) from None


def rows(fleet: Path, plan: Json, host: str | None = None) -> list[Json]:
    """Each cell of the plan, or of one of its hosts, in its order: host, cap, repeat, ``state`` done, failed or
    missing; class, text and at of a failure; and how often the controller logged in while it was measured."""
    found = []
    for cell in cells_of(plan):
        if host not in (None, cell.host):
            continue
        done, told = is_done(fleet, cell), failure(fleet, cell)
        state = "done" if done else "failed" if told else "missing"
        row = {"host": cell.host, "cap": cell.cap, "repeat": cell.repeat, "state": state}
        found.append({**row, **(told or {"class": None, "text": None, "at": None}), "visits": _visits(fleet, cell)})
    return found


def _visits(fleet: Path, cell: Cell) -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return len(json.loads((cell_folder(fleet, cell) / VISITS).read_bytes())["visits_s"])
    return None


def status(fleet: Path, plan: Json, host: str | None = None) -> Json:
    """The document of ``fleet status``, of all hosts or of one: rows, and how many are in which state and class."""
    every = rows(fleet, plan, host)
    states, classes = Counter(row["state"] for row in every), Counter(row["class"] for row in every if row["class"])
    return {
        "fleet": plan["fleet"], "host": host, "seed": plan["seed"], "suite_hash": plan["suite_hash"],
        "planned": len(every), "done": states["done"], "failed": states["failed"], "missing": states["missing"],
        "failures": {name: classes[name] for name in CLASSES if classes[name]}, "rows": every,
    }  # fmt: skip
