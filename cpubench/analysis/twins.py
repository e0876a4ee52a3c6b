"""Two variants that were measured in the same blocks: their difference, pass by pass.

What a moment of the host does to both cancels in a round: of labels of one kernel on a busy virtual machine the
half-width was 7 to 20 times smaller by rounds than by samples one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array
from cpubench.analysis.estimates import Estimate, bounded_exp, ends, of_passes
from cpubench.results.records import Block, Cell

CONTROL = ("test_work[steps=1000]@1", "test_work[steps=1000,again]@1")  # one kernel, measured under two labels


def log_times(blocks: Sequence[Block], a: str, b: str) -> Array:
    """Log of b's time per operation over a's, both keys of variants: per pass the median over its rounds.

    NaN where a pass has no round in which both succeeded.
    """
    return np.array([_of_block(block, a, b) for block in blocks])


def difference(blocks: Sequence[Block], a: str, b: str) -> Estimate | None:
    """Log of b's time over a's as the mean over the passes that have both; None where fewer than eight have."""
    logs = log_times(blocks, a, b)
    there = logs[~np.isnan(logs)]
    return of_passes(there) if len(there) >= MIN_PASSES else None


def floor_percent(blocks: Sequence[Block]) -> float | None:
    """The A/A floor of blocks of one level, a pass each: the larger absolute end, in per cent, of the 95 % interval of
    the control kernel's difference from itself. None where fewer than eight passes have both of its labels.

    Absolute in logs, as bands are: -2 % is 1 / 1.02. What moves one label and not the other is neither of the kernel.
    """
    found = difference(blocks, *CONTROL)
    if found is None:
        return None
    low, high = (abs(float(end)) for end in ends(found))
    return 100 * (bounded_exp(max(low, high)) - 1)


def _of_block(block: Block, a: str, b: str) -> float:
    cells = {cell.key: cell for cell in block.cells}
    if a not in cells or b not in cells:
        return math.nan
    one, other = _rounds(cells[a]), _rounds(cells[b])
    logs = [other[number] - one[number] for number in one if number in other]
    return median(logs) if logs else math.nan


def _rounds(cell: Cell) -> dict[int, float]:
    """Log of the time per operation by round."""
    samples = zip(cell.samples.round, cell.samples.elapsed_ns, cell.samples.ops, strict=True)
    return {number: math.log(ns / ops) for number, ns, ops in samples if ns and ops}
