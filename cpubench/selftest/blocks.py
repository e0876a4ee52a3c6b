"""Single blocks of a plan that is made of another: the control kernel with some copies, and nothing else."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cpubench.analysis.separable import BASE
from cpubench.measure.calibrate import BATCHES
from cpubench.measure.child import Installed, run_child
from cpubench.measure.draft import Options, draft
from cpubench.measure.folder import make, write_json
from cpubench.measure.plan import BLOCK_OVERHEAD_NS, SAMPLE_OVERHEAD_NS
from cpubench.measure.profiles import SAMPLE_NS
from cpubench.measure.sides import CAP
from cpubench.results.load import load_block
from cpubench.results.names import row_key, split_key
from cpubench.results.records import Block, Copies, Plan


@dataclass(frozen=True)
class Settings:
    """How much a self-test measures."""

    rounds: int = 8  # of the twins, in a block
    passes: int = 30  # of the twins, at least
    most_passes: int = 1000
    pairs: int = 4  # of windows, free and under the quota
    samples: int = 15  # before each window: 0.3 s, three periods of a quota
    settle_ns: int = 500_000_000
    length_ns: int = 1_500_000_000  # of a window
    contended_pairs: int = 2  # of blocks, alone and beside a busy process
    contended_samples: int = 50


def rounds_ns(samples: int) -> int:
    """Nanoseconds that a block takes which has so many samples."""
    return samples * (SAMPLE_NS + SAMPLE_OVERHEAD_NS) + BLOCK_OVERHEAD_NS


def control_plan(sized: Plan, copies: Copies, folder: Path, **fields: Any) -> Plan:
    """A plan of the control kernel with these copies, written into ``folder``; its sizes follow from those in
    ``sized``, where it has one copy."""
    ops = next(variant.ops for variant in sized.variants if variant.key == BASE)
    plan, _ = draft(Options("quick", keys=[row_key(split_key(BASE)[0], copies)], seed=sized.seed))
    (variant,) = plan.variants
    sizes = {"ops": ops} if copies == "1" else {"ops": max(1, ops // BATCHES), "window_ns": SAMPLE_NS}
    plan = msgspec.structs.replace(plan, variants=[msgspec.structs.replace(variant, **sizes)], **fields)
    make(folder)
    write_json(folder / "plan.json", msgspec.to_builtins(plan))
    return plan


def measure_block(plan: Plan, index: int, folder: Path, group: Path | None = None) -> Block:
    """A block of the plan that ``folder`` holds; ``group`` is the cgroup.procs of a control group for all of it."""
    file = folder / f"block-{index:03d}-{CAP}.json"
    arguments = [str(folder / "plan.json"), str(index), CAP, str(file)]
    rng = random.Random(f"{plan.seed}:{index}")
    run_child("cpubench.measure.block", arguments, folder, rng, Installed(group=group))
    return load_block(file, plan)


def in_turns(pairs: int) -> list[bool]:
    """Whether each of 2 x ``pairs`` blocks is the disturbed one: no, yes, yes, no, ..: a drift falls on both alike."""
    return [disturbed for pair in range(pairs) for disturbed in ((False, True) if pair % 2 == 0 else (True, False))]
