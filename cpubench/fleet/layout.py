"""Where the results of a fleet lie: the one place that knows the names.

``RESULTS/<fleet>/plan.json`` is the plan. ``RESULTS/<fleet>/<host>/<cap>-r<repeat>-<suite hash>/`` is a cell: one run
of one host at one level. It holds ``run.json.gz`` with ``run.json.gz.sha256`` beside it (the form of sha256sum(1)), or
``failure.json`` {"class", "text", "at"}, which a result replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cpubench.errors import UsageError
from cpubench.results.parse import shown

PLAN, RUN, SUM, FAILURE = "plan.json", "run.json.gz", "run.json.gz.sha256", "failure.json"
VISITS = "visits.json"  # when the controller was on the host while the cell was measured
GOING = "going.json"  # the cells that a controller has under way: the next one takes them up first
HASH_DIGITS = 12
UNRETURNED = "cap not given back"
CLASSES = ("unreachable", "preflight refused", "busy", "timed out", "bad result", UNRETURNED)
ASIDE = ("busy", "timed out", UNRETURNED)  # how a run fails after which others of its host would fare no better
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # never hidden, never "..", no separator
_CELL = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]*)-r([1-9][0-9]{0,3})-([0-9a-f]{12})")


class Cell(NamedTuple):
    """One run of a fleet: ``cap`` is the name of a level, "as-is", "300W" or "70%"; repeats count from 1."""

    host: str
    cap: str
    repeat: int
    suite: str  # 12 hex digits of what the plan measures


def check_name(name: str, where: str) -> str:
    """The name of a fleet or a host, which is that of a folder too; UsageError for any that is no safe one."""
    if not _NAME.fullmatch(name):
        text = f"{shown(name, 60)!r} is no name for a folder: use letters, digits, '.', '_' and '-', at most 100"
        raise UsageError("name", text, where)
    return name


def cap_name(cap: str) -> str:
    """A level as it stands in names of folders: "70%" is 70pct, "proxy:freq=2.4GHz" is proxy-freq-2.4GHz."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", cap.replace("%", "pct"))


def cap_of(name: str) -> str:
    """The level that a folder's name says."""
    if name.startswith("proxy-freq-"):
        return name.replace("proxy-freq-", "proxy:freq=")
    return f"{name[:-3]}%" if name.endswith("pct") else name


def cell_name(cell: Cell) -> str:
    """The folder of a cell, under that of its host."""
    return f"{cap_name(cell.cap)}-r{cell.repeat}-{cell.suite}"


def cell_folder(fleet: Path, cell: Cell) -> Path:
    """The folder of a cell under ``fleet``, which is RESULTS/<fleet>."""
    return fleet / cell.host / cell_name(cell)


def incoming(fleet: Path, cell: Cell) -> Path:
    """Where a result that was fetched lies until it was checked."""
    return fleet / cell.host / f".{cell_name(cell)}.incoming"


def outcome_file(file: Path) -> Path:
    """Where it lies, beside ``incoming``, what the host said of that run, until the cell has its result or failure."""
    return file.with_suffix(".outcome")


def job_name(cell: Cell, plan: str) -> str:
    """The folder of a cell's run on its host: by its plan's seal too, or one fleet would take another's run."""
    return f"{cell_name(cell)}-{plan[:HASH_DIGITS]}"


def cell_of(folder: Path) -> Cell | None:
    """The cell whose folder this is, by its name; None where it is no cell's."""
    match = _CELL.fullmatch(folder.name)
    return Cell(folder.parent.name, cap_of(match[1]), int(match[2]), match[3]) if match else None


def results(fleet: Path) -> Iterator[tuple[Cell, Path]]:
    """Each cell of RESULTS/<fleet> that holds a result with its sum, and the file; in the order of their names."""
    for sum_ in sorted(fleet.glob(f"*/*/{SUM}")):
        cell = cell_of(sum_.parent)
        if cell is not None and (sum_.parent / RUN).exists():
            yield cell, sum_.parent / RUN
