"""A quota of half of the CPUs, set on purpose: the rate must fall to a half, and the host must tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cpubench.analysis.flags import Flag, block_flags
from cpubench.analysis.quantity import null, quantity
from cpubench.errors import UsageError
from cpubench.host.limits import cpu_quota
from cpubench.host.quota import quota_group
from cpubench.measure.sides import CAP
from cpubench.results.records import Block, Plan, Window
from cpubench.selftest.blocks import Settings, control_plan, in_turns, measure_block, rounds_ns

Json = dict[str, Any]
SHARE = 0.5


def predicted_ns(settings: Settings) -> int:
    """Nanoseconds that it takes: samples under the quota last up to twice as long."""
    each_ns = rounds_ns(settings.samples) + settings.samples * 10_000_000 + settings.settle_ns + settings.length_ns
    return 2 * settings.pairs * each_ns


def under_quota(sized: Plan, folder: Path, settings: Settings, tell: Callable[..., None]) -> Json:
    """The ratio of rates with and without the quota, whether every block under it was flagged and one without it, and
    in how many periods it was used up. A ``reason`` where this host lets no quota be set.

    Where others were busy (``free_contended``), the free rate was no whole one, and the quota need not have bound.
    """
    try:
        return _measure(sized, folder, settings, tell)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    except UsageError as error:
        reason = str(error)
    nothing = {"flagged": False, "free_flagged": False, "free_contended": False}
    return {"ratio": null(reason), **nothing, "cpus": None, "throttled_periods": None, "reason": reason}


def _measure(sized: Plan, folder: Path, settings: Settings, tell: Callable[..., None]) -> Json:
    window = Window(family="control", settle_ns=settings.settle_ns, length_ns=settings.length_ns)
    plan = control_plan(sized, "cores", folder, windows=[window], samples=settings.samples)
    used = len(plan.variants[0].groups)
    cpus = SHARE * min(used, cpu_quota().value or used)  # a quota that is there already is not widened
    rates: dict[bool, list[float]] = {False: [], True: []}
    flags: dict[bool, list[list[Flag]]] = {False: [], True: []}
    throttled: list[int | None] = []
    for index, limited in enumerate(in_turns(settings.pairs)):
        tell(f"quota: window {index + 1} of {2 * settings.pairs}", False)
        if limited:
            with quota_group(cpus) as group:
                block = measure_block(plan, index, folder, group.procs)
                throttled.append(group.throttled())
        else:
            block = measure_block(plan, index, folder)
        rates[limited].append(window_rate(block))
        flags[limited].append(block_flags(plan, block))
    logs = np.log(np.array(rates[True])) - np.log(np.array(rates[False]))
    told = [periods for periods in throttled if periods is not None]
    return {
        "ratio": quantity(logs),
        "flagged": all(Flag.QUOTA in found for found in flags[True]) and all(throttled),
        "free_flagged": any(Flag.QUOTA in found for found in flags[False]),
        "free_contended": any(Flag.CONTENDED in found for found in flags[False]),
        "cpus": cpus,
        "throttled_periods": sum(told) if told else None,
        "reason": None,
    }


def window_rate(block: Block) -> float:
    """Operations per second of all copies in the block's window; UsageError where it has none."""
    cell = block.windows[0].cells[0]
    if cell.error or not cell.copy_ops or 0 in cell.copy_elapsed_ns:
        raise UsageError("window", cell.error or "a copy finished no operation", f"window {block.index} at {CAP}")
    return 1e9 * math.fsum(ops / ns for ops, ns in zip(cell.copy_ops, cell.copy_elapsed_ns, strict=True))
