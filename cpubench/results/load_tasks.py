"""Reading ``tasks.json``: everything is checked before anything is believed."""

from __future__ import annotations

from pathlib import Path
from time import strptime

import msgspec
from msgspec import UnsetType

from cpubench.errors import UsageError
from cpubench.results.check import check_seal
from cpubench.results.check_windows import check_limits, check_log
from cpubench.results.load import looking, reading, typed
from cpubench.results.parse import check_depth, located, parse, read, shown
from cpubench.results.states import BASE_CAP
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, windowed

UTC = "%Y-%m-%dT%H:%M:%SZ"
TICK_NS = 10_000_000  # of CPU time, that may be counted late


def level_files(path: Path) -> list[Path]:
    """The ``tasks.json`` in each folder of a folder that holds none itself: of a run under caps, its levels."""
    with looking(path):
        if not path.is_dir() or (path / "tasks.json").exists():
            return []
        return sorted(path.glob("*/tasks.json"))


def tasks_file(path: Path) -> Path:
    """The ``tasks.json`` that ``path`` is, or that the folder ``path`` holds."""
    if inside := level_files(path):
        text = f"holds {len(inside)} runs of tasks: name the folder of one, such as {shown(inside[0].parent.name, 40)}"
        raise located(path, UsageError("tasks", text))
    with looking(path):
        return path / "tasks.json" if path.is_dir() else path


def load_tasks(path: Path) -> TaskRun:
    """The tasks of a folder or of a ``tasks.json``."""
    file = tasks_file(path)
    with reading(file):
        document = parse(read(file))
        run = typed(document, "cpubench.tasks/1", TaskRun)
        check_seal(document)
        del document
        check_tasks(run)
    return run


def check_tasks(run: TaskRun) -> None:
    """None if what the file says can be true, and can be printed."""
    for name in ("host", "programs", "file_system"):
        check_depth(getattr(run, name), name)
    try:
        strptime(run.created_utc, UTC)
    except ValueError:
        raise UsageError("created_utc", "is no time such as 2026-01-31T23:59:59Z", "created_utc") from None
    if not run.cpus or len(set(run.cpus)) != len(run.cpus):
        raise UsageError("cpus", "must be CPUs, each once", "cpus")
    names = [row.name for row in run.tasks]
    if len(set(names)) != len(names):
        raise UsageError("twice", "a task is there twice", "tasks")
    _check_caps(run)
    for at, row in enumerate(run.tasks):
        _check_row(row, f"tasks[{at}]", len(run.cpus))


def _check_caps(run: TaskRun) -> None:
    """None if the level is one of the run's, and what registers held is told of those that were asked."""
    power = run.powered
    names = [] if isinstance(power, UnsetType) else [level.name for level in power.levels]
    if len(set(names)) != len(names):
        raise UsageError("twice", "a cap level is there twice", "power.levels")
    if run.cap not in (names or [BASE_CAP]):
        raise UsageError("cap", f"the cap level '{run.cap}' is none of the run's", "cap")
    if not isinstance(power, UnsetType) and not isinstance(power.idle, UnsetType):
        check_log(power.idle, "power.idle")
    for at, row in enumerate(run.tasks):
        for number, one in enumerate(row.repeats):
            if not isinstance(one.limits, UnsetType):
                check_limits(one.limits, f"tasks[{at}].repeats[{number}].limits")


def _check_row(row: TaskRow, where: str, cpus: int) -> None:
    if not row.steps and row.skipped is None:
        raise UsageError("steps", "there are none", where)
    if row.skipped is not None and row.repeats:
        raise UsageError("skipped", "is skipped and has repeats", where)
    indexes = [one.index for one in row.repeats]
    if indexes != sorted(set(indexes)):
        raise UsageError("repeats", "are not in order, or one is there twice", where)
    for at, one in enumerate(row.repeats):
        _check_repeat(row, one, f"{where}.repeats[{at}]", cpus)


def _check_repeat(row: TaskRow, one: Repeat, where: str, cpus: int) -> None:
    columns = msgspec.structs.asdict(one.spans)
    if len({len(column) for column in columns.values()}) != 1:
        raise UsageError("columns", "are not of one length", f"{where}.spans")
    if not one.wall_ns or bool(one.window_ns) != windowed(row):
        raise UsageError("window", "only many agents have one, and each repeat has a time", where)
    spans = one.spans
    for at, (step, agent) in enumerate(zip(spans.step, spans.agent, strict=True)):
        if step >= len(row.steps) or agent >= row.agents:
            raise UsageError("span", "is of a step or an agent that the task has not", f"{where}.spans[{at}]")
        cpu_ns = 1000 * (spans.user_us[at] + spans.sys_us[at])
        if not one.failures and cpu_ns > spans.wall_ns[at] * cpus + TICK_NS:
            raise UsageError("cpu_time", "is more than its CPUs had", f"{where}.spans[{at}]")
    if not windowed(row) and not one.failures:
        done = [step for step, background in zip(spans.step, spans.background, strict=True) if not background]
        if done != list(range(len(row.steps))):
            raise UsageError("steps", "are not those of the task, each once and in order", where)
        if sum(wall for wall, back in zip(spans.wall_ns, spans.background, strict=True) if not back) > one.wall_ns:
            raise UsageError("wall", "is less than the steps took", where)
