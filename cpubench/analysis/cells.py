"""What a cell says in one number, and which blocks of a run count: the one road from raw integers to rates.

No numpy: the exports need it for nothing else.
"""

from __future__ import annotations

import math

from cpubench.results.records import Block, Cell, Pass, Run
from cpubench.results.windows import WindowCell

BASE_CAP = "as-is"  # scores and references come from the passes without a cap
EXTERNAL = "external="  # begins the name of a level that somebody else has set


def blocks_at(run: Run, cap: str) -> list[Block]:
    """The blocks that count at one level, in order of the passes."""
    return [block for one in whole_passes(run) for block in one.blocks if block.cap == cap]


def whole_passes(run: Run) -> list[Pass]:
    """The passes without those that were cut before they had every level."""
    levels = set(run.plan.caps)
    return [one for one in run.passes if {block.cap for block in one.blocks} >= levels]


def measured(cell: Cell | WindowCell) -> bool:
    """True if every copy finished an operation: the samples that succeeded count, whatever failed later.

    Without one of the copies the others had the machine to themselves, which is another quantity.
    """
    return bool(cell.copy_ops) and 0 not in cell.copy_ops and 0 not in cell.copy_elapsed_ns


def ops_per_s(cell: Cell | WindowCell) -> float | None:
    """Operations per second of all copies together; None where one of them finished none."""
    if not measured(cell):
        return None
    return 1e9 * math.fsum(ops / ns for ops, ns in zip(cell.copy_ops, cell.copy_elapsed_ns, strict=True))


def ns_per_op(cell: Cell | WindowCell) -> float | None:
    """ns that an operation of one copy takes; None where one of the copies finished none."""
    return sum(cell.copy_elapsed_ns) / sum(cell.copy_ops) if measured(cell) else None
