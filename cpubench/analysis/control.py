"""What the control kernel, which every block measures under two labels, says of a run; it is in no table itself."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from cpubench.analysis.composite import MIN_PASSES
from cpubench.analysis.twins import CONTROL, floor_percent, log_times
from cpubench.results.names import kernel_of
from cpubench.results.records import Block, Plan

NOT_MEASURED = "no kernel was measured under two labels: the floor is unknown"


def floor_facts(blocks: Sequence[Block]) -> tuple[float | None, str | None]:
    """The A/A floor of a run's blocks of one level in per cent, or the reason why there is none."""
    found = floor_percent(blocks)
    if found is not None:
        return found, None
    there = int(np.count_nonzero(~np.isnan(log_times(blocks, *CONTROL))))
    if not there:
        return None, NOT_MEASURED
    return None, f"{MIN_PASSES} passes are needed, {there} have a kernel under two labels: the floor is unknown"


def without_control(plan: Plan) -> Plan:
    """The plan as comparisons see it: a side of which the control kernel is another version did no other work."""
    kernel = kernel_of(CONTROL[0])
    return msgspec.structs.replace(
        plan,
        variants=[variant for variant in plan.variants if variant.kernel != kernel],
        skipped=[skip for skip in plan.skipped if kernel_of(skip.variant) != kernel],
    )
