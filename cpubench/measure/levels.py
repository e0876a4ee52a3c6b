"""Cap levels, windows and their times in the plan of a run. Touches no operating system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import msgspec

from cpubench.analysis.cells import BASE_CAP, EXTERNAL
from cpubench.analysis.composite import MIN_PASSES
from cpubench.errors import UsageError
from cpubench.results.records import Plan, Variant
from cpubench.results.windows import Power, Window

BLOCK_OVERHEAD_NS = 200_000_000  # the process until its first sample, and after its last
S = 1_000_000_000


@dataclass(frozen=True)
class Times:
    """Seconds, of a run with a meter or caps."""

    settle: float  # after a change of level, at least; five time windows of the cap where that is longer
    idle: float  # at rest, before and after the run
    uncapped: float  # of the load without a cap
    verify: float  # of the load under each cap
    total: float  # of window, for each family and level over the fewest passes
    least: float = 1.0  # of a window and of its settling: RAPL's time window is about that long


TIMES = {
    "quick": Times(10, 10, 20, 20, 10),
    "standard": Times(10, 60, 20, 20, 60),
    "strict": Times(10, 60, 20, 20, 60),
}


def times_of(profile: str, text: str | None) -> Times:
    """The profile's times, or with those of a text such as "settle=0.1,idle=0.5" in their place: for tests."""
    own, known = TIMES[profile], {field.name for field in fields(Times)}
    for part in filter(None, (text or "").split(",")):
        match = re.fullmatch(r"([a-z]+)=(\d{1,4}(?:\.\d{1,3})?)", part.strip())
        if not match or match[1] not in known or float(match[2]) > 600:
            raise UsageError("times", f"{part[:40]!r} is not like settle=0.5; known: {', '.join(sorted(known))}")
        own = replace(own, **{match[1]: float(match[2])})
    return own


def with_power(
    plan: Plan, caps: Sequence[str], power: Power, least_ns: int, window_us: int, budget_given: bool
) -> Plan:  # fmt: skip
    """The plan with cap levels, with windows for each family that has scored variants on all cores, and a budget that
    holds its fewest passes where none was given. ``window_us`` is the time over which the caps act.

    UsageError where a cap would have nothing to act upon.
    """
    levels = list(caps) or [BASE_CAP]
    capped = [level for level in levels if level != BASE_CAP]
    min_passes = MIN_PASSES if capped else plan.min_passes
    settle_ns = max(least_ns, 1000 * window_us)
    length_ns = max(least_ns, 3000 * window_us, -(-power.total_ns // min_passes), 1)
    families = list(dict.fromkeys(variant.family for variant in plan.variants if in_windows(variant)))
    if capped and not families:
        text = "rates under a cap are of scored variants on all cores, and none is chosen"
        raise UsageError("nothing_to_measure", text, "--copies")
    windows = [Window(family=family, settle_ns=settle_ns, length_ns=length_ns) for family in families]
    made = msgspec.structs.replace(plan, caps=levels, windows=windows, min_passes=min_passes, power=power)
    if budget_given or not plan.budget_ns:
        return made
    extra_ns = before_ns(made) + power.idle_ns + min_passes * beside_rounds_ns(made)
    return msgspec.structs.replace(made, budget_ns=plan.budget_ns + extra_ns)


def in_windows(variant: Variant) -> bool:
    """Whether a variant is measured in the windows of its family."""
    return variant.scored and variant.copies == "cores"


def windows_ns(plan: Plan) -> int:
    """Nanoseconds that the windows of a block take."""
    return sum(window.settle_ns + window.length_ns for window in plan.windows)


def beside_rounds_ns(plan: Plan) -> int:
    """Nanoseconds that a pass takes beside the rounds of its as-is block: windows, settling, and further blocks."""
    settle_ns = plan.powered.settle_ns if plan.powered is not None and len(plan.caps) > 1 else 0
    return len(plan.caps) * (windows_ns(plan) + settle_ns) + (len(plan.caps) - 1) * BLOCK_OVERHEAD_NS


def before_ns(plan: Plan) -> int:
    """Nanoseconds before the first pass: at rest, and the loads that show what the caps do."""
    return 0 if plan.powered is None else shown_ns(plan.powered, plan.caps)


def shown_ns(power: Power, caps: Sequence[str]) -> int:
    """Nanoseconds at rest, and of the loads that show what these levels do."""
    if not power.meter:
        return 0
    capped = [level for level in caps if level != BASE_CAP]
    outside = [level for level in capped if level.startswith(EXTERNAL)]
    # Loads run only where the meter reads what a cap limits: not under proxies, and not for watts that come later.
    ours = len(capped) - len(outside) if power.cap_scope == power.scope else 0
    loads = ours + sum(level.rpartition(":")[2] == power.scope for level in outside)
    free_ns = power.settle_ns + power.uncapped_ns if ours else 0
    return power.idle_ns + free_ns + loads * (power.settle_ns + power.verify_ns)


def predicted(plan: Plan) -> str:
    """What a run with a meter or caps does, and how long it takes at least, for a person."""
    idle_ns = 0 if plan.powered is None else plan.powered.idle_ns
    least_ns = before_ns(plan) + plan.min_passes * plan.predicted_pass_ns + idle_ns
    return (
        f"levels {', '.join(plan.caps)}: {_clock(before_ns(plan))} before the passes, then {plan.min_passes} or more "
        f"of {_clock(plan.predicted_pass_ns)}: {_clock(least_ns)} at least"
    )


def _clock(ns: int) -> str:
    seconds = round(ns / S)
    return f"{seconds // 60}:{seconds % 60:02d}"


def check_times(plan: Plan) -> None:
    """None if the times of a plan's watts and caps are those of its profile, or said to be others."""
    power, own = plan.powered, TIMES[plan.profile]
    if power is None or power.shortened:
        return
    check_power_times(power, plan.profile, "plan.power")
    for at, window in enumerate(plan.windows):
        if (
            plan.min_passes * window.length_ns < power.total_ns
            or min(window.settle_ns, window.length_ns) < own.least * S
        ):
            raise UsageError("profile", f"windows of {window.length_ns} ns are too short", f"plan.windows[{at}]")


def check_power_times(power: Power, profile: str, where: str) -> None:
    """The same of settling, rest and loads alone."""
    own = TIMES[profile]
    if power.shortened:
        return
    told = {"settle_ns": power.settle_ns, "verify_ns": power.verify_ns, "uncapped_ns": power.uncapped_ns,
            "idle_ns": power.idle_ns if power.meter else round(own.idle * S), "total_ns": power.total_ns}  # fmt: skip
    for name, ns in told.items():
        least_ns = round(getattr(own, name.removesuffix("_ns")) * S)
        if ns < least_ns or (ns > least_ns and name != "settle_ns"):
            raise UsageError("profile", f"is {ns}, {profile} has {least_ns}", f"{where}.{name}")
