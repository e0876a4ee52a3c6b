"""Badges of blocks, samples and rows: what was seen beside a number. They remove nothing and change no number.

No numpy: ``validate`` needs it for nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from statistics import median

import msgspec
from msgspec import UnsetType

from cpubench.analysis.cells import BASE_CAP, measured, ns_per_op
from cpubench.errors import UsageError
from cpubench.results.records import Block, Cell, Environment, Plan, Run, Variant

WAITED = 0.01  # of a sample's time: runnable without a CPU
STEAL = 0.005  # of the CPUs' time
CONTENDED = 0.05  # of the CPUs' time, and of the samples' time
OVERLAP_PPM = 900_000
ROW_SHARE = 0.2  # of a row's samples: beyond that its badge is the row's
SUSPENDED_NS = 10_000_000  # two clocks that are read one after the other are never that far apart by themselves
BIMODAL = 0.05
DRIFT, DRIFT_ERRORS, DRIFT_PASSES = 0.02, 3.0, 9


class Flag(Enum):
    """A badge: its value is the code in documents, ``sentence`` says what it means."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Flag:
        flag = object.__new__(cls)
        flag._value_, flag.sentence = code, sentence
        return flag

    # of blocks
    STOLEN = "stolen", "the hypervisor gave more than 0.5 % of the CPUs' time to others"
    QUOTA = "quota", "a CPU quota of the own control groups was used up"
    CONTENDED = "contended", "other processes took more than 5 % of the CPUs' time, or samples waited that long for one"
    HOT = "hot", "the CPU slowed down because of its temperature"
    CAPPED = "capped", "the CPU came to a power limit, and none was set"
    SUSPENDED = "suspended", "the machine slept meanwhile"
    CPUS = "cpus", "CPUs went offline or online meanwhile, or others were allowed"
    CAP_CHANGED = "cap_changed", "a limit did not hold what was set: its windows do not count"
    # of samples; of a row that has them in more than 20 % of its samples
    PREEMPTED = "preempted", "one copy alone, without groups and pairs, waited for its CPU more than 1 % of its time"
    MIGRATED = "migrated", "a copy was not on the CPU that it is pinned to"
    FAULTED = "faulted", "memory was read from the disk"
    SKEWED = "skewed", "its copies ran together for less than 90 % of their time, hooks included"
    # of rows
    DRIFT = "drift", "the last third of the passes differs from the first by more than 2 % and three standard errors"
    BIMODAL = "bimodal", "the mean time of an operation is more than 5 % off the median of the samples"
    NEAR_FLOOR = "near_floor", "an operation takes less than 20 times an empty one: the loop is a part of its time"
    PLATEAU_EDGE = "plateau_edge", "a cache ends within a factor of two of this set"


def block_flags(plan: Plan, block: Block) -> list[Flag]:
    """The flags of a block."""
    return [flag for flag, found in block_verdicts(plan, block).items() if found]


def around_windows(block: Block) -> Environment:
    """What was counted around the windows of a block: around its rounds, where it was not counted apart."""
    return block.environment if isinstance(block.around_windows, UnsetType) else block.around_windows


def window_flags(plan: Plan, block: Block) -> list[Flag]:
    """The flags of what the host did around the windows of a block."""
    if isinstance(block.around_windows, UnsetType):
        return block_flags(plan, block)
    return block_flags(plan, msgspec.structs.replace(block, environment=block.around_windows, cells=[]))


def block_verdicts(plan: Plan, block: Block) -> dict[Flag, bool | None]:
    """Of every flag of blocks whether it is to be raised; None where nobody counted what tells it."""
    delayed = _delayed(plan, block)
    made = environment_verdicts(block.environment, len(plan.cpus))
    made[Flag.CONTENDED] = (delayed is not None and delayed > CONTENDED) or made[Flag.CONTENDED]
    if block.cap != BASE_CAP:
        made[Flag.CAPPED] = False  # that is what a cap does
    if not isinstance(block.limits, UnsetType):
        made[Flag.CAP_CHANGED] = bool(block.changed)
    return made


def environment_verdicts(seen: Environment, cpus: int) -> dict[Flag, bool | None]:
    """The same from what the host did around any measurement on so many CPUs."""
    stolen, others = _share(seen, "steal_ns", cpus), _share(seen, "others_ns", cpus)
    throttles, limits = moved(seen, "throttles"), moved(seen, "power_limits")
    heat = [grown for name in ("core_throttles", "package_throttles") if (grown := moved(seen, name)) is not None]
    slept, lists = moved(seen, "suspended_ns"), [_changed(seen, name) for name in ("online", "allowed")]
    return {
        Flag.STOLEN: None if stolen is None else stolen > STEAL,
        Flag.QUOTA: None if throttles is None else throttles > 0,
        Flag.CONTENDED: None if others is None else others > CONTENDED,
        Flag.HOT: any(heat) if heat else None,
        Flag.CAPPED: None if limits is None else limits > 0,
        Flag.SUSPENDED: None if slept is None else slept > SUSPENDED_NS,
        Flag.CPUS: any(lists) or (None if None in lists else False),
    }


def moved(seen: Environment, counter: str) -> int | None:
    """By how much a counter grew in between; None where it was not told."""
    both = [getattr(one, counter) for one in (seen.before, seen.after) if one is not None]
    return None if len(both) < 2 or None in both else max(0, both[1] - both[0])


