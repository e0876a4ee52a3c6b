"""One block: a fresh process that measures rounds of a plan. ``python -I -m cpubench.measure.block`` with the plan's
file, the pass, the cap, what a run with watts or caps tells it (other runs nothing), the block's file, a scratch
folder, the nanosecond at which it was started, and the parent.

It imports the extension and the standard library only: numpy would start threads, and pytest half a second.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.host.idle import idle_usage
from cpubench.host.noise import environment, snapshot
from cpubench.measure import copies as pool
from cpubench.measure import programs
from cpubench.measure.inside import BlockFailed, serve
from cpubench.measure.window import held, limits, measure_window, measured_in, meter, settled
from cpubench.results.files import sealed
from cpubench.results.orders import orders

SUMS = ("ops", "elapsed_ns", "hook_ns", "cpu_ns", "run_delay_ns", "nvcsw", "nivcsw", "minflt", "majflt")
# A kernel without CONFIG_SCHED_INFO, or no /proc, has no such file; the copies then read 0.
RUN_DELAY_TOLD = os.access("/proc/self/schedstat", os.R_OK)
HUGE_PAGES_TOLD = os.access("/proc/self/smaps", os.R_OK)  # the copies read 0 then too
BASE_CAP = "as-is"  # analysis has numpy, which a block does without
COLUMNS = ("round", "wall_ns", *SUMS, "moved", "overlap_ppm", "cpu_first", "cpu_last")


def times(plan: dict[str, Any], variant: dict[str, Any], window_ns: int = 0) -> tuple[int, int]:
    """When a sample counts as hung, long after a machine twenty times slower would have ended it, and until when nobody
    looks after it: twice its length, for what warms it up."""
    length_ns = max(window_ns, int(variant["window_ns"]), int(plan["sample_ns"]))
    return 5_000_000_000 + 20 * length_ns, 2 * length_ns


def empty_cell(variant: dict[str, Any]) -> dict[str, Any]:
    n = len(variant["groups"])
    return {"kernel": variant["kernel"], "params": variant["params"], "copies": variant["copies"], "obtained": {},
            "samples": {name: [] for name in COLUMNS}, "copy_ops": [0] * n, "copy_elapsed_ns": [0] * n,
            "prepare_ns": None, "error": None}  # fmt: skip


def add_sample(cell: dict[str, Any], number: int, answers: list[dict[str, Any]]) -> int:
    """Adds one sample to its cell and returns its wall time in nanoseconds, first start to last end."""
    first, last = min(a["t0_ns"] for a in answers), max(a["t1_ns"] for a in answers)
    shared = max(0, min(a["t1_ns"] for a in answers) - max(a["t0_ns"] for a in answers))
    row = {"round": number, "wall_ns": last - first, "overlap_ppm": shared * 1_000_000 // max(1, last - first)}
    row |= {name: sum(a[name] for a in answers) for name in SUMS}
    row["moved"] = sum(not a["cpu"] == a["cpu_first"] == a["cpu_last"] for a in answers)
    if len(answers) == 1:
        row |= {"cpu_first": answers[0]["cpu_first"], "cpu_last": answers[0]["cpu_last"]}
    if not RUN_DELAY_TOLD:
        del row["run_delay_ns"]  # an empty column: not known, where 0 would say that nobody waited
    for name, value in row.items():
        cell["samples"][name].append(value)
    for i, a in enumerate(answers):
        cell["copy_ops"][i] += a["ops"]
        cell["copy_elapsed_ns"][i] += a["elapsed_ns"]
    return int(last - first)


def obtained(copies: pool.Copies, variant: dict[str, Any]) -> dict[str, Any]:
    """What the variant really had: CPUs, page kind, file system, shell, fairness, the proof of its work."""
    told = [copies.told.get(copies.slot(variant), {}).get(seat) for seat in copies.seats_of(variant)]
    had = [t for t in told if t]
    found: dict[str, Any] = {"cpus": variant["groups"]}
    if instructions := copies.kernels[variant["kernel"]]["instructions"]:
        found["instructions"] = instructions
    if HUGE_PAGES_TOLD and any(t["huge_asked_bytes"] for t in had):
        found["huge_ppm"] = min(t["huge_bytes"] * 1_000_000 // t["huge_asked_bytes"] for t in had)
    if "files" in variant["flags"]:
        found |= copies.scratch
    if "storage" in variant["flags"]:
        found |= copies.storage
    if "shell" in variant["flags"]:
        found |= programs.shell()
    if "group" in variant["flags"]:
        found["thread_ops"] = [t["thread_ops"][: len(g)] for t, g in zip(had, variant["groups"], strict=False)]
    if had:
        found["proven"] = copies.slot(variant) in copies.proven
        found |= {"checksum": f"{had[0]['checksum']:x}", "counter": sum(t["counter"] for t in had)}
    return found


def measure_rounds(
    copies: pool.Copies, plan: dict[str, Any], rounds: list[list[int]]
) -> tuple[list[dict[str, Any]], int]:
    """The cells of all variants, and the nanoseconds spent inside timed samples."""
    cells, timed_ns = [empty_cell(v) for v in copies.variants], 0
    for number, order in enumerate(rounds):
        for i in order:
            variant = copies.variants[i]
            before = _idle(variant)
            answers = pool.sample(copies, variant, variant["ops"], variant["window_ns"], *times(plan, variant))
            if answers:
                timed_ns += add_sample(cells[i], number, answers)
                for state, entries in _idle(variant).items():
                    states = cells[i]["obtained"].setdefault("idle_entries", {})
                    states[state] = states.get(state, 0) + entries - before.get(state, 0)
    return cells, timed_ns


def _check_some_left(copies: pool.Copies) -> None:
    """Raises BlockFailed where no row of a listed kernel got through: that says nothing of them, but of the host."""
    listed = [v for v in copies.variants if "hidden" not in v["flags"]] or copies.variants
    reasons = [copies.errors.get(pool.key(variant)) for variant in listed]
    if all(reasons):
        raise BlockFailed(f"no row got through; the first: {reasons[0]}")


def _idle(variant: dict[str, Any]) -> dict[str, int]:
    """How often the CPU that a latency kernel wakes went into each idle state, where the kernel tells."""
    return idle_usage(variant["groups"][0][-1]) if "latency" in variant["flags"] else {}


def measure(
    plan: dict[str, Any], index: int, cap: str, folder: Path, started_ns: int, told: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The block document, sealed: raw integers of every cell, and where the block's time went. Under a cap it holds
    windows only; ``told`` is what a run with a meter or caps says of them (``measure.entering``)."""
    told = told or {}
    if cap != BASE_CAP:
        plan = plan | {"variants": [v for w in plan["windows"] for v in measured_in(plan["variants"], w["family"])]}
        plan["samples"] = 0
    held_before = held(told) if told.get("limits") else {}
    with meter(told) as sampler:
        block = _measure(plan, index, cap, folder, started_ns, sampler)
    if told.get("limits"):
        block["limits"] = limits(told, held_before)
    return sealed(block)


