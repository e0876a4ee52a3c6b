"""From the windows of blocks to rates and watts per pass: arrays over passes, NaN where a pass has none.

Watts are means over the metered part of a window, which is the part of the variants without untimed hooks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from cpubench.analysis.cells import measured, ns_per_op, ops_per_s
from cpubench.analysis.composite import Array
from cpubench.power.channel import Log, load
from cpubench.power.energy import Energy, energy
from cpubench.power.mirrors import settled
from cpubench.results.records import Block, Plan
from cpubench.results.windows import PowerLog, WindowCell, WindowResult

EDGE = 0.02  # of a row's time: a reading must be that close to both of its ends, or its neighbours are in its watts
CHANGED = "cap_changed: something else wrote to a limit meanwhile"


@dataclass
class Windows:
    """What the windows of one cap level say, per pass; rows by their key, watts by family and by row."""

    passes: int
    ops_per_s: dict[str, Array] = field(default_factory=dict)  # of all copies together
    ns_per_op: dict[str, Array] = field(default_factory=dict)
    metered: set[str] = field(default_factory=set)  # keys of rows that are in the watts of their family
    errors: dict[str, str] = field(default_factory=dict)  # the first reason that a row failed with
    watts: dict[str, Array] = field(default_factory=dict)
    row_watts: dict[str, Array] = field(default_factory=dict)
    families: list[str] = field(default_factory=list)  # of which some row is metered
    mean_w: Array = field(default_factory=lambda: np.empty(0))  # over all families of a pass, by their time
    reasons: dict[str, str] = field(default_factory=dict)  # why a family or a row lacks watts, the first
    flags: Counter[str] = field(default_factory=Counter)  # of the energy of windows
    windows: int = 0  # with a log


def windows_of(plan: Plan, blocks: Sequence[Block], rows: bool = True) -> Windows:
    """The windows of blocks, one per pass; without ``rows`` no watts of single rows, which takes a tenth of the time.

    A block around which a limit changed counts as not there. A pass that lacks the watts of a family has no mean: that
    of the others would be of other work.
    """
    made = Windows(len(blocks), mean_w=np.full(len(blocks), np.nan))
    every = [window for block in blocks for window in block.windows]
    made.families = list(dict.fromkeys(one.family for one in every if any(cell.metered for cell in one.cells)))
    logs = [one.log for one in every] + ([plan.powered.idle] if plan.powered is not None else [])
    whole = {channel.id for log in logs if not isinstance(log, msgspec.UnsetType) for channel in log.channels}
    for at, block in enumerate(blocks):
        changed, drawn = bool(block.changed), dict[str, tuple[float, float]]()  # watts and seconds by family
        for window in block.windows:
            for cell in window.cells:
                _add_rate(made, cell, at, changed)
            if isinstance(window.log, msgspec.UnsetType):
                continue
            log = settled(_whole(log_of(window.log), whole))
            told = _of_window(window, log)
            made.windows += 1
            made.flags.update(told.flags)
            watts = _usable(told)
            if changed or watts is None:
                why = CHANGED if changed else f"{told.code or 'no watts'}: {told.reason or 'not finite'}"
                made.reasons.setdefault(window.family, why)
            else:
                _put(made.watts, window.family, at, made.passes, watts)
                drawn[window.family] = watts, told.seconds
            for cell in window.cells if rows and not changed else ():
                _add_watts(made, cell, at, log)
        if drawn and all(family in drawn for family in made.families):
            watts_each, seconds_each = zip(*drawn.values(), strict=True)
            made.mean_w[at] = np.average(watts_each, weights=seconds_each)
    return made


def log_of(record: PowerLog) -> Log:
    """The log as the room of meters has it."""
    return load(msgspec.to_builtins(record))


def _whole(log: Log, ids: set[str]) -> Log:
    """The log; lost where it lacks a channel that others of the run have: each block opens the meter anew."""
    lacks = sorted(ids.difference(channel.id for channel in log.channels))
    why = f"partial: {', '.join(lacks)} was read at other times of the run alone"
    return replace(log, lost=why) if lacks and not log.lost else log


def mean_watts(record: PowerLog) -> tuple[float | None, str]:
    """The mean watts over a whole log, or why there are none."""
    told = energy(log_of(record))
    return _usable(told), f"{told.code}: {told.reason}"


def _usable(told: Energy) -> float | None:
    watts = told.watts
    return watts if watts is not None and 0 < watts < math.inf else None


def _put(into: dict[str, Array], key: str, at: int, passes: int, value: float) -> None:
    into.setdefault(key, np.full(passes, np.nan))[at] = value


def _add_rate(made: Windows, cell: WindowCell, at: int, changed: bool) -> None:
    for into in (made.ops_per_s, made.ns_per_op):
        into.setdefault(cell.key, np.full(made.passes, np.nan))
    if cell.metered:
        made.metered.add(cell.key)
    if cell.error is not None:
        made.errors.setdefault(cell.key, cell.error)
    if measured(cell) and not changed:
        made.ops_per_s[cell.key][at], made.ns_per_op[cell.key][at] = ops_per_s(cell), ns_per_op(cell)


def _of_window(window: WindowResult, log: Log) -> Energy:
    """The energy of the metered part of a window."""
    metered = [cell for cell in window.cells if cell.metered and measured(cell)]
    if not metered:
        return Energy(log.scope, None, None, 0.0, 0.0, (), "no_rows", "nothing ran that is metered")
    return energy(log, min(cell.t0_ns for cell in metered), max(cell.t1_ns for cell in metered))


def _add_watts(made: Windows, cell: WindowCell, at: int, log: Log) -> None:
    """The watts of one row, where readings stand at both ends of its time."""
    if not cell.metered or not measured(cell):
        return
    rows = [reading for reading in log.readings if reading.at_ns]
    first = bisect_right(rows, cell.t0_ns, key=lambda row: max(row.at_ns)) - 1
    last = bisect_left(rows, cell.t1_ns, key=lambda row: min(row.at_ns))
    near = EDGE * (cell.t1_ns - cell.t0_ns)
    if not 0 <= first < last < len(rows) or (
        cell.t0_ns - min(rows[first].at_ns) > near or max(rows[last].at_ns) - cell.t1_ns > near
    ):
        made.reasons.setdefault(cell.key, "edges: the meter is read too seldom for a single row")
        return
    told = energy(replace(log, readings=tuple(rows[first : last + 1])), cell.t0_ns, cell.t1_ns)
    watts = _usable(told)
    if watts is None or "coarse" in told.flags:
        why = f"{told.code}: {told.reason}" if watts is None else "coarse: the meter is renewed too seldom for a row"
        made.reasons.setdefault(cell.key, why)
    else:
        _put(made.row_watts, cell.key, at, made.passes, watts)