def _changed(seen: Environment, name: str) -> bool | None:
    """Whether a list of CPUs was another one after the rounds; None where it was not told."""
    both = [getattr(one, name) for one in (seen.before, seen.after) if one is not None]
    return None if len(both) < 2 or None in both else both[0] != both[1]


def cpu_time_ns(plan: Plan, block: Block) -> int | None:
    """Time that the plan's CPUs had around the rounds; None where nobody looked."""
    wall_ns = moved(block.environment, "t_ns")
    return wall_ns * len(plan.cpus) if wall_ns else None


def _share(seen: Environment, counter: str, cpus: int) -> float | None:
    """What a counter of CPU time grew by, of the time that the CPUs had."""
    wall_ns, moved_ns = moved(seen, "t_ns"), moved(seen, counter)
    return None if not wall_ns or moved_ns is None else moved_ns / (wall_ns * cpus)


def _delayed(plan: Plan, block: Block) -> float | None:
    """The share of time that samples, of which none should, waited for a CPU; None where no kernel tells."""
    alone = {variant.key for variant in plan.variants if _runs_alone(variant)}
    told = [cell.samples for cell in block.cells if cell.key in alone and cell.samples.run_delay_ns]
    wall_ns = sum(sum(samples.wall_ns) for samples in told)
    return sum(sum(samples.run_delay_ns) for samples in told) / wall_ns if wall_ns else None


def _runs_alone(variant: Variant) -> bool:
    """Whether nothing of ours is on the CPU of a sample, and it never sleeps: it should not be interrupted."""
    return len(variant.groups) == 1 and not {"blocking", "group", "pair"} & set(variant.flags)


def sample_flags(variant: Variant, cell: Cell) -> dict[Flag, int]:
    """How many of a cell's samples have each flag, of those that some have."""
    samples, alone = cell.samples, _runs_alone(variant)
    # Of 520 quiet samples 27 % were switched out and waited for less: their time was that of the others (1.000).
    delays: Sequence[int | None] = samples.run_delay_ns or [None] * len(samples.round)
    counts = {
        Flag.PREEMPTED: alone and sum(
            switched > 0 if delay is None else delay > WAITED * wall
            for switched, delay, wall in zip(samples.nivcsw, delays, samples.wall_ns, strict=True)
        ),
        Flag.MIGRATED: sum(moves > 0 for moves in samples.moved),
        Flag.FAULTED: sum(faults > 0 for faults in samples.majflt),
        Flag.SKEWED: sum(shared < OVERLAP_PPM for shared in samples.overlap_ppm),
    }  # fmt: skip
    return {flag: int(count) for flag, count in counts.items() if count}


def row_flags(variant: Variant, cells: Sequence[Cell]) -> list[Flag]:
    """The flags of a row, from its cells in the order of the passes."""
    counts: Counter[Flag] = Counter()
    for cell in cells:
        counts.update(sample_flags(variant, cell))
    samples = sum(len(cell.samples.round) for cell in cells)
    found = {flag for flag, count in counts.items() if count > ROW_SHARE * samples}
    counted = [cell for cell in cells if measured(cell)]
    if _drifts([math.log(ns_per_op(cell) or math.nan) for cell in counted]):
        found.add(Flag.DRIFT)
    if _bimodal(counted):
        found.add(Flag.BIMODAL)
    return [flag for flag in Flag if flag in found]


def _drifts(logs: Sequence[float]) -> bool:
    """Whether the medians of the first and the last third are apart.

    The error of a median is 1.25 standard deviations by the root of n; those are 1.48 of the median distance of all
    passes from the median of their third, by n / (n - 1) for the medians taken. By simulation, of runs without drift
    that vary by 3 % a pass, 12 passes have it in 3 % of rows and 24 in 1.4 %; where passes are correlated by 0.3, 7 and
    3 %; of 9 passes 11 to 16 %.
    """
    if len(logs) < DRIFT_PASSES:
        return False
    n = len(logs) // 3
    thirds = logs[:n], logs[n:-n], logs[-n:]
    middles = [median(third) for third in thirds]
    away = median(abs(value - middle) for third, middle in zip(thirds, middles, strict=True) for value in third)
    error = 1.25 * 1.48 * away * n / (n - 1) * math.sqrt(2 / n)
    return abs(middles[2] - middles[0]) > max(DRIFT, DRIFT_ERRORS * error)


def _bimodal(cells: Sequence[Cell]) -> bool:
    """Whether few samples have so much of the time that the mean is no typical time."""
    times = [
        ns / ops
        for cell in cells
        for ns, ops in zip(cell.samples.elapsed_ns, cell.samples.ops, strict=True)
        if ns and ops
    ]
    if not times:
        return False
    total = sum(sum(cell.samples.elapsed_ns) for cell in cells) / sum(sum(cell.samples.ops) for cell in cells)
    return abs(total / median(times) - 1) > BIMODAL


def check_set_aside(run: Run) -> None:
    """None if every block that was set aside has a flag: else the slow ones could be."""
    for number, one in enumerate(run.passes):
        for at, block in enumerate(one.set_aside):
            if not block_flags(run.plan, block):
                text = "is set aside without a flag: what it measured is no reason to measure it again"
                raise UsageError("set_aside", text, f"passes[{number}].set_aside[{at}]")
