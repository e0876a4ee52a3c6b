"""Do kernels foretell tasks? One thing is changed at a time; kernels and tasks are measured under both settings.

``nox -s prediction`` takes a quarter of an hour on an idle machine and writes the tables of docs/prediction.md. With
``--keep FILE`` and names of settings only these are measured and kept there; ``--page`` then writes the tables from it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cpubench.analysis.agreement import Point, agreement
from cpubench.analysis.estimates import Estimate, paired, span
from cpubench.analysis.explained import split, walls
from cpubench.analysis.paths import RULES, by_weights, one_ns, predicted, prices, summed
from cpubench.analysis.rates import Rates, run_rates
from cpubench.analysis.scenarios import load_scenarios
from cpubench.results.load import load_run
from cpubench.results.names import row_key
from cpubench.results.task_records import Repeat, TaskRow
from cpubench.tasks import inputs, programs
from cpubench.tasks import steps as task_steps
from cpubench.tasks.catalogue import Task

FILE = Path(__file__).parents[1] / "docs" / "prediction.md"
MARK = "<!-- written by tests/prediction.py -->\n"
PASSES, SHORT, SEED = 8, 30, 1
SECONDS = 115  # of a setting: as many pairs as fit, two at least, or its task intervals say nothing
LEAST_S = 0.02  # a kind of step that takes less in a repeat is not told apart: its starts alone vary by more
PR_SET_THP_DISABLE = 41
TASKS = (Task("T1", ("verify-heavy", "light")), Task("T1", ("verify-heavy", "heavy")), Task("T2", ("process",)),
         Task("T2", ("server",)))  # fmt: skip
FAMILIES = {
    "spawn": RULES["spawn"].rows, "switch": RULES["switch"].rows,
    "file": RULES["meta"].rows + RULES["small"].rows + RULES["tree"].rows,
    "memory": ("mem_touch[memory=fresh]", "mem_copy[set=64M]", "mem_chase[set=16K]", "mem_chase[set=4M]"),
}  # fmt: skip
ROWS = tuple(dict.fromkeys(row for rows in FAMILIES.values() for row in rows))
DISK = {row: row.replace("file_", "storage_") for row in FAMILIES["file"]}
Json = dict[str, Any]


@dataclass(frozen=True)
class Side:
    """A setting of this machine: what steps and kernels run under, and which rows stand for those of ``ROWS``."""

    disk: bool = False
    cpu: int | None = None  # the only one
    quota: float | None = None  # CPUs
    env_bytes: int = 0
    ballast_bytes: int = 0  # that the agent has touched, which starts all tools
    huge: bool = True  # pages, where somebody asks for them
    rows: dict[str, str] = field(default_factory=dict)


SPAWN, PIPE = RULES["spawn"].rows[0], RULES["switch"].rows[0]
VFORK = "spawn_vfork_exec[rss={}]"
SETTINGS = {
    "nothing": (Side(), Side()),
    "tmpfs to disk": (Side(), Side(disk=True, rows=DISK)),
    "quota of 0.75 CPU": (Side(), Side(quota=0.75)),
    "two CPUs to one": (Side(rows={PIPE: "switch_pipe[place=other]"}), Side(cpu=0)),
    "environment of 64 KB": (Side(rows={SPAWN: "spawn_posix[env=1K]"}),
                             Side(env_bytes=65536, rows={SPAWN: "spawn_posix[env=64K]"})),
    "parent of 384 MB": (Side(rows={SPAWN: VFORK.format("8M")}),
                         Side(ballast_bytes=384 << 20, rows={SPAWN: VFORK.format("384M")})),
    "no huge pages": (Side(), Side(huge=False)),
}  # fmt: skip


# -- in a child, under a side ------------------------------------------------------------------------------------------


def child(spec: Json) -> None:
    """Puts this process under the side, and measures kernels or does the tasks once."""
    side = Side(**spec["side"])
    if spec["group"]:
        Path(spec["group"], "cgroup.procs").write_text(str(os.getpid()))
    if side.cpu is not None:
        os.sched_setaffinity(0, {side.cpu})
    if not side.huge and ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0):
        raise SystemExit("huge pages cannot be turned off here")
    (kernels if spec["what"] == "kernels" else tasks)(spec, side)


def kernels(spec: Json, side: Side) -> None:
    from cpubench.measure import runner
    from cpubench.measure.draft import Options

    keys = [row_key(side.rows.get(row, row), "1") for row in ROWS]
    own = {"min_passes": PASSES, "max_passes": PASSES}
    runner.run(Options("quick", keys=keys, workdir=Path(spec["disk"]), out=Path(spec["out"]), seed=spec["seed"],
                       own=own, locked=True), lambda text, state: None)  # fmt: skip


def tasks(spec: Json, side: Side) -> None:
    from cpubench.tasks import agent, toolmix

    whole, plain = toolmix.steps, task_steps.environment
    toolmix.steps = lambda place, channel: shortened(whole(place, channel), channel)
    large = {f"CPUBENCH_LARGE_{at:05}": "x" * 43 for at in range(side.env_bytes // 64)}  # strings of 64 bytes
    task_steps.environment = lambda place, extra: plain(place, {**extra, **large})
    ballast = bytearray(side.ballast_bytes)
    ballast[::4096] = b"x" * len(ballast[::4096])
    found = {}
    for one in spec["tasks"]:
        folder = Path(tempfile.mkdtemp(dir=spec["folder"]))
        found[one["name"]] = agent.work(one, [], folder, 0)
    Path(spec["out"]).write_text(json.dumps(found))


def shortened(steps: list[Any], channel: str) -> list[Any]:
    """The first calls of T2 alone where each is a process: all 200 would take the time of everything else."""
    calls = [at for at, step in enumerate(steps) if step.action == "run" and "call" in step.argv]
    return steps if channel == "server" else [step for at, step in enumerate(steps) if at not in calls[SHORT:]]


# -- the parent --------------------------------------------------------------------------------------------------------


class NotMeasured(Exception):
    """Why a setting could not be measured here."""


@dataclass(frozen=True)
class Bench:
    """What all settings share: the inputs of tasks, folders on tmpfs and on a disk."""

    fast: Path
    disk: Path
    specs: dict[str, Json]
    rows: dict[str, Json]


def bench(fast: Path, disk: Path) -> Bench:
    (fast / "inputs").mkdir()
    inputs.generate(fast / "inputs")
    paths = programs.probe(fast).paths
    specs, rows = {}, {}
    cpus = sorted(os.sched_getaffinity(0))
    for task in TASKS:
        specs[task.name] = {
            "name": task.name, "task": task.task, "params": task.params, "tools": [], "agents": 1, "index": 0,
            "inputs": str(fast / "inputs"), "python": paths["python3"], "cc": paths["cc"], "shell": paths["sh"],
            "cpus": cpus, "pins": inputs.outputs(task.pinned()), "seed": SEED, "window_ns": 0, "think": 0.0,
        }  # fmt: skip
        place = task_steps.Place("", "", paths["python3"], paths["cc"], paths["sh"])
        made = task.steps(place)
        made = shortened(made, task.params[0]) if task.task == "T2" else made
        rows[task.name] = {
            "name": task.name, "task": task.task, "params": list(task.params), "tools": [], "agents": 1,
            "version": task.version, "skipped": None, "repeats": [],
            "steps": [{name: getattr(step, name) for name in ("label", "kind", "phase", "pythons", "shells")}
                      for step in made],
        }  # fmt: skip
    return Bench(fast, disk, specs, rows)


@contextlib.contextmanager
def group(cpus: float | None) -> Iterator[str]:
    """A control group with a quota of CPUs, by either hierarchy; "" where none is asked for."""
    if cpus is None:
        yield ""
        return
    first = Path("/sys/fs/cgroup/cpu")
    made = (first if first.is_dir() else Path("/sys/fs/cgroup")) / f"cpubench-prediction-{os.getpid()}"
    made.mkdir()
    try:
        if first.is_dir():
            (made / "cpu.cfs_quota_us").write_text(str(round(cpus * 100_000)))
        else:
            (made / "cpu.max").write_text(f"{round(cpus * 100_000)} 100000")
        yield str(made)
    finally:
        for _ in range(50):  # of a child that has just ended
            with contextlib.suppress(OSError):
                made.rmdir()
                break
            time.sleep(0.1)


def under(side: Side, what: str, made: Bench, **other: Any) -> Path:
    """What a child measured under the side: a run folder of kernels, or a file with a repeat of each task."""
    folder = Path(tempfile.mkdtemp(dir=made.disk if side.disk else made.fast))
    out = Path(tempfile.mkdtemp(dir=made.fast)) / "found"
    with group(side.quota) as where:
        spec = {"side": asdict(side), "group": where, "what": what, "out": str(out), "folder": str(folder),
                "disk": str(made.disk), "tasks": list(made.specs.values()), **other}  # fmt: skip
        told = out.with_name("spec.json")
        told.write_text(json.dumps(spec))
        done = subprocess.run(
            [sys.executable, __file__, "--child", str(told)], text=True, capture_output=True, check=False
        )
    if done.returncode:
        raise NotMeasured(f"{what}: {(done.stderr.strip().splitlines() or ['no reason told'])[-1]}")
    return out


def rates(side: Side, made: Bench, seed: int) -> Rates:
    """The rates of the side's kernels, by the names of ``ROWS``."""
    found = run_rates(load_run(under(side, "kernels", made, seed=seed)), "as-is")
    for row in ROWS:
        key = row_key(side.rows.get(row, row), "1")
        if key not in found.ns_per_op:
            print(f"not measured: {key}", file=sys.stderr)
    named = {row_key(row, "1"): found.ns_per_op[row_key(side.rows.get(row, row), "1")]
             for row in ROWS if row_key(side.rows.get(row, row), "1") in found.ns_per_op}  # fmt: skip
    return Rates(found.passes, {}, named, {})


