"""A busy process on the CPU of the one-copy variants, started on purpose: blocks beside it must be flagged."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from cpubench.analysis.cells import ns_per_op
from cpubench.analysis.flags import Flag, block_flags
from cpubench.errors import UsageError
from cpubench.measure.child import Installed
from cpubench.results.records import Block, Plan
from cpubench.selftest.blocks import Settings, control_plan, in_turns, measure_block, rounds_ns

Json = dict[str, Any]
BUSY_S = 120  # it ends by itself, whatever happens to this process


def predicted_ns(settings: Settings) -> int:
    """Nanoseconds that it takes: beside the busy process twice as long."""
    return 3 * settings.contended_pairs * rounds_ns(settings.contended_samples)


def beside_busy(sized: Plan, folder: Path, settings: Settings, tell: Callable[..., None]) -> Json:
    """Whether every block beside the busy process is flagged and whether one alone is, how much longer an operation
    takes, and what share of the CPU others had. A ``reason`` where it could not be measured."""
    try:
        return _measure(sized, folder, settings, tell)
    except (UsageError, OSError) as error:
        nothing = {"slower_percent": None, "others_percent": None, "alone_others_percent": None}
        return {"flagged": False, "alone_flagged": False, **nothing, "reason": str(error)}


def _measure(sized: Plan, folder: Path, settings: Settings, tell: Callable[..., None]) -> Json:
    plan = control_plan(sized, "1", folder, samples=settings.contended_samples)
    cpu = plan.variants[0].groups[0][0]
    logs: dict[bool, list[float]] = {False: [], True: []}
    flagged: dict[bool, list[bool]] = {False: [], True: []}
    others: dict[bool, list[float]] = {False: [], True: []}
    for index, disturbed in enumerate(in_turns(settings.contended_pairs)):
        tell(f"contended: block {index + 1} of {2 * settings.contended_pairs}", False)
        if disturbed:
            with busy(cpu):
                block = measure_block(plan, index, folder)
        else:
            block = measure_block(plan, index, folder)
        time = ns_per_op(block.cells[0])
        if time is None:
            raise UsageError("block", block.cells[0].error or "no sample", f"block {index}")
        logs[disturbed].append(math.log(time))
        flagged[disturbed].append(Flag.CONTENDED in block_flags(plan, block))
        others[disturbed] += others_share(block)
    shares = {which: 100 * fmean(found) if found else None for which, found in others.items()}
    return {
        "flagged": all(flagged[True]),
        "alone_flagged": any(flagged[False]),
        "slower_percent": 100 * (math.exp(fmean(logs[True]) - fmean(logs[False])) - 1),
        "others_percent": shares[True],
        "alone_others_percent": shares[False],
        "reason": None,
    }


def others_share(block: Block) -> list[float]:
    """CPU time of all other processes around the rounds, of one CPU; nothing where the host does not tell."""
    before, after = block.environment.before, block.environment.after
    if before is None or after is None or before.others_ns is None or after.others_ns is None:
        return []
    return [(after.others_ns - before.others_ns) / max(1, after.t_ns - before.t_ns)]


@contextmanager
def busy(cpu: int) -> Iterator[int]:
    """The pid of a process that keeps the CPU busy meanwhile. UsageError where there is none."""
    command = Installed().command("cpubench.selftest.busy", [str(cpu), str(BUSY_S), str(os.getpid())])
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A session of its own: in that of a block it would count as the block's.
    with subprocess.Popen(command, text=True, errors="replace", start_new_session=True, **pipes) as process:
        try:
            if not process.stdout or not process.stdout.readline():
                complaint = process.communicate()[1].strip().splitlines() or ["ended at once"]
                raise UsageError("busy", complaint[-1][:300], "the busy process")
            yield process.pid
        finally:
            process.kill()
