"""Collecting the results of a fleet: sums, seals and what figures are made of are checked, figures go to the index."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from cpubench import __version__
from cpubench.analysis.briefly import brief_score
from cpubench.analysis.reference import Reference, as_reference, load_reference
from cpubench.analysis.scenarios import Scenario, load_scenarios, pick
from cpubench.analysis.units import facts_of
from cpubench.errors import UsageError
from cpubench.fleet.index import Index, Row
from cpubench.fleet.layout import RUN, SUM, Cell, cell_of
from cpubench.results.brief import brief_run
from cpubench.results.packed import check_sum, unpacked
from cpubench.results.parse import MAX_BYTES, located, read_raw, shown
from cpubench.results.records import Run

Json = dict[str, Any]
RULES = 2  # of what is indexed: raised with every change, so that an older index is made anew
MANY = 200  # runs: of fewer, the processes that share them are not worth their start, which takes half a second
MOST_PROCESSES = 3  # each takes 60 MB beside the 90 of the first, for 5,000 runs


@dataclass(frozen=True)
class Task:
    """A result to look at: ``known`` is the sum that the index has of its path."""

    cell: Cell
    file: Path
    path: str
    known: str | None


@dataclass(frozen=True)
class Bad:
    """A result that does not count, and why; ``cell`` by the names of its folders."""

    cell: Cell
    code: str
    text: str


@dataclass(frozen=True)
class Rules:
    """What runs are scored by; ``validate`` is asked of each file first, those that are known too."""

    reference: Reference
    scenario: Scenario
    validate: Callable[[Path], object] | None = None

    @property
    def mark(self) -> str:
        return f"{RULES} {__version__} {self.reference.sha256} {self.scenario!r}"


def rules_of(reference: Path | None, scenario: str, validate: Callable[[Path], object] | None = None) -> Rules:
    """The reference and the weights; UsageError where there are none of that name."""
    return Rules(as_reference(load_reference(reference)), pick(load_scenarios(), scenario), validate)


def cells(fleet: Path) -> list[tuple[Cell, Path]]:
    """Each cell of RESULTS/<fleet> with its folder, whatever that holds, by their names."""
    try:
        hosts = sorted(one for one in fleet.iterdir() if one.is_dir())
        found = [(cell, one) for host in hosts for one in sorted(host.iterdir()) if (cell := cell_of(one)) is not None]
    except OSError as error:
        raise located(fleet, UsageError("unreadable", f"cannot be read: {error.strerror}")) from None
    if not found:
        text = f"holds no results of a fleet, which are in HOST/CAP-rN-HASH/{RUN}"
        several = sorted(one.parent.parent.parent for one in fleet.glob(f"*/*/*/{RUN}"))
        if several:
            text = f"holds fleets: give one of them, such as {shown(str(several[0]), 120)}"
        raise located(fleet, UsageError("no_fleet", text))
    return found


def refresh(fleet: Path, index: Index, rules: Rules, found: Sequence[tuple[Cell, Path]]) -> tuple[Json, list[Bad]]:
    """How many runs are new in the index, unchanged and gone, and the results that do not count.

    Every packed file is read and held to its sum; only one whose sum the index does not have is unpacked and scored.
    """
    known = index.sums()
    tasks = []
    for cell, folder in found:
        if (folder / RUN).exists():
            path = f"{folder.parent.name}/{folder.name}"
            tasks.append(Task(cell, folder / RUN, path, known.get(path)))
    counts, bad, there = {"new": 0, "same": 0}, [], set()
    for task, made in zip(tasks, _examined(tasks, rules), strict=True):
        if isinstance(made, Bad):
            bad.append(made)
            continue
        there.add(task.path)
        if made is not None:
            index.put(made)
        counts["same" if made is None else "new"] += 1
    gone = sorted(known.keys() - there)
    index.drop(gone)
    return counts | {"gone": len(gone)}, bad


def _examined(tasks: Sequence[Task], rules: Rules) -> Iterator[Row | Bad | None]:
    """What becomes of each: a row for the index, a refusal, or None where the index has it already."""
    new = len(tasks) if rules.validate else sum(task.known is None for task in tasks)
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)))
    if new < MANY or processes < 2:
        yield from (examine(task, rules) for task in tasks)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _start, (rules,)) as pool:
        try:
            yield from pool.map(_examine_here, tasks, chunksize=16)
        except BrokenProcessPool:
            text = "a process that read results was killed, perhaps for want of memory: nothing was indexed"
            raise UsageError("memory", text) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_here: list[Rules] = []  # of a process of the pool


def _start(rules: Rules) -> None:
    """Readies a process of the pool: it leaves interrupts to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _here[:] = [rules]
    threading.Thread(target=_die_with, args=(parent_process(),), daemon=True).start()


def _die_with(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        os._exit(1)


def _examine_here(task: Task) -> Row | Bad | None:
    return examine(task, _here[0])


def examine(task: Task, rules: Rules) -> Row | Bad | None:
    """A row for the index; None where its sum is the known one."""
    try:
        raw = read_raw(task.file, MAX_BYTES)
        sum_ = check_sum(raw, _sum_beside(task.file))
        if rules.validate is not None:
            rules.validate(task.file)
        if sum_ == task.known:
            return None
        return row_of(task, sum_, brief_run(unpacked(raw, MAX_BYTES)), rules)
    except UsageError as fault:
        place = fault.where.removeprefix(str(task.file)).lstrip(": ")
        return Bad(task.cell, fault.code, shown(f"{place}: {fault.text}" if place else fault.text, 250))
    except MemoryError:
        return Bad(task.cell, "memory", "there is not enough memory here to read it")


def _sum_beside(file: Path) -> bytes:
    try:
        return read_raw(file.with_name(SUM), 4096)
    except UsageError as fault:
        text = f"is not complete: there is no {SUM} beside it" if fault.code == "missing" else f"{SUM} {fault.text}"
        raise UsageError("no_sum" if fault.code == "missing" else fault.code, text) from None


def row_of(task: Task, sum_: str, run: Run, rules: Rules) -> Row:
    """The row of a run; UsageError where it is not of the level that its folder says."""
    plan, cell = run.plan, task.cell
    if cell.cap not in plan.caps:
        text = f"is at {', '.join(shown(cap, 20) for cap in plan.caps[:4])}, not at the {cell.cap} of its folder"
        raise UsageError("cap", text)
    made = brief_score(run, rules.reference, rules.scenario)
    machine = plan.host_id if plan.host_id != "unknown" else f"name {cell.host}"
    return Row(
        task.path, sum_, cell.host, cell.cap, cell.repeat, cell.suite, run.sha256, shown(plan.id, 80),
        shown(machine, 80), _model(run.host), plan.divisor.kind, shown(plan.created_utc, 40), made.passes,
        plan.powered.cap_scope if plan.powered else "", facts_of(run.host, len(plan.cpus), plan.divisor.n),
        made.figures, made.faults,
    )  # fmt: skip


def _model(host: Mapping[str, Any]) -> str:
    model = host.get("cpu_model")
    return shown(model, 80) if isinstance(model, str) and model else "unknown CPU"
