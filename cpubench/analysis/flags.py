"""Badges of blocks: what the counters around it say against it."""

from __future__ import annotations

from enum import Enum

from cpubench.results.records import Block, Plan


class Flag(Enum):
    """A badge by its code."""

    CONTENDED = "contended"


def block_flags(plan: Plan, block: Block) -> list[Flag]:
    """The flags of a block."""
    before, after = block.environment.before, block.environment.after
    if before is None or after is None or before.others_ns is None or after.others_ns is None:
        return []
    share = (after.others_ns - before.others_ns) / max(1, (after.t_ns - before.t_ns) * len(plan.cpus))
    return [Flag.CONTENDED] if share > 0.05 else []
