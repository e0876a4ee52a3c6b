"""Run folders and documents for tests of the vendor report: made-up candidates of which the truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from made import made_environment, made_run, made_variants
from made_watts import made_capped_run

from cpubench.analysis.reference import make_reference
from cpubench.results.files import sealed
from cpubench.results.records import Run, Variant
from cpubench.results.task_records import Spans

EVIL = "<script>alert(1)</script>\"'&amp;]]>$x^{2$\x1b[31m\x00\u202e=cmd|'/c calc'!A1{{7*7}}{%"
# As long as a name of a cap level, meter or scope may be: those are of printable ASCII.
EVIL_NAME = "<script>alert(1)</script>\"'&amp;]]>$x^{2$=cmd|'/c calc'!A1{{7*7}}{%"
FORMULA = '=HYPERLINK("http://evil.example","x")'


def put(folder: Path, document: dict[str, Any], **host: Any) -> Path:
    """The run folder that a document is written to, with these facts of its host."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = sealed({**document, "host": {**document["host"], **host}})
    (folder / "run.json").write_text(json.dumps(whole))
    return folder


def candidate(folder: Path, seed: int, slower: float = 1.0, host: dict[str, Any] | None = None, **made: Any) -> Path:
    """A run of a host of its own."""
    name = f"host{seed}"
    run = made_run(made.pop("passes", 16), seed=seed, slower=slower, host_id=name, **made)
    return put(folder, run, **{"hostname": name, "id": name, "virtual": False, **(host or {})})


CAPS = {"as-is": (1.0, 1.0), "200W": (1.25, 0.6), "150W": (1.6, 0.45)}


def capped(folder: Path, seed: int, slower: float = 1.0, host: dict[str, Any] | None = None, **made: Any) -> Path:
    """A run of a host of its own with a meter and three cap levels; ``slower`` and ``watts`` are of all of them."""
    name = f"host{seed}"
    caps = {cap: (slower * time, watts) for cap, (time, watts) in made.pop("caps", CAPS).items()}
    made = {"variants": watt_variants(), "noise": 0.01, **made}
    run = made_capped_run(made.pop("passes", 12), seed=seed, slower=slower, caps=caps, host_id=name, **made)
    return put(folder, run, **{"hostname": name, "id": name, "virtual": False, **(host or {})})


def tasks_of(folder: Path, host: str, factor: float = 1.0, fields: dict[str, Any] | None = None) -> Path:
    """A ``tasks.json`` in a folder: a bug fix in nine phases and 200 calls, by one agent, and eight agents at once."""
    steps = ["fs.copy", "env.setup", "deps.install", "build", "explore", "snippet", "edit", "test", "teardown"]
    times = [0.28, 0.05, 0.3, 0.59, 1.06, 0.22, 0.16, 1.34, 0.07]
    calls = {"sql": 1.1, "csv": 0.9, "http": 0.4}
    rows = [
        _task("T1[verify-heavy,light]", "T1", dict(zip(steps, times, strict=True)), factor),
        _task("T1[read-heavy,light]", "T1", dict(zip(steps, reversed(times), strict=True)), factor),
        _task("T2[process]", "T2", calls, factor),
    ]
    document = sealed({
        "schema": "cpubench.tasks/1", "cpubench": "0.1.0", "suite": "tasks-1", "created_utc": "2026-01-03T00:00:00Z",
        "profile": "quick", "estimate": True, "seed": 1, "think": 1.0, "cpus": [0, 1],
        "divisor": {"kind": "vcpu", "n": 2}, "host": {"hostname": host, "id": host},
        "programs": {"cc": {"version": "gcc 12"}}, "missing": {}, "file_system": {"file_system": "ext4"},
        "inputs_sha256": "0" * 64, "tasks": rows, "stopped": "done", "notes": [], **(fields or {}),
    })  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.json").write_text(json.dumps(document))
    return folder


def _task(name: str, task: str, phases: dict[str, float], factor: float) -> dict[str, Any]:
    steps = [{"label": f"{phase}.1", "kind": phase, "phase": phase, "pythons": 1, "shells": 0} for phase in phases]
    repeats = [_repeat(at, list(phases.values()), factor * (1 + at / 50)) for at in range(3)]
    return {"name": name, "task": task, "params": [], "tools": [], "agents": 1, "version": 1, "skipped": None,
            "steps": steps, "repeats": repeats}  # fmt: skip


def _repeat(index: int, seconds: list[float], factor: float) -> dict[str, Any]:
    walls = [round(one * factor * 1e9) for one in seconds]
    spans = {name: [0] * len(walls) for name in Spans.__struct_fields__}
    spans |= {
        "step": list(range(len(walls))), "wall_ns": walls, "start_ns": [sum(walls[:at]) for at in range(len(walls))],
        "user_us": [wall // 2000 for wall in walls], "background": [False] * len(walls),
    }  # fmt: skip
    return {"index": index, "wall_ns": sum(walls), "window_ns": 0, "harness_us": 1000, "tools_us": sum(walls) // 2000,
            "failures": [], "leftovers": [], "unknown": [], "ready_ns": 0, "pressure": None, "memory_low_bytes": None,
            "environment": made_environment(), "spans": spans}  # fmt: skip


def reference_of(folder: Path, variants: list[Variant] | None = None) -> Path:
    """The file of a reference on which made-up runs have about 1000 points; ``variants`` are those of its run."""
    document = make_reference(msgspec.convert(made_run(8, noise=0, variants=variants), Run), "made")
    file = folder / "reference.json"
    file.write_text(json.dumps(document))
    return file


def watt_variants() -> list[Variant]:
    """The shown variants with a scored row of locks that has no untimed work: every family has watts."""
    variants = shown_variants()
    locks = [v for v in variants if v.kernel == "lock_mutex" and v.scored]
    return variants + [msgspec.structs.replace(v, kernel="lock_rwlock", params="readers") for v in locks]


def shown_variants() -> list[Variant]:
    """The usual made-up variants with a latency ladder, a curve over threads and a matrix of pairs."""
    variants = made_variants()
    chase = next(v for v in variants if v.kernel == "mem_chase" and v.copies == "1")
    sizes = {f"set={kib}K,shown": kib << 10 for kib in (8, 64, 512, 4096)}
    made = [msgspec.structs.replace(chase, params=label, value=size, scored=False) for label, size in sizes.items()]
    lock = next(v for v in variants if v.kernel == "lock_mutex" and v.copies == "1")
    for kernel, labels in (("lock_all", ("threads=1", "threads=2")), ("lock_line", ("cpus=0-1", "cpus=0-2"))):
        made += [msgspec.structs.replace(lock, kernel=kernel, params=label, scored=False) for label in labels]
    return variants + made
