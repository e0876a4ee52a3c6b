"""Made-up runs: the records of a run that never happened, for tests of everything behind the measurement."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cpubench.analysis.widths import headline_half_width
from cpubench.measure.plan import stop
from cpubench.results import records as r
from cpubench.results.files import canonical, sealed
from cpubench.results.orders import orders

# kernel -> (family, params, scored, ns per operation on the made-up machine, copies' layout)
KERNELS: dict[str, tuple[str, list[tuple[str, bool, float]]]] = {
    "spawn_fork_exec": ("spawn", [("rss=8M", False, 4e5), ("rss=384M", True, 2.4e7)]),
    "file_create": ("file", [("", True, 3e4)]),
    "switch_pipe": ("switch", [("place=same", True, 4e3), ("place=other", True, 9e3)]),
    "lock_mutex": ("lock", [("cs=200ns", True, 5e2), ("cs=2us", False, 2.1e3)]),
    "mem_chase": ("memory", [("set=16K", True, 1.5), ("set=256M", True, 110.0), ("set=1M", False, 5.0)]),
}
SAMPLE_NS = 20_000_000


def made_variants(cpus: int = 2) -> list[r.Variant]:
    """Scored variants with copies 1 and cores, shown ones with copies 1, on ``cpus`` single-threaded cores."""
    made = []
    for kernel, (family, rows) in KERNELS.items():
        pair = kernel.startswith("lock") or kernel == "switch_pipe"
        for index, (params, scored, ns) in enumerate(rows):
            width = 2 if pair and params != "place=same" else 1
            layout = [list(range(c, c + width)) for c in range(0, cpus - width + 1, width)]
            for copies, groups in (("1", layout[-1:]), ("cores", layout)):
                if copies == "cores" and not scored:
                    continue
                made.append(
                    r.Variant(
                        kernel=kernel, family=family, params=params, copies=copies, scored=scored, version=1,
                        unit="operation", flags=["blocking"], index=index, value=0, groups=groups,
                        divisor=len(groups) * width, held_bytes=0, ops=max(1, round(SAMPLE_NS / ns)),
                        window_ns=0 if copies == "1" else SAMPLE_NS,
                    )
                )  # fmt: skip
    return made


def made_controls() -> list[r.Variant]:
    """The control kernel under its two labels, on one CPU."""
    return [
        r.Variant(
            kernel="test_work", family="control", params=params, copies="1", scored=False, version=3, unit="call",
            flags=["hidden"], index=index, value=1000, groups=[[0]], divisor=1, held_bytes=0, ops=SAMPLE_NS // 5000,
        )
        for index, params in enumerate(("steps=1000", "steps=1000,again"), 1)
    ]  # fmt: skip


def made_wide_variants(cpus: int = 256, rows: int = 40) -> list[r.Variant]:
    """``rows`` scored rows in five families, each with copies 1 and cores: the size of a real plan on a big host."""
    families = ["spawn", "file", "switch", "lock", "memory"]
    made = []
    for row in range(rows):
        family, ns = families[row % 5], 1000 * (row + 1)
        for copies, groups in (("1", [[0]]), ("cores", [[c] for c in range(cpus)])):
            made.append(
                r.Variant(
                    kernel=f"{family}_wide{row:02d}", family=family, params=f"ns={ns}", copies=copies, scored=True,
                    version=1, unit="operation", flags=[], index=0, value=ns, groups=groups, divisor=len(groups),
                    held_bytes=0, ops=SAMPLE_NS // ns, window_ns=0 if copies == "1" else SAMPLE_NS,
                )
            )  # fmt: skip
    return made


def true_ns(variant: r.Variant) -> float:
    """ns per operation of one copy before noise."""
    if variant.kernel not in KERNELS:
        return float(variant.params.removeprefix("ns=")) if variant.params.startswith("ns=") else 5000.0
    return next((ns for params, _, ns in KERNELS[variant.kernel][1] if params == variant.params), 5000.0)


def made_cell(variant: r.Variant, samples: int, factor: float) -> dict[str, Any]:
    """``factor`` multiplies the time of an operation."""
    ops = variant.ops or max(1, round(SAMPLE_NS / true_ns(variant)))  # one batch; its time carries the factor
    exact = round(ops * true_ns(variant) * factor)
    elapsed = exact * len(variant.groups)
    columns = {name: [0] * samples for name in msgspec.structs.asdict(_EMPTY)}
    columns |= {
        "round": list(range(samples)), "wall_ns": [exact] * samples, "ops": [ops * len(variant.groups)] * samples,
        "elapsed_ns": [elapsed] * samples, "cpu_ns": [elapsed] * samples, "overlap_ppm": [1_000_000] * samples,
    }  # fmt: skip
    return {
        "kernel": variant.kernel, "params": variant.params, "copies": variant.copies,
        "obtained": {"cpus": variant.groups}, "samples": columns, "prepare_ns": 1000, "error": None,
        "copy_ops": [ops * samples] * len(variant.groups),
        "copy_elapsed_ns": [exact * samples] * len(variant.groups),
    }  # fmt: skip


def made_times(cells: list[dict[str, Any]], index: int = 0) -> dict[str, int]:
    """The times of a block of this pass that took a second beside its samples."""
    timed_ns = sum(sum(cell["samples"]["wall_ns"]) for cell in cells)
    return {"start_utc_ns": 1000 * index, "ready_ns": 1, "prepare_ns": 1, "rounds_ns": timed_ns + 10**9,
            "timed_ns": timed_ns, "hook_ns": 0, "clock_read_ns": 30}  # fmt: skip


_EMPTY = r.Samples(**{name: [] for name in r.Samples.__struct_fields__})


def made_environment(**moved: int) -> dict[str, Any]:
    """A second in which nothing of somebody else happened, but for the counters that ``moved``."""
    now = {"t_ns": 10**9, "freq_khz": [], "runnable": 1, "online": "0-1", "allowed": "0-1"}
    before = dict.fromkeys(r.Snapshot.__struct_fields__, 0) | now
    after = {**before, "t_ns": 2 * 10**9}
    return {"before": before, "after": after | moved, "busiest": [], "reasons": {}}


def made_run(
    passes: int = 16, *, cpus: int = 2, seed: int = 0, noise: float = 0.02, slower: float = 1.0, samples: int = 2,
    variants: list[r.Variant] | None = None, factors: dict[str, float] | None = None,
    moments: tuple[int, float] = (0, 0.0),
    environment: Callable[[int], dict[str, Any]] = lambda index: made_environment(), **plan: Any,
) -> dict[str, Any]:  # fmt: skip
    """A whole, sealed run document; every cell of a pass shares half of the log-normal ``noise`` of that pass.

    ``factors`` multiply the time of an operation, by a variant's key, its name or its kernel; ``environment`` makes
    the evidence of each pass. ``moments`` are seed and size of what the host did in each pass beside that: runs with
    the same seed were measured in turns.
    """
    rng, moment = random.Random(seed), random.Random(moments[0])

    def factor(v: r.Variant) -> float:
        return math.prod((factors or {}).get(name, 1.0) for name in {v.key, v.name, v.kernel})

    variants = made_variants(cpus) if variants is None else variants
    the_plan = r.Plan(**{
        "id": f"made-{seed}", "created_utc": "2026-01-02T03:04:05Z", "cpubench": "0.1.0", "suite": 1,
        "build": {"compiler": "gcc 12", "flags": "-O2", "copy_sha256": "0" * 64}, "host_id": "made", "seed": seed,
        "profile": "quick", "target_ppm": 20_000, "min_passes": 12, "max_passes": 60, "budget_ns": 0,
        "samples": samples, "sample_ns": SAMPLE_NS, "cpus": list(range(cpus)),
        "divisor": r.Divisor(kind="vcpu", n=cpus), "llc_bytes": 32 << 20, "caps": ["as-is"], "variants": variants,
        "skipped": [], "windows": [], "predicted_pass_ns": 10**9, **plan,
    })  # fmt: skip
    blocks = []
    for index in range(passes):
        shared = rng.gauss(0, noise / math.sqrt(2)) + moment.gauss(0, moments[1])
        cells = [
            made_cell(v, samples, slower * factor(v) * math.exp(shared + rng.gauss(0, noise / math.sqrt(2))))
            for v in variants
        ]
        blocks.append(sealed({
            "schema": "cpubench.block/1", "plan_id": the_plan.id, "index": index, "cap": "as-is",
            "times": made_times(cells, index), "environment": environment(index), "cells": cells, "windows": [],
            "rounds": orders(msgspec.to_builtins(the_plan), index, "as-is"),
        }))  # fmt: skip
    return sealed({
        "schema": "cpubench.run/1", "plan": msgspec.to_builtins(the_plan),
        "host": {"hostname": "made", "cpu_model": "made CPU", "id": the_plan.host_id},
        "imported": {"numpy": "2"}, "passes": [{"index": b["index"], "blocks": [b]} for b in blocks],
        "stopped": {"by": "target", "passes": passes, "half_width_ppm": 20_000}, "notes": [],
    })  # fmt: skip


def truthful(document: dict[str, Any], by: str | None = None) -> dict[str, Any]:
    """The document with the half-width that its blocks have, and an end that its plan gives it; sealed."""
    run = msgspec.convert(document, r.Run)
    width = headline_half_width(run.plan, [one.blocks[0] for one in run.passes])
    by = by or stop(run.plan, len(run.passes), width, 0, 0) or "interrupted"
    ppm = None if width is None else round(width * 1e6)
    return sealed(document | {"stopped": {"by": by, "passes": len(run.passes), "half_width_ppm": ppm}})


def written(folder: Path, document: dict[str, Any]) -> Path:
    """A run folder with the files that hold the document and its parts."""
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(canonical(document))
    (folder / "plan.json").write_bytes(canonical(document["plan"]))
    for one in document["passes"]:
        for block in one["blocks"]:
            (folder / f"block-{one['index']:03}-{block['cap']}.json").write_bytes(canonical(block))
    return folder