def measured(name: str, made: Bench, seconds: float) -> Json:
    """A setting: the points of its tasks and of their kinds of steps, with the estimates behind them."""
    began, took, pairs = time.monotonic(), 0.0, 0
    a, b = SETTINGS[name]
    rng = random.Random(f"{SEED} {name}")
    seeds = rng.randrange(2**32), rng.randrange(2**32)
    kernel_rates = rates(a, made, seeds[0]), rates(b, made, seeds[1])
    repeats: tuple[dict[str, list[Repeat]], dict[str, list[Repeat]]] = ({}, {})
    while pairs < 2 or time.monotonic() - began + took < seconds:
        pair_began = time.monotonic()
        for at in rng.sample((0, 1), 2):
            found = json.loads(under((a, b)[at], "tasks", made).read_text())
            for task, one in found.items():
                if one["failures"] or one["leftovers"]:
                    raise NotMeasured(f"{task}: {(one['failures'] + one['leftovers'])[0]}")
                del one["outputs"]
                repeats[at].setdefault(task, []).append(msgspec.convert({"index": 0, **one}, Repeat))
        pairs, took = pairs + 1, time.monotonic() - pair_began
    return {"name": name, "pairs": pairs, **points(name, kernel_rates, repeats, made.rows)}


def points(name: str, kernel_rates: tuple[Rates, Rates], repeats: tuple[dict[str, list[Repeat]], ...],
           rows: dict[str, Json]) -> Json:  # fmt: skip
    """Foretold and measured log ratios, B to A, of tasks and of their kinds of steps."""
    price_a, price_b = map(prices, kernel_rates)
    families = {family: family_log(names, *kernel_rates) for family, names in FAMILIES.items()}
    scenarios = load_scenarios()
    told: Json = {"tasks": [], "kinds": [], "families": families, "paths": path_changes(price_a, price_b),
                  "ns": {key: float(np.nanmean(one)) for key, one in kernel_rates[0].ns_per_op.items()}}  # fmt: skip
    for task, ours in repeats[0].items():
        row = msgspec.convert(rows[task], TaskRow)
        tables = split(row, ours, one_ns(price_a))
        scenario = scenarios["tools" if row.task == "T2" else "coding"]
        weighed = by_weights(scenario.families, math.fsum(scenario.uncovered.values()), families)
        whole = predicted(summed(tables), price_a, price_b)
        assert whole is not None
        seen = paired(walls(row, ours), walls(row, repeats[1][task]))
        told["tasks"].append({
            "task": task, "predicted": triple(whole), "weights": weighed,
            "measured": triple(seen),
            "paths": summed(tables),
        })  # fmt: skip
        for kind, table in tables.items():
            if math.fsum(table.values()) < LEAST_S:
                continue
            one = predicted(table, price_a, price_b)
            if one is not None:
                told["kinds"].append([f"{task} {kind}", float(one.log), mean_log(row, ours, repeats[1][task], kind)])
    return told


