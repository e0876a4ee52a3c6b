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
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from cpubench import __version__
from cpubench.errors import UsageError
from cpubench.host.facts import collect, divisor
from cpubench.host.topology import read_topology
from cpubench.measure import folder as place
from cpubench.measure.child import run_child
from cpubench.measure.scratch import guard, storage_facts
from cpubench.power import gauge
from cpubench.power.published import public_name
from cpubench.results.files import sealed
from cpubench.tasks import inputs, plan, programs, rungs, spans
from cpubench.tasks.catalogue import Task
from cpubench.tasks.plan import PROFILES, Options
from cpubench.tasks.steps import Place

SUITE = "tasks-1"
FILE = "tasks.json"

Json = dict[str, Any]
Tell = Callable[..., None]  # (text, stays)


def run(options: Options, tell: Tell) -> Path:
    """The folder of a finished run of tasks. UsageError before anything was measured where it cannot be done."""
    if options.profile not in PROFILES:
        raise UsageError("profile", f"{options.profile!r} is none of {', '.join(PROFILES)}", "--profile")
    tools = programs.check_tools(options.tools)
    with place.host_lock():
        facts, cores = collect(), read_topology().cores
        tasks = plan.planned(options, divisor(facts, len(cores))[1], tools, facts["memory_bytes"])
        meter, problem = _meter(options)
        workdir = options.workdir and place.check_workdir(options.workdir)
        folder, made = place.new_folder(options.out, _slug(facts["hostname"], options.out))
        try:
            with _scratch(workdir or folder) as scratch:
                document = _document(options, facts, cores, tasks, scratch)
                document |= {"meter": public_name(meter.name) if meter else "", "meter_problem": problem,
                             "meter_scope": meter.scope if meter else "",
                             "meter_provenance": meter.provenance if meter else ""}  # fmt: skip
                options = replace(options, meter=meter.name if meter else None)
                _measure(options, document, tasks, folder, scratch, tell)
            return folder
        finally:
            place.discard(folder, [] if (folder / FILE).exists() else made)


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """A folder for the files of agents that is gone afterwards, however this process ends."""
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


def _meter(options: Options) -> tuple[gauge.Found | None, str]:
    """The meter of the run, or why there is none; UsageError where one that was named tells nothing."""
    if options.meter in (None, "none"):
        return None, "none was asked for: --meter"
    return gauge.found(options.meter or "", allow_estimated=options.allow_estimated), ""


def _document(options: Options, facts: Json, cores: Sequence[Any], tasks: Sequence[Task], scratch: Path) -> Json:
    """The document without repeats: rows with their steps, or with the reason why there will be none."""
    try:
        found = programs.probe(scratch)
        rungs.try_rungs(found, [task.params[0] for task in tasks if task.task == "T3"], scratch)
        (scratch / "inputs").mkdir()
        digest = inputs.generate(scratch / "inputs")
    except OSError as error:
        raise UsageError(
            "prepare", f"the tasks cannot be prepared: {error.strerror}", str(error.filename or "")
        ) from None
    kind, n = divisor(facts, len(cores))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    where = Place("", "", found.paths["python3"], found.paths.get("cc", ""), found.paths["sh"])
    rows = [_row(task, where, found.reason(task) or plan.too_many(task, facts["memory_bytes"])) for task in tasks]
    return {
        "schema": "cpubench.tasks/1", "cpubench": __version__, "suite": SUITE,
        "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "profile": options.profile,
        "estimate": PROFILES[options.profile].estimate or options.repeats is not None or options.window_s is not None,
        "seed": seed, "think": options.think, "cpus": sorted(cpu for core in cores for cpu in core.cpus),
        "divisor": {"kind": kind, "n": n}, "host": facts, "programs": found.stored, "missing": found.missing,
        "file_system": storage_facts(scratch), "inputs_sha256": digest, "tasks": rows, "stopped": "running",
        "notes": [],
    }  # fmt: skip


def _row(task: Task, where: Place, skipped: str | None) -> Json:
    steps = [msgspec.to_builtins({key: value for key, value in asdict(step).items()
                                  if key in ("label", "kind", "phase", "pythons", "shells")})
             for step in task.steps(where)]  # fmt: skip
    return {"name": task.name, "task": task.task, "params": list(task.params), "tools": list(task.tools),
            "agents": task.agents, "version": task.version, "skipped": skipped, "steps": steps,
            "repeats": []}  # fmt: skip


def _measure(options: Options, document: Json, tasks: Sequence[Task], folder: Path, scratch: Path, tell: Tell) -> None:
    """Does all repeats, and writes the document after each; UsageError where it was interrupted or cannot go on."""
    profile = PROFILES[options.profile]
    rows = {row["name"]: row for row in document["tasks"]}
    todo = [task for task in tasks if rows[task.name]["skipped"] is None]
    single = [task for task in todo if not task.windowed]
    many = sorted((task for task in todo if task.windowed), key=lambda task: (task.task, task.agents))
    rng = random.Random(document["seed"])
    repeats = options.repeats or profile.repeats
    order = [(index, task) for index in range(repeats) for task in rng.sample(single, len(single))]
    order += [(index, task) for index in range(profile.windows) for task in many]
    left_s = plan.predicted_s(options, [task for _, task in order], len(document["cpus"]))
    tell(f"{len(single)} tasks of one agent {repeats} times, then {len(many) * profile.windows} windows of many:"
         f" about {left_s / 60:.1f} min")  # fmt: skip
    began_ns, kept = time.monotonic_ns(), 0
    try:
        for at, (index, task) in enumerate(order):
            took_s = (time.monotonic_ns() - began_ns) / 1e9
            tell(f"{at + 1} of {len(order)} after {took_s:.0f} s: {task.name}, repeat {index + 1}", stays=False)
            one = _repeat(options, document, task, index, scratch)
            rows[task.name]["repeats"].append(one)
            for text in (*one["failures"], *one["leftovers"]):
                tell(f"{task.name}, repeat {index + 1} FAILED: {text}")
            kept = _save(document, folder)
        document["stopped"] = "done"
        _save(document, folder)
    except (KeyboardInterrupt, UsageError) as error:
        document["stopped"] = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        if kept and not (folder / FILE).exists():
            text = f"is gone (removed, renamed or unmounted), and with it {kept} repeats"
            raise UsageError("vanished", text, str(folder)) from None
        with suppress(UsageError):  # a full disk: what was written last stays
            kept = _save(document, folder)
        what = f"{kept} repeats are kept in {folder}" if kept else "nothing was measured"
        if isinstance(error, UsageError):
            raise UsageError(error.code, f"{error.text}; {what}", error.where) from None
        raise UsageError("interrupted", f"interrupted; {what}") from None


def _save(document: Json, folder: Path) -> int:
    """How many repeats the file now holds; without any there is none."""
    count = sum(len(row["repeats"]) for row in document["tasks"])
    if count:
        place.write_json(folder / FILE, sealed(document))
    return count


def _repeat(options: Options, document: Json, task: Task, index: int, scratch: Path) -> Json:
    """One repeat, in a process and a folder of its own; one that failed to end well is a failed repeat."""
    path, out = scratch / "spec.json", scratch / "told.json"
    spec = plan.spec_of(document, options, task, index)
    spec |= {"inputs": str(scratch / "inputs"), "pins": inputs.outputs(task.pinned()), "meter": options.meter,
             "estimated": options.allow_estimated}  # fmt: skip
    place.write_json(path, spec)
    began_ns = time.monotonic_ns()
    try:
        run_child("cpubench.tasks.agent", [str(path), str(out)], scratch, random.Random(f"{document['seed']} {index}"))
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
