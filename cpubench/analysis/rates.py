"""From the integers of the blocks to rates per pass: arrays over passes, NaN where a pass has no such cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpubench.analysis.cells import blocks_at, measured, ns_per_op, ops_per_s
from cpubench.results.records import Block, Plan, Run, Variant

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """Of each variant by its key: operations per second of all copies, and ns that an operation of a copy takes."""

    passes: int
    ops_per_s: dict[str, Array]
    ns_per_op: dict[str, Array]
    errors: dict[str, str]  # the first reason that a sample of the variant failed with


def run_rates(run: Run, cap: str) -> Rates:
    """The rates of a run at one cap level."""
    return block_rates(run.plan, blocks_at(run, cap))


def block_rates(plan: Plan, blocks: Sequence[Block]) -> Rates:
    """The rates of blocks, one per pass, in their order; of the variants of the plan alone."""
    rates = {v.key: np.full(len(blocks), np.nan) for v in plan.variants}
    times = {v.key: np.full(len(blocks), np.nan) for v in plan.variants}
    errors: dict[str, str] = {}
    for at, block in enumerate(blocks):
        for cell in block.cells:
            key = cell.key
            if key not in rates:
                continue
            if cell.error is not None:
                errors.setdefault(key, cell.error)
            if measured(cell):
                rates[key][at], times[key][at] = ops_per_s(cell), ns_per_op(cell)
    return Rates(len(blocks), rates, times, errors)


def divisors(plan: Plan) -> dict[str, float]:
    """Cores (or vcpus) that the copies of each variant of many occupy; under a quota, the CPUs granted to them.

    A quota binds a variant only where its copies occupy more cores than are granted.
    """
    granted = plan.divisor.n if plan.divisor.kind == "granted_cpu" else math.inf
    return {v.key: min(float(v.divisor), granted) for v in plan.variants if v.copies != "1"}


def scored_names(plan: Plan) -> dict[str, Variant]:
    """One variant of each scored row of the plan, by the row's name (without copies)."""
    return {v.name: v for v in plan.variants if v.scored}