def _measure(
    plan: dict[str, Any], index: int, cap: str, folder: Path, started_ns: int, sampler: Any
) -> dict[str, Any]:  # fmt: skip
    start_utc_ns = time.time_ns()
    clock_ns = min(_native.clock_read_ns() for _ in range(5))
    copies = pool.start(plan, folder, plan["seed"] + index)
    try:
        ready_ns = _native.now_ns() - started_ns - copies.pool.touch_ns
        before_ns = _native.now_ns()
        pool.prepare(copies)
        prepare_ns = _native.now_ns() - before_ns + copies.pool.touch_ns
        rounds = orders(plan, index, cap)
        before = snapshot(plan["cpus"], os.getsid(0))  # the block's own session: all its copies are in it
        rounds_start_ns = _native.now_ns()
        cells, timed_ns = measure_rounds(copies, plan, rounds)
        rounds_ns = _native.now_ns() - rounds_start_ns
        _check_some_left(copies)
        noise = environment(before, snapshot(plan["cpus"], os.getsid(0)))
        around = snapshot(plan["cpus"], os.getsid(0)) if plan["windows"] else None
        windows = [measure_window(copies, w, partial(times, plan), plan["cpus"], sampler) for w in plan["windows"]]
        if cap != BASE_CAP:
            _check_some_left(copies)
        around = environment(around, snapshot(plan["cpus"], os.getsid(0))) if around is not None else None
        pool.release(copies)
        settled(windows, copies, obtained)
        for cell, variant in zip(cells, plan["variants"], strict=True):
            slot = copies.slot(variant)
            if slot in copies.disproven:  # operations that were not done have no time: the row is its error alone
                cell |= empty_cell(variant)
            cell["obtained"] |= obtained(copies, variant)
            cell["prepare_ns"], cell["error"] = copies.prepare_ns.get(slot), copies.errors.get(pool.key(variant))
    finally:
        copies.pool.close()
    spent = {"start_utc_ns": start_utc_ns, "ready_ns": ready_ns, "prepare_ns": prepare_ns, "rounds_ns": rounds_ns,
             "timed_ns": timed_ns, "hook_ns": sum(sum(c["samples"]["hook_ns"]) // len(c["copy_ops"]) for c in cells),
             "clock_read_ns": -int(-clock_ns // 1)}  # fmt: skip
    block = {"schema": "cpubench.block/1", "plan_id": plan["id"], "index": index, "cap": cap, "times": spent,
             "environment": noise, "rounds": rounds, "cells": cells, "windows": windows}  # fmt: skip
    if cap != BASE_CAP:
        return block | {"environment": around or noise, "cells": []}
    return block | {"around_windows": around} if around is not None else block


def _work(plan: dict[str, Any], own: list[str], folder: Path, started_ns: int) -> dict[str, Any]:
    index, cap, *told = own
    return measure(plan, int(index), cap, folder, started_ns, json.loads(told[0]) if told else None)


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], _work))