def mean_log(row: TaskRow, ours: list[Repeat], theirs: list[Repeat], kind: str | None) -> float:
    return float(np.mean(walls(row, theirs, kind) - walls(row, ours, kind)))


def triple(one: Estimate) -> list[float]:
    return [math.log(value) for value in span(one)]


def family_log(names: Sequence[str], a: Rates, b: Rates) -> float:
    """Log of B's time to A's, the mean over the family's rows that both have."""
    keys = [row_key(name, "1") for name in names]
    logs = [np.nanmean(np.log(b.ns_per_op[key])) - np.nanmean(np.log(a.ns_per_op[key]))
            for key in keys if key in a.ns_per_op and key in b.ns_per_op]  # fmt: skip
    return float(np.mean(logs)) if logs else 0.0


def path_changes(a: dict[str, Estimate], b: dict[str, Estimate]) -> dict[str, float]:
    return {path: float(b[path].log - a[path].log) for path in RULES if path in a and path in b}


# -- the page ----------------------------------------------------------------------------------------------------------


def percent(log: float) -> str:
    return f"{100 * math.expm1(log):+.1f}"


def page(found: dict[str, Json]) -> str:
    """The tables, from what was kept of each setting."""
    lines = ["| setting | task | foretold % (95 %) | by weights % | measured % (95 %) |", "|---|---|--:|--:|--:|"]
    for name, one in found.items():
        for row in one["tasks"]:
            cells = [f"{percent(log)} ({percent(low)} to {percent(high)})"
                     for log, low, high in (row["predicted"], row["measured"])]  # fmt: skip
            lines.append(f"| {name} | `{row['task']}` | {cells[0]} | {percent(row['weights'])} | {cells[1]} |")
    lines += ["", "| setting | " + " | ".join(RULES) + " |", "|---|" + "--:|" * len(RULES)]
    for name, one in found.items():
        cells = [percent(one["paths"][path]) if path in one["paths"] else "" for path in RULES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| points | n | rank correlation (95 %) | slope (95 %) | error, % | if nothing were foretold, % |",
              "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    lines += [summary(what, chosen) for what, chosen in point_sets(found).items()]
    lines += ["", "| task | " + " | ".join(RULES) + " |", "|---|" + "--:|" * len(RULES)]
    base = found.get("nothing", next(iter(found.values())))
    for row in base["tasks"]:
        total = sum(row["paths"].values())
        lines.append(shares(row, total))
    return "\n".join(lines) + "\n"


def shares(row: Json, total: float) -> str:
    cells = " | ".join(f"{100 * row['paths'][path] / total:.1f}" for path in RULES)
    return f"| `{row['task']}` | {cells} |"


def point_sets(found: dict[str, Json]) -> dict[str, list[Point]]:
    """Points by what they are of; the quota is left out of a set too: one large change can make a correlation alone."""
    whole = [Point(name, row["task"], row["predicted"][0], row["measured"][0])
             for name, one in found.items() for row in one["tasks"]]  # fmt: skip
    weighed = [Point(name, row["task"], row["weights"], row["measured"][0])
               for name, one in found.items() for row in one["tasks"]]  # fmt: skip
    kinds = [Point(name, *point) for name, one in found.items() for point in one["kinds"]]
    sets = {"tasks": whole, "tasks, by weights": weighed, "kinds of steps": kinds}
    without = {f"{what}, without the quota": [one for one in points if "quota" not in one.group]
               for what, points in sets.items()}  # fmt: skip
    return sets | without


def summary(what: str, chosen: list[Point]) -> str:
    found = agreement(chosen)
    if found["reason"]:
        return f"| {what} | {found['points']} | {found['reason']} | | | |"
    cells = [f"{one['value']:.2f} ({one['low']:.2f} to {one['high']:.2f})" if one["low"] is not None
             else "-" if one["value"] is None else f"{one['value']:.2f}"
             for one in (found["rank"], found["slope"])]  # fmt: skip
    return (f"| {what} | {found['points']} | {cells[0]} | {cells[1]} | {100 * found['error']:.1f} | "
            f"{100 * found['unpredicted']:.1f} |")  # fmt: skip


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--child"]:
        child(json.loads(Path(arguments[1]).read_text()))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", metavar="SETTING", help=f"of {'; '.join(SETTINGS)}")
    parser.add_argument("--keep", type=Path, help="JSON file that points are added to")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from what was kept")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a setting; two pairs at least")
    asked = parser.parse_args(arguments)
    found: dict[str, Json] = json.loads(asked.keep.read_text()) if asked.keep and asked.keep.exists() else {}
    if not asked.page:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # groups, folders and children are given back
        from cpubench.measure.folder import host_lock

        with host_lock(), tempfile.TemporaryDirectory(dir="/dev/shm") as fast, tempfile.TemporaryDirectory() as disk:
            made = bench(Path(fast), Path(disk))
            for name in asked.settings or SETTINGS:
                began = time.monotonic()
                try:
                    found[name] = measured(name, made, asked.seconds)
                except (NotMeasured, OSError) as error:  # a group that may not be made, a tool that failed
                    print(f"{name}: not measured: {error}", flush=True)
                    continue
                print(f"{name}: {found[name]['pairs']} pairs, {time.monotonic() - began:.0f} s", flush=True)
                if asked.keep:
                    asked.keep.write_text(json.dumps(found))
    if not asked.keep or asked.page:
        text, _, _ = FILE.read_text().partition(MARK)
        ordered = {name: found[name] for name in SETTINGS if name in found}
        FILE.write_text(text + MARK + page(ordered))


if __name__ == "__main__":
    main(sys.argv[1:])
