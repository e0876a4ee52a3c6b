"""Which runs a path means: a run folder, a run.json (or run.json.gz), a folder of run folders; likewise of tasks."""

from __future__ import annotations

import re
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.results.load import check_no_fleet, looking, run_file
from cpubench.results.parse import located, read

TASKS = "tasks.json"
TURNS = "turns.json"  # of a folder whose two runs were measured in turns
RUN_FILES = ("run.json", "run.json.gz", "plan.json")
SAYS_TASKS = re.compile(rb'"schema"\s*:\s*"cpubench\.tasks/')
MOST = 500  # runs of one path: each is a second of work, and a quarter of it for a comparison


def run_files(path: Path) -> list[Path]:
    """The ``run.json`` files of a path, in the order of their folders' names; each is there, none is left out.

    A folder in it that holds a plan and no run is refused: half of what was measured must not be dropped in silence.
    """
    with looking(path):
        check_no_fleet(path)
        own = not path.is_dir() or _holds(path)
        inside = [] if own else sorted(one for one in path.iterdir() if one.is_dir())
        runs = [one for one in inside if _holds(one)]
        pairs = [one for one in inside if (one / TURNS).exists()]
    if not runs and inside:
        raise located(path, UsageError("not_a_run", "is no run folder and holds none: there is no run.json"))
    if pairs:
        text = "is in a folder of runs and holds two sides that took turns: give it alone"
        raise located(pairs[0], UsageError("sides", text))
    if len(runs) > MOST:
        text = f"holds {len(runs)} runs; at most {MOST} of one path are loaded: results of a fleet are read by `fleet`"
        raise located(path, UsageError("many", text))
    return [run_file(one) for one in runs or [path]]


def task_files(path: Path) -> list[Path]:
    """The ``tasks.json`` files of a path, in the order of their folders' names; none where it means none.

    A folder in it may hold the cap levels of one run, each in a folder of its own.
    """
    with looking(path):
        if not path.is_dir():
            return [path] if path.name == TASKS else []
        if (path / TASKS).exists() or _holds(path):
            return [path / TASKS] if (path / TASKS).exists() else []
        found = [one / TASKS for one in path.iterdir() if (one / TASKS).exists()]
        levels = [one for one in path.iterdir() if one.is_dir() and not (one / TASKS).exists() and not _holds(one)]
        return sorted([*found, *(file for one in levels for file in one.glob(f"*/{TASKS}"))])


def is_tasks(path: Path) -> bool:
    """Whether a path means tasks: a folder with ``tasks.json`` and no run in it, or a file that says it holds them."""
    try:
        if path.is_dir():
            return (path / TASKS).is_file() and not _holds(path)
        return SAYS_TASKS.search(read(path)) is not None
    except (OSError, ValueError, UsageError):  # who loads it says what is wrong with it
        return False


def _holds(folder: Path) -> bool:
    return any((folder / name).exists() for name in RUN_FILES)
