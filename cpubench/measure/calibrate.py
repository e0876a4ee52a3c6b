"""How many operations a sample of each variant takes, found once per run in a throw-away process.

``python -I -m cpubench.measure.calibrate`` with the draft of the plan, the file to write, and the rest
as for a block.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.measure import copies as pool
from cpubench.measure.inside import serve

LIMIT_NS = 3_000_000_000  # per variant: "until two runs agree" never ends on a busy machine
BATCHES = 50  # of one window: the stop is then met within 2 % and a clock reading stays below 0.1 %
# Of a window, however slow an operation is. Kernels with hooks do fewer: a window is ten operations of timed time and
# ends by the wall, with before() and after() in it (spawn_reap does 2.9, file_tree_delete 3.9, file_tree_copy 7.8).
FEWEST_OPS = 10


def one_copy(ask: Any, target_ns: int, max_ops: int) -> tuple[int, float] | None:
    """(operations, ns per operation) of a batch that lasts ``target_ns``, or None where a sample failed.

    It is shorter where a batch may have ``max_ops`` at most (0: any number): of spawn_reap 7.5 ms in place of 20.

    ``ask(ops)`` gives a batch's nanoseconds. Grows at most tenfold, and believes a size only when two batches in a row
    reach the target, a single slow operation included: one may have been cold, or interrupted (nanobench: 86 us of
    interrupt made 14 us look long enough).
    """
    ops, crossed, spent, best_ns = 1, 0, 0.0, 0.0
    while True:
        took_ns = ask(ops)
        if took_ns is None:
            return None
        spent += took_ns
        each_ns = max(took_ns, 1) / ops
        crossed = crossed + 1 if took_ns >= target_ns else 0
        best_ns = min(best_ns or each_ns, each_ns) if crossed else each_ns
        if crossed == 2 or spent > LIMIT_NS or (max_ops and ops >= max_ops):
            final = max(1, round(target_ns / best_ns))
            return min(final, max_ops) if max_ops else final, best_ns
        if not crossed:  # of a crossing the same size is tried again
            ops = min(ops * 10, max(ops + 1, round(1.1 * target_ns / each_ns)))
            ops = min(ops, max_ops) if max_ops else ops


def all_copies(ask: Any, target_ns: int, max_ops: int, each_ns: float) -> tuple[int, int, float] | None:
    """(operations per batch, window in ns, ns per operation) with all copies at work, or None where a sample failed.

    ``ask(ops, window_ns)`` gives the mean nanoseconds per operation, hooks apart; ``each_ns`` is the first guess.
    """
    for _ in range(2):
        ops = max(1, round(target_ns / BATCHES / each_ns))
        measured = ask(min(ops, max_ops) if max_ops else ops, target_ns)
        if measured is None:
            return None
        each_ns = measured
    window_ns = max(target_ns, round(FEWEST_OPS * each_ns))
    ops = max(1, round(window_ns / BATCHES / each_ns))
    return min(ops, max_ops) if max_ops else ops, window_ns, each_ns


def calibrate(draft: dict[str, Any], folder: Path) -> dict[str, Any]:
    """{"sizes": {key: [ops, window_ns, ns of a sample with its hooks]}, "errors": {key: reason}, "prepare_ns",
    "floor_ps"}."""
    began_ns = _native.now_ns()
    copies = pool.start(draft, folder, draft["seed"])
    sizes: dict[str, list[int]] = {}
    errors: dict[str, str] = {}
    try:
        pool.prepare(copies)
        prepare_ns = _native.now_ns() - began_ns
        each: dict[int, float] = {}
        for variant in sorted(draft["variants"], key=lambda v: v["copies"] != "1"):
            size = _size(copies, variant, draft["sample_ns"], each)
            if size is None:
                lost = "a copy that was not at work was lost while this was calibrated"
                errors[pool.key(variant)] = copies.errors.get(pool.key(variant), lost)
            else:
                sizes[pool.key(variant)] = size
        pool.release(copies)
        floor = floor_ps(copies)
    finally:
        copies.pool.close()
    return {"sizes": sizes, "errors": errors, "prepare_ns": prepare_ns, "floor_ps": floor}


def _size(copies: pool.Copies, variant: dict[str, Any], target_ns: int, each: dict[int, float]) -> list[int] | None:
    slot, max_ops = copies.slot(variant), copies.kernels[variant["kernel"]]["max_ops"]
    last: list[dict[str, Any]] = []

    def batch(ops: int) -> int | None:
        first = {**variant, "groups": variant["groups"][:1]}
        last[:] = pool.sample(copies, first, ops, 0, 10 * LIMIT_NS, 2 * target_ns) or []
        return last[0]["elapsed_ns"] if last else None

    def window(ops: int, window_ns: int) -> float | None:
        last[:] = pool.sample(copies, variant, ops, window_ns, 10 * LIMIT_NS, 2 * window_ns) or []
        return sum(a["elapsed_ns"] for a in last) / sum(a["ops"] for a in last) if last else None

    if slot not in each or variant["copies"] == "1":
        one = one_copy(batch, target_ns, max_ops)
        if one is None:
            return None
        each[slot] = one[1]
        if variant["copies"] == "1":
            return [one[0], 0, round(_takes_ns(last) * one[0] / last[0]["ops"])]
    many = all_copies(window, target_ns, max_ops, each[slot])
    return None if many is None else [many[0], many[1], _takes_ns(last)]


def _takes_ns(answers: list[dict[str, Any]]) -> int:
    """What a sample takes as a whole, with what its hooks do outside the clock."""
    spans: list[int] = [max(a["t1_ns"] - a["t0_ns"], a["hook_ns"] + a["elapsed_ns"]) for a in answers]
    return max(spans)


def floor_ps(copies: pool.Copies) -> int | None:
    """Picoseconds of an operation that does nothing: what the loop around every kernel's work costs at least.

    None where a copy was lost over it.
    """
    slot, ops, empty = len(copies.slots), 3_000_000, copies.kernels["test_work"]["number"]
    try:
        copies.pool.prepare(slot, empty, 0, 0, [(0, [copies.pool.seats[0][0]])])
        taken: list[int] = [copies.pool.sample(slot, [0], ops, 0, LIMIT_NS)[0]["elapsed_ns"] for _ in range(5)]
        copies.pool.release(slot)
    except (OSError, _native.CopyLost):
        return None
    return min(taken) * 1000 // ops


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], lambda draft, _, folder, __: calibrate(draft, folder)))
