"""What the types of windows and logs cannot say. Each function returns None or raises a UsageError with the place."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UnsetType

from cpubench.errors import UsageError
from cpubench.results import records as r
from cpubench.results.names import row_name
from cpubench.results.parse import check_depth
from cpubench.results.windows import Limits, PowerLog, WindowCell, WindowResult

MOST_NS = 2**62  # sums of two times stay numbers that every reader takes


def check_power(plan: r.Plan, place: str) -> None:
    """None if the cap levels of a plan are those of its power, in their order, and its log is one."""
    power = plan.powered
    if power is None:
        return
    names = [level.name for level in power.levels]
    if names and names != plan.caps:
        raise UsageError("cap", "the levels of the power are not those of the plan", f"{place}.power.levels")
    if not isinstance(power.idle, UnsetType):
        check_log(power.idle, f"{place}.power.idle")


def check_windows(block: r.Block, plan: r.Plan | None, place: str) -> None:
    """None if each window is one of the plan, its cells are rows of the plan once, and its log is one."""
    rows = None if plan is None else {(v.kernel, v.params, v.copies): v for v in plan.variants}
    families = None if plan is None else [window.family for window in plan.windows]
    for number, window in enumerate(block.windows):
        here = f"{place}windows[{number}]"
        _check_times(window, here)
        if not isinstance(window.log, UnsetType):
            check_log(window.log, f"{here}.log")
        seen: set[tuple[str, str]] = set()
        for at, cell in enumerate(window.cells):
            where = f"{here}.cells[{at}]"
            name = row_name(cell.kernel, cell.params)
            if (cell.kernel, cell.params) in seen:
                raise UsageError("twice", f"a row is twice in the window: {name}", where)
            seen.add((cell.kernel, cell.params))
            check_depth(cell.obtained, f"{where}.obtained")
            variant = None if rows is None else rows.get((cell.kernel, cell.params, "cores"))
            if rows is not None and variant is None:
                raise UsageError("variant", f"{name} is not in the plan with copies on all cores", where)
            _check_copies(cell, variant, where)
    if families is not None and block.windows and [w.family for w in block.windows] != families:
        raise UsageError("window", "the windows are not those of the plan", f"{place}windows")
    if not isinstance(block.limits, UnsetType):
        check_limits(block.limits, f"{place}limits")


def _check_times(window: WindowResult, place: str) -> None:
    if window.t1_ns < window.t0_ns or window.t1_ns > MOST_NS:
        raise UsageError("times", f"from {window.t0_ns} to {window.t1_ns}", place)
    for at, cell in enumerate(window.cells):
        if cell.copy_ops and not window.t0_ns <= cell.t0_ns <= cell.t1_ns <= window.t1_ns:
            text = f"from {cell.t0_ns} to {cell.t1_ns}, in a window from {window.t0_ns} to {window.t1_ns}"
            raise UsageError("times", text, f"{place}.cells[{at}]")


def _check_copies(cell: WindowCell, variant: r.Variant | None, place: str) -> None:
    copies = len(cell.copy_ops)
    if len(cell.copy_elapsed_ns) != copies:
        text = f"copy_elapsed_ns has {len(cell.copy_elapsed_ns)} values for {copies} copies"
        raise UsageError("length", text, f"{place}.copy_elapsed_ns")
    if variant is not None and copies and copies != len(variant.groups):
        raise UsageError("length", f"{copies} copies, planned are {len(variant.groups)}", f"{place}.copy_ops")
    for at, (ops, elapsed_ns) in enumerate(zip(cell.copy_ops, cell.copy_elapsed_ns, strict=True)):
        if ops and not elapsed_ns:
            raise UsageError("zero_time", f"{ops} operations in no time", f"{place}.copy_elapsed_ns[{at}]")
        if elapsed_ns > cell.t1_ns - cell.t0_ns:
            text = f"{elapsed_ns} ns of a copy in {cell.t1_ns - cell.t0_ns} ns"
            raise UsageError("elapsed", text, f"{place}.copy_elapsed_ns[{at}]")


def check_log(log: PowerLog, place: str) -> None:
    """None if each reading has a time, a value and a code for each channel, whose names are there once."""
    if len({channel.id for channel in log.channels}) != len(log.channels):
        raise UsageError("twice", "a channel is there twice", f"{place}.channels")
    for at, reading in enumerate(log.readings):
        if any(len(column) != len(log.channels) for column in reading):
            raise UsageError("length", f"not {len(log.channels)} values", f"{place}.readings[{at}]")
        if any(t_ns > MOST_NS for t_ns in reading[0]):
            raise UsageError("times", "a time beyond any clock", f"{place}.readings[{at}]")
    if not isinstance(log.clock, UnsetType) and any(t_ns > MOST_NS for tie in log.clock for t_ns in tie):
        raise UsageError("times", "a time beyond any clock", f"{place}.clock")


def check_limits(limits: Limits, place: str) -> None:
    """None if what the registers held is told of those that were asked, and of no others."""
    for name, held in (("steps", limits.steps), ("before", limits.before), ("after", limits.after)):
        if held.keys() != limits.asked.keys():
            raise UsageError("limits", "are not of the registers that were asked", f"{place}.{name}")


def count_as_found(placed: Sequence[tuple[str, r.Block]]) -> None:
    """For ``validate``: None if the limits around blocks without a cap, given with their places, are the same."""
    first: tuple[str, Limits] | None = None
    for place, block in placed:
        if isinstance(block.limits, UnsetType):
            continue
        first = first or (f"{place}.limits.asked", block.limits)
        if changed := first[1].unlike(block.limits.asked):
            raise UsageError("limits", f"are not those of {first[0]}: {'; '.join(changed)}", f"{place}.limits.asked")


def count_windows(block: r.Block, plan: r.Plan, capped: bool, place: str) -> None:
    """For ``validate``: None if a block of a run with a meter or caps has all its windows, whole batches in them, and
    under a cap nothing else."""
    if plan.powered is None:
        return
    if [window.family for window in block.windows] != [window.family for window in plan.windows]:
        raise UsageError("window", "lacks windows of the plan", f"{place}.windows")
    if capped and (block.cells or block.rounds):
        raise UsageError(
            "rounds", "under a cap there are no rounds: a sample lives on what its neighbours saved", place
        )
    if (len(plan.caps) > 1 or plan.powered.cap_scope) and isinstance(block.limits, UnsetType):
        raise UsageError("limits", "nobody looked at the limits around this block", f"{place}.limits")
    batches = {(v.kernel, v.params): v.ops for v in plan.variants if v.copies == "cores"}
    for number, window in enumerate(block.windows):
        for at, cell in enumerate(window.cells):
            _check_batches(cell.copy_ops, batches.get((cell.kernel, cell.params), 0),
                           f"{place}.windows[{number}].cells[{at}].copy_ops")  # fmt: skip


def _check_batches(ops: Sequence[int], batch: int, place: str) -> None:
    for at, done in enumerate(ops):
        if done and (not batch or done % batch):
            raise UsageError("ops", f"{done} operations in batches of {batch}", f"{place}[{at}]")
