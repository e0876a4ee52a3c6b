"""A run of tasks: repeats of every task of one agent in an order that is drawn anew, then windows of many agents."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from cpubench.errors import NotGivenBack, UsageError
from cpubench.host.facts import collect, divisor
from cpubench.host.topology import read_topology
from cpubench.measure import folder as place
from cpubench.measure.child import run_child
from cpubench.measure.entering import check, enter
from cpubench.measure.powered import Powered, powered
from cpubench.measure.scratch import guard
from cpubench.power.channel import LATER
from cpubench.power.registers import Host
from cpubench.power.standing import in_force
from cpubench.results.orders import level_order
from cpubench.results.parse import check_text
from cpubench.results.windows import Limits, Power
from cpubench.tasks import inputs, plan, programs, spans
from cpubench.tasks.catalogue import Task
from cpubench.tasks.document import document_of
from cpubench.tasks.levels import FILE, Level, levels_of
from cpubench.tasks.plan import PROFILES, Options

Json = dict[str, Any]
Tell = Callable[..., None]  # (text, stays)


def run(options: Options, tell: Tell) -> Path:
    """The folder of a finished run of tasks. UsageError before anything was measured where it cannot be done."""
    if options.profile not in PROFILES:
        raise UsageError("profile", f"{options.profile!r} is none of {', '.join(PROFILES)}", "--profile")
    if options.power.meter == LATER:
        raise UsageError("meter", "watts that come later are merged into runs of kernels only", f"--meter {LATER}")
    tools = programs.check_tools(options.tools)
    with place.host_lock():
        in_force(Host(options.power.root), told=options.power.external is not None)
        facts, cores = collect(), read_topology().cores
        tasks = plan.planned(options, divisor(facts, len(cores))[1], tools, facts["memory_bytes"])
        workdir = options.workdir and place.check_workdir(options.workdir)
        folder, made = place.new_folder(options.out, _slug(facts["hostname"], options.out))
        try:
            with powered(options.power) as state, _scratch(workdir or folder) as scratch:
                document = document_of(options, facts, cores, tasks, scratch)
                if options.power.names:
                    _check_any(document)
                levels, power = levels_of(document, folder, state, tell)
                _measure(Run(options, levels, state, power, scratch, tell), tasks)
            return folder
        except NotGivenBack as error:
            if _files(folder) and str(folder) not in error.text:
                error.text += f"; what was done is kept in {folder}"
            raise
        finally:
            place.discard(folder, [] if _files(folder) else made)


def _check_any(document: Json) -> None:
    """UsageError where no task but the empty one can be done here: better known before loads of minutes."""
    skipped = [row["skipped"] for row in document["tasks"] if row["task"] != "T0"]
    if skipped and all(skipped):
        raise UsageError("nothing_to_measure", f"none of them can be done here: {skipped[0]}", "--tasks")


def _files(folder: Path) -> list[Path]:
    return [*folder.glob(FILE), *folder.glob(f"*/{FILE}")]


@dataclass(frozen=True)
class Run:
    """A run on its way."""

    options: Options
    levels: Sequence[Level]
    state: Powered | None
    power: Power | None
    scratch: Path
    tell: Tell

    @property
    def kept(self) -> int:
        return sum(level.repeats for level in self.levels)

    def save(self, stopped: str) -> None:
        for level in self.levels:
            if not level.gone:
                level.document["stopped"] = stopped
                level.save()


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """A folder for the files of agents that is gone afterwards, however this process ends."""
    check_text(str(parent), "workdir", str(parent))
    try:
        folder = Path(tempfile.mkdtemp(prefix=".scratch-", dir=parent))
        try:
            keeper = guard(folder)
        except OSError:
            folder.rmdir()
            raise
    except OSError as error:
        raise UsageError("workdir", f"cannot hold a scratch folder: {error.strerror}", str(parent)) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.kill(keeper, signal.SIGKILL)
        os.waitpid(keeper, 0)


def _slug(hostname: str | None, out: Path | None) -> str | None:
    return hostname if out else f"{(hostname or 'host')[:34]}-tasks"


def _measure(run: Run, tasks: Sequence[Task]) -> None:
    """Does all repeats, and writes a document after each; UsageError where it was interrupted or cannot go on."""
    order = _order(run, tasks)
    began_ns, kept = time.monotonic_ns(), 0
    try:
        for at, (index, level, task) in enumerate(order):
            took_s, under = (time.monotonic_ns() - began_ns) / 1e9, f", under {level.cap}" * (len(run.levels) > 1)
            run.tell(
                f"{at + 1} of {len(order)} after {took_s:.0f} s: {task.name}, repeat {index + 1}{under}", stays=False
            )
            one = _at_level(run, level, task, index)
            level.rows[task.name]["repeats"].append(one)
            for text in (*one["failures"], *one["leftovers"]):
                run.tell(f"{task.name}, repeat {index + 1}{under} FAILED: {text}")
            level.save()
            kept = run.kept
        run.save("done")
    except (KeyboardInterrupt, UsageError) as error:
        gone = [level for level in run.levels if level.gone]
        with suppress(UsageError):  # a full disk: what was written last stays
            run.save("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
            kept = run.kept
        if gone:
            text = f"is gone (removed, renamed or unmounted), and with it {gone[0].repeats} repeats"
            raise UsageError("vanished", text, str(gone[0].folder)) from None
        where = run.levels[0].folder if len(run.levels) == 1 else run.levels[0].folder.parent
        what = f"{kept} repeats are kept in {where}" if kept else "nothing was measured"
        if isinstance(error, UsageError):  # its own kind: one has another exit code
            error.text = f"{error.text}; {what}"
            raise
        raise UsageError("interrupted", f"interrupted; {what}") from None


def _order(run: Run, tasks: Sequence[Task]) -> list[tuple[int, Level, Task]]:
    """All repeats in their order, after it was told how long they take. The levels take turns, all tasks at each, so
    that what drifts falls on all alike and few changes have to settle."""
    profile, document = PROFILES[run.options.profile], run.levels[0].document
    rows, levels = run.levels[0].rows, {level.cap: level for level in run.levels}
    todo = [task for task in tasks if rows[task.name]["skipped"] is None]
    single = [task for task in todo if not task.windowed]
    many = sorted((task for task in todo if task.windowed), key=lambda task: (task.task, task.agents))
    rng, repeats = random.Random(document["seed"]), run.options.repeats or profile.repeats
    order = []
    for turn in range(repeats + profile.windows):
        for cap in level_order(document["seed"], list(levels), turn):
            if turn < repeats:
                order += [(turn, levels[cap], task) for task in rng.sample(single, len(single))]
            else:
                order += [(turn - repeats, levels[cap], task) for task in many]
    left_s = plan.predicted_s(run.options, [task for _, _, task in order], len(document["cpus"]))
    if run.power is not None and run.power.cap_scope:
        changes = 1 + sum(a is not b for (_, a, _), (_, b, _) in pairwise(order))
        left_s += changes * run.power.settle_ns / 1e9
    at = f" at each of {len(levels)} levels" * (len(levels) > 1)
    run.tell(f"{len(single)} tasks of one agent {repeats} times, then {len(many) * profile.windows} windows of many{at}"
             f": about {left_s / 60:.1f} min")  # fmt: skip
    return order


def _at_level(run: Run, level: Level, task: Task, index: int) -> Json:
    """One repeat under its cap; UsageError where something else changed a limit meanwhile: it does not count."""
    if run.state is None or run.power is None:
        return _repeat(run, level.document, task, index, {})
    told = enter(run.state, run.power, level.cap)
    one = _repeat(run, level.document, task, index, told)
    check(run.state, level.cap)
    if "limits" in one and (changed := msgspec.convert(one["limits"], Limits).changed):
        text = f"something else changed a limit before the last repeat, which does not count: {changed[0]}"
        raise UsageError("cap_changed", text, f"--cap {level.cap}")
    return one


def _repeat(run: Run, document: Json, task: Task, index: int, told: Json) -> Json:
    """One repeat, in a process and a folder of its own; one that failed to end well is a failed repeat."""
    path, out = run.scratch / "spec.json", run.scratch / "told.json"
    spec = plan.spec_of(document, run.options, task, index)
    spec |= {"inputs": str(run.scratch / "inputs"), "pins": inputs.outputs(task.pinned()), "power": told}
    place.write_json(path, spec)
    began_ns = time.monotonic_ns()
    try:
        rng = random.Random(f"{document['seed']} {index}")
        run_child("cpubench.tasks.agent", [str(path), str(out)], run.scratch, rng)
        found: Json = msgspec.json.decode(out.read_bytes())
        del found["outputs"]
        return {"index": index, **found}
    except (UsageError, OSError) as error:
        text = error.text if isinstance(error, UsageError) else f"{out.name}: {error.strerror}"
        return {
            "index": index, "wall_ns": time.monotonic_ns() - began_ns, "failures": [text], "leftovers": [],
            "window_ns": spec["window_ns"], "harness_us": 0, "tools_us": 0, "unknown": [], "ready_ns": 0,
            "pressure": None, "memory_low_bytes": None, "environment": {}, "spans": spans.columns([]),
        }  # fmt: skip
    finally:
        path.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
