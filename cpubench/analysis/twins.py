"""Two variants that were measured in the same blocks: their difference, pass by pass.

What a moment of the host does to both cancels in a round: of labels of one kernel on a busy virtual machine the
half-width was 7 to 20 times smaller by rounds than by samples one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from cpubench.analysis.composite import Array
from cpubench.results.records import Block, Cell

CONTROL = ("test_work[steps=1000]@1", "test_work[steps=1000,again]@1")  # one kernel, measured under two labels


def log_times(blocks: Sequence[Block], a: str, b: str) -> Array:
    """Log of b's time per operation over a's, both keys of variants: per pass the median over its rounds.

    NaN where a pass has no round in which both succeeded.
    """
    return np.array([_of_block(block, a, b) for block in blocks])


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
