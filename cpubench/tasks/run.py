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
from dataclasses import asdict, dataclass
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
from cpubench.results.files import sealed
from cpubench.tasks import catalogue, inputs, programs, spans
from cpubench.tasks.catalogue import Task
from cpubench.tasks.steps import Place

SUITE = "tasks-1"
FILE = "tasks.json"
AGENT_BYTES = 64 << 20  # that an agent of T4 and its tools may need at once; half of the memory is for them
REPEAT_S = 60.0  # of all tasks of one agent, on two CPUs of a virtual machine: until the first one says better
READY_AGENT_S = 0.7  # CPU time until an agent stands at its place

Json = dict[str, Any]
Tell = Callable[..., None]  # (text, stays)


@dataclass(frozen=True)
class Profile:
    """How often tasks are repeated, and with which numbers of agents, in multiples of the cores; 0 is one agent."""

    repeats: int
    windows: int
    window_s: float
    multiples: tuple[float, ...]
    estimate: bool


PROFILES = {
    "quick": Profile(3, 1, 20.0, (0, 1, 4), estimate=True),
    "standard": Profile(8, 2, 60.0, (0, 0.5, 1, 2, 4, 8), estimate=False),
}


@dataclass(frozen=True)
class Options:
    """What ``cpubench tasks run`` was asked for; None is the profile's own."""

    profile: str = "standard"
    tasks: Sequence[str] | None = None
    agents: Sequence[int] | None = None
    think: float = 1.0
    tools: Sequence[str] = ()
    workdir: Path | None = None
    out: Path | None = None
    seed: int | None = None
    repeats: int | None = None
    window_s: float | None = None


def run(options: Options, tell: Tell) -> Path:
    """The folder of a finished run of tasks. UsageError before anything was measured where it cannot be done."""
    if options.profile not in PROFILES:
        raise UsageError("profile", f"{options.profile!r} is none of {', '.join(PROFILES)}", "--profile")
    tools = programs.check_tools(options.tools)
    with place.host_lock():
        facts, cores = collect(), read_topology().cores
        tasks = _planned(options, len(cores), tools)
        workdir = options.workdir and place.check_workdir(options.workdir)
        folder, made = place.new_folder(options.out, _slug(facts["hostname"], options.out))
        try:
            with _scratch(workdir or folder) as scratch:
                document = _document(options, facts, cores, tasks, tools, scratch)
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


def numbers(options: Options, cores: int) -> list[int]:
    """Numbers of agents, ascending."""
    if options.agents is not None:
        return sorted(set(options.agents))
    return sorted({max(1, int(multiple * cores)) for multiple in PROFILES[options.profile].multiples})


def _planned(options: Options, cores: int, tools: tuple[str, ...]) -> list[Task]:
    every = [*catalogue.solo(tools), *catalogue.fleets(numbers(options, cores), tools)]
    return catalogue.chosen(every, options.tasks)


def _document(
    options: Options, facts: Json, cores: Sequence[Any], tasks: Sequence[Task], tools: tuple[str, ...], scratch: Path
) -> Json:
    """The document without repeats: rows with their steps, or with the reason why there will be none."""
    try:
        found = programs.probe(scratch)
        (scratch / "inputs").mkdir()
        digest = inputs.generate(scratch / "inputs")
    except OSError as error:
        raise UsageError(
            "prepare", f"the tasks cannot be prepared: {error.strerror}", str(error.filename or "")
        ) from None
    kind, n = divisor(facts, len(cores))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    where = Place("", "", found.paths["python3"], found.paths.get("cc", ""), found.paths["sh"])
    rows = [_row(task, where, found.reason(task) or _too_many(task, facts)) for task in tasks]
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


def _too_many(task: Task, facts: Json) -> str | None:
    """Why so many agents are not started here."""
    memory = facts["memory_bytes"]
    need = AGENT_BYTES * task.agents
    if task.agents > 1 and memory is not None and need > memory / 2:
        return f"{task.agents} agents may need {need >> 20} MiB; half of the usable memory is {memory >> 21} MiB"
    return None


def _measure(options: Options, document: Json, tasks: Sequence[Task], folder: Path, scratch: Path, tell: Tell) -> None:
    """Does all repeats, and writes the document after each; UsageError where it was interrupted or cannot go on."""
    profile = PROFILES[options.profile]
    rows = {row["name"]: row for row in document["tasks"]}
    todo = [task for task in tasks if rows[task.name]["skipped"] is None]
    single = [task for task in todo if task.task != "T4"]
    many = sorted((task for task in todo if task.task == "T4"), key=lambda task: task.agents)
    rng = random.Random(document["seed"])
    repeats = options.repeats or profile.repeats
    order = [(index, task) for index in range(repeats) for task in rng.sample(single, len(single))]
    order += [(index, task) for index in range(profile.windows) for task in many]
    window_s = options.window_s or profile.window_s
    fleets_s = sum(window_s + 2 + READY_AGENT_S * task.agents / len(document["cpus"]) for _, task in order
                   if task.task == "T4")  # fmt: skip
    share = len(single) / len(catalogue.solo())
    tell(f"{len(single)} tasks of one agent {repeats} times, then {len(order) - repeats * len(single)} windows of many:"
         f" about {(REPEAT_S * share * repeats + fleets_s) / 60:.1f} min")  # fmt: skip
    began_ns, kept = time.monotonic_ns(), 0
    try:
        for at, (index, task) in enumerate(order):
            took_s = (time.monotonic_ns() - began_ns) / 1e9
            tell(f"{at + 1} of {len(order)} after {took_s:.0f} s: {task.name}, repeat {index + 1}", stays=False)
            one = _repeat(options, document, task, index, scratch, window_s)
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


def _repeat(options: Options, document: Json, task: Task, index: int, scratch: Path, window_s: float) -> Json:
    """One repeat, in a process and a folder of its own; one that failed to end well is a failed repeat."""
    spec, out = scratch / "spec.json", scratch / "told.json"
    place.write_json(spec, {
        "task": task.task, "params": task.params, "tools": task.tools, "agents": task.agents, "index": index,
        "inputs": str(scratch / "inputs"), "python": document["programs"]["python3"]["path"],
        "cc": document["programs"].get("cc", {}).get("path", ""), "shell": document["programs"]["sh"]["path"],
        "cpus": document["cpus"], "pins": inputs.outputs(task.pinned()), "seed": document["seed"],
        "window_ns": round(window_s * 1e9) if task.task == "T4" else 0, "think": options.think,
    })  # fmt: skip
    began_ns = time.monotonic_ns()
    try:
        run_child("cpubench.tasks.agent", [str(spec), str(out)], scratch, random.Random(f"{document['seed']} {index}"))
        found: Json = msgspec.json.decode(out.read_bytes())
        del found["outputs"]
        return {"index": index, **found}
    except (UsageError, OSError) as error:
        text = error.text if isinstance(error, UsageError) else f"{out.name}: {error.strerror}"
        return {
            "index": index, "wall_ns": time.monotonic_ns() - began_ns, "failures": [text], "leftovers": [],
            "window_ns": round(window_s * 1e9) if task.task == "T4" else 0, "harness_us": 0, "tools_us": 0,
            "unknown": [], "ready_ns": 0, "pressure": None, "memory_low_bytes": None, "environment": {},
            "spans": spans.columns([]),
        }  # fmt: skip
    finally:
        spec.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
