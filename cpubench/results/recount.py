"""What a run says twice must agree: numbers that follow from others, and orders that follow from the seed.

Only for ``validate``: who changes a number and seals the file anew has to change all that hangs on it. A file that
was forged with care is found by its signature alone (``cpubench.results.signature``).
"""

from __future__ import annotations

from itertools import pairwise

from cpubench.errors import UsageError
from cpubench.results import records as r
from cpubench.results.check_windows import count_as_found, count_windows
from cpubench.results.orders import level_order, orders

BASE_CAP = "as-is"


def check_counts(run: r.Run) -> None:
    """None if passes are without a gap, each block measured every variant in the order that the seed draws, its
    times are those of its samples, and limits without a cap stayed as they were found."""
    for at, one in enumerate(run.passes):
        if one.index != at:
            raise UsageError("passes", f"pass {at} is missing: pass {one.index} is in its place", f"passes[{at}]")
        _check_levels(one, run.plan, f"passes[{at}]")
        for place, block in _placed(one, at):
            _check_block(block, run.plan, place)
    every = [each for at, one in enumerate(run.passes) for each in _placed(one, at)]
    _check_clocks(every)
    count_as_found([(place, block) for place, block in every if block.cap == BASE_CAP])


def _placed(one: r.Pass, at: int) -> list[tuple[str, r.Block]]:
    """The blocks of a pass with their places in the file, those that count before those that were set aside."""
    kinds = (("blocks", one.blocks), ("set_aside", one.set_aside))
    return [(f"passes[{at}].{kind}[{number}]", block) for kind, blocks in kinds for number, block in enumerate(blocks)]


def _check_clocks(every: list[tuple[str, r.Block]]) -> None:
    """None if no block stands in two places, and those that count follow each other in time.

    Since the boot, or by the wall clock where the run went on after another boot: not both can go back.
    """
    last: tuple[str, int, int] | None = None
    seen: dict[tuple[int, int], str] = {}
    for place, block in every:
        if block.environment.before is None:
            continue
        boot_ns, utc_ns = block.environment.before.t_ns, block.times.start_utc_ns
        if (first := seen.setdefault((boot_ns, utc_ns), place)) != place:
            raise UsageError("clocks", f"is the block of {first} once more", place)
        if ".set_aside[" in place:
            continue
        if last is not None and boot_ns < last[1] and utc_ns < last[2]:
            raise UsageError("clocks", f"was measured before {last[0]}", place)
        last = (place, boot_ns, utc_ns)


def _check_levels(one: r.Pass, plan: r.Plan, place: str) -> None:
    """None if the levels of a pass follow each other as the seed draws; a pass that was cut may lack some."""
    measured = [block.cap for block in one.blocks]
    if measured != [cap for cap in level_order(plan.seed, plan.caps, one.index) if cap in measured]:
        raise UsageError("levels", "are not in the order that the seed of the plan draws", f"{place}.blocks")


def _check_block(block: r.Block, plan: r.Plan, place: str) -> None:
    capped = plan.powered is not None and block.cap != BASE_CAP
    count_windows(block, plan, capped, place)
    if capped:
        return
    _check_orders(block, plan, place)
    if [cell.key for cell in block.cells] != [variant.key for variant in plan.variants]:
        text = f"{len(block.cells)} cells, which are not those of the {len(plan.variants)} planned variants in order"
        raise UsageError("cells", text, f"{place}.cells")
    for at, (cell, variant) in enumerate(zip(block.cells, plan.variants, strict=True)):
        _check_cell(cell, variant, plan, f"{place}.cells[{at}]")
    _check_times(block, f"{place}.times")


def _check_orders(block: r.Block, plan: r.Plan, place: str) -> None:
    flags = [{"flags": variant.flags} for variant in plan.variants]
    same = len(block.rounds) == plan.samples and block.rounds == orders(
        {"seed": plan.seed, "samples": plan.samples, "variants": flags}, block.index, block.cap
    )
    if not same:
        text = f"are not the rounds that the seed of the plan draws for pass {block.index}"
        raise UsageError("rounds", text, f"{place}.rounds")


def _check_cell(cell: r.Cell, variant: r.Variant, plan: r.Plan, place: str) -> None:
    samples, copies = cell.samples, len(variant.groups)
    if any(a >= b for a, b in pairwise(samples.round)) or (samples.round and samples.round[-1] >= plan.samples):
        text = f"are not rounds of a block of {plan.samples}, each once"
        raise UsageError("rounds", text, f"{place}.samples.round")
    _check_batches(samples.ops, variant, copies, f"{place}.samples.ops")
    _check_batches(cell.copy_ops, variant, 1, f"{place}.copy_ops")
    if cell.obtained.get("cpus") != variant.groups:
        raise UsageError("cpu", "are not the CPUs of the plan", f"{place}.obtained.cpus")
    if "latency" in variant.flags:  # its time is that between stamps, not of the batch
        return
    whole = copies == 1 and not variant.window_ns  # one batch: its time is all of the sample
    for at, (elapsed, wall) in enumerate(zip(samples.elapsed_ns, samples.wall_ns, strict=True)):
        if elapsed > wall * copies or (whole and elapsed != wall):
            text = f"{elapsed} ns of {copies} copies in a sample of {wall} ns"
            raise UsageError("elapsed", text, f"{place}.samples.elapsed_ns[{at}]")


def _check_batches(ops: list[int], variant: r.Variant, copies: int, place: str) -> None:
    """None if operations are those of whole batches: of one for each copy, where no window is filled with them."""
    batch = variant.ops
    for at, done in enumerate(ops):
        one = place.endswith("samples.ops") and not variant.window_ns
        if done and (not batch or done % batch or (one and done != batch * copies)):
            raise UsageError("ops", f"{done} operations of {copies} copies in batches of {batch}", f"{place}[{at}]")


def _check_times(block: r.Block, place: str) -> None:
    """None if the times of the block are the sums of its cells', of which failed ones may have been emptied."""
    timed_ns = sum(sum(cell.samples.wall_ns) for cell in block.cells)
    hook_ns = sum(sum(cell.samples.hook_ns) // max(1, len(cell.copy_ops)) for cell in block.cells)
    failed = any(cell.error is not None for cell in block.cells)
    told = block.times
    if told.timed_ns < timed_ns or (told.timed_ns != timed_ns and not failed):
        raise UsageError("sums", f"{told.timed_ns} ns, and the samples add up to {timed_ns}", f"{place}.timed_ns")
    if told.hook_ns != hook_ns:
        raise UsageError("sums", f"{told.hook_ns} ns, and the samples add up to {hook_ns}", f"{place}.hook_ns")
    if told.rounds_ns < told.timed_ns:
        raise UsageError("sums", f"{told.rounds_ns} ns hold {told.timed_ns} ns of samples", f"{place}.rounds_ns")
