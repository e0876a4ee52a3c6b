"""What kernels explain of a task: counts of what its steps did, at the price of one; and what other prices change.

Of a task's CPU time the starts of processes, the faults, the switches and the bytes that calls moved are counted, and
a kernel says what one of them costs on this host. What is left of the system time is taken for files, at no price:
no counter of calls is open to everybody. User time is the tools' own code, mostly an interpreter's, and no kernel is
one. Both remainders have a kernel whose change stands for theirs when two settings or two hosts are compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpubench.analysis.estimates import Estimate, of_passes
from cpubench.analysis.rates import Rates
from cpubench.results.names import row_key
from cpubench.results.task_records import Repeat, TaskRow

Json = dict[str, Any]
Seconds = dict[str, float]  # by path


@dataclass(frozen=True)
class Rule:
    """What is counted, the rows (one copy, their geometric mean) that price it, and how many operations one is.

    ``ops`` None: the path is a remainder, in seconds, and its rows tell how it changes; without rows nothing does.
    """

    counted: str
    rows: tuple[str, ...]
    ops: float | None = None


RULES = {
    "spawn": Rule("starts of processes", ("spawn_posix[env=8K]",), 1.0),
    "fault": Rule("minor faults", ("mem_touch[memory=fresh]",), 1.0),
    "switch": Rule("voluntary switches", ("switch_pipe[place=same]",), 0.5),  # two in a round trip
    "copy": Rule("bytes moved by calls", ("mem_copy[set=64M]",), 1 / (1 << 20)),  # its operation is a MiB
    "meta": Rule("", ("file_stat[hit]", "file_stat[miss]", "file_open_read", "file_walk[files=400]")),
    "small": Rule("", ("file_create", "file_rewrite", "file_tempdir")),
    "tree": Rule("", ("file_tree_copy", "file_tree_delete")),
    "user": Rule("", ("mem_chase[set=16K]",)),  # loads that hit L1: the clock of a core, and no more of its code
    "off_cpu": Rule("", ()),
}
COUNTED = tuple(path for path, rule in RULES.items() if rule.ops is not None)
# How the rest of the system time is shared out among files, by phase; elsewhere as 10 to 8, the shares of path weights.
FILES: dict[str, Seconds] = {
    "fs.copy": {"tree": 1.0}, "teardown": {"tree": 1.0}, "deps.install": {"small": 1.0}, "explore": {"meta": 1.0},
}  # fmt: skip
OTHER_FILES = {"meta": 10 / 18, "small": 8 / 18}


def prices(rates: Rates) -> dict[str, Estimate]:
    """Log of the nanoseconds of one, for remainders of an operation, by path; without the paths whose rows lack."""
    found = {}
    for path, rule in RULES.items():
        keys = [row_key(name, "1") for name in rule.rows]
        if not keys or not all(key in rates.ns_per_op for key in keys):
            continue
        logs = np.mean([np.log(rates.ns_per_op[key]) for key in keys], axis=0)
        there = logs[~np.isnan(logs)]
        if len(there) >= 2:
            one = of_passes(there)
            found[path] = Estimate(one.log + math.log(rule.ops or 1.0), one.error, one.freedom)
    return found


def one_ns(price: Mapping[str, Estimate]) -> Seconds:
    """Nanoseconds of one, by counted path."""
    return {path: math.exp(float(price[path].log)) for path in COUNTED if path in price}


@dataclass
class Tally:
    """What the steps of a kind did: counts by path, and seconds of user, system and no CPU time."""

    counts: dict[str, float]
    user_s: float = 0.0
    sys_s: float = 0.0
    off_s: float = 0.0


def tallies(row: TaskRow, one: Repeat) -> dict[tuple[str, str], Tally]:
    """Tallies of a repeat by kind and phase. Starts that nobody counted are those of the step's own interpreters."""
    found: dict[tuple[str, str], Tally] = defaultdict(lambda: Tally(dict.fromkeys(COUNTED, 0.0)))
    spans = one.spans
    for at, step in enumerate(spans.step):
        name, forks = row.steps[step], spans.forks[at]
        tally = found[name.kind, name.phase]
        user_s, sys_s = spans.user_us[at] / 1e6, spans.sys_us[at] / 1e6
        tally.user_s += user_s
        tally.sys_s += sys_s
        if not spans.background[at]:
            tally.counts["spawn"] += name.pythons + name.shells if forks is None else forks
            tally.off_s += max(0.0, spans.wall_ns[at] / 1e9 - user_s - sys_s)
        tally.counts["fault"] += spans.minor_faults[at]
        tally.counts["switch"] += spans.voluntary[at]
        tally.counts["copy"] += (spans.read_bytes[at] or 0) + (spans.written_bytes[at] or 0)
    return dict(found)


def shared_out(tally: Tally, phase: str, ns: Mapping[str, float]) -> Seconds:
    """Seconds by path. What is counted comes out of the system time, and never is more of it than there is."""
    asked = {path: tally.counts[path] * ns[path] / 1e9 for path in COUNTED if path in ns}
    total = sum(asked.values())
    fits = min(1.0, tally.sys_s / total) if total else 1.0
    made = dict.fromkeys(RULES, 0.0) | {path: seconds * fits for path, seconds in asked.items()}
    rest = max(0.0, tally.sys_s - total)
    for path, share in FILES.get(phase, OTHER_FILES).items():
        made[path] = rest * share
    return made | {"user": tally.user_s, "off_cpu": tally.off_s}


def seconds_of(row: TaskRow, one: Repeat, ns: Mapping[str, float]) -> dict[str, Seconds]:
    """Seconds by kind of step and path; the sums of a kind are its CPU time and what it waited."""
    made: dict[str, Seconds] = {}
    for (kind, phase), tally in tallies(row, one).items():
        here = made.setdefault(kind, dict.fromkeys(RULES, 0.0))
        for path, seconds in shared_out(tally, phase, ns).items():
            here[path] += seconds
    return made


def summed(tables: Mapping[str, Seconds]) -> Seconds:
    """Seconds by path of all kinds."""
    return {path: math.fsum(table[path] for table in tables.values()) for path in RULES}


def predicted(seconds: Seconds, a: Mapping[str, Estimate], b: Mapping[str, Estimate]) -> Estimate | None:
    """Log of B's time to A's, for a task that takes so many seconds by path under A; None where it takes none.

    Each path's time follows its kernels; one without a price on either side is taken as unchanged. The error is the
    kernels' alone: what the split is wrong by is not in it.
    """
    total = math.fsum(seconds.values())
    if total <= 0:
        return None
    terms, squares, freedoms = [], [], []
    for path, part in seconds.items():
        if path not in a or path not in b or part <= 0:
            terms.append(part / total)
            continue
        after = part / total * math.exp(float(b[path].log - a[path].log))
        terms.append(after)
        squares.append((after * math.hypot(float(a[path].error), float(b[path].error))) ** 2)
        freedoms.append(float(min(a[path].freedom, b[path].freedom)))
    ratio = math.fsum(terms)
    error = math.sqrt(math.fsum(squares)) / ratio
    return Estimate(np.array(math.log(ratio)), np.array(error), np.array(min(freedoms, default=1.0)))


def by_weights(weights: Mapping[str, float], rest: float, logs: Mapping[str, float]) -> float:
    """Log of B's time to A's as the published path weights have it: families by weight, and ``rest`` unchanged."""
    whole = math.fsum(weights.values()) + rest
    return math.fsum(weight * logs.get(family, 0.0) for family, weight in weights.items()) / whole
