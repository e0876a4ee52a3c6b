"""Scores from windows, per cap level: points per core, per watt and per watt above idle, computed inside each pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import UnsetType

from cpubench.analysis.cells import EXTERNAL, blocks_at
from cpubench.analysis.composite import MIN_PASSES, Array, family_logs, log, present, weighted_logs
from cpubench.analysis.estimates import PAIRED_RHO
from cpubench.analysis.quantity import Json, composite, null
from cpubench.analysis.rates import divisors
from cpubench.analysis.reference import Reference
from cpubench.analysis.rows import skip_reason
from cpubench.analysis.watts import Windows, mean_watts, windows_of
from cpubench.power.verdict import MEAN_SHARE, MEAN_W
from cpubench.results.names import row_key
from cpubench.results.records import Plan, Run
from cpubench.results.windows import Level, Power

POINTS = 1000.0  # what the reference has
MEASURES = ("per_core", "per_watt", "per_watt_net")
NO_WINDOW = "no window of it"


@dataclass(frozen=True)
class Idle:
    """Watts at rest, before the first pass and after the last; None with a reason."""

    before_w: float | None
    after_w: float | None
    reason: str | None

    @property
    def mean_w(self) -> float | None:
        there = [watts for watts in (self.before_w, self.after_w) if watts is not None]
        return sum(there) / len(there) if there else None


@dataclass(frozen=True)
class Scored:
    """One level: logs of each measure and family, and why a family has none."""

    windows: Windows
    logs: dict[str, dict[str, Array]]
    why: dict[str, dict[str, list[str]]]  # by measure and family: what is missing for good


def idle_of(run: Run) -> Idle:
    """The idle power of a run with a meter."""
    power, found, reasons = run.plan.powered, list[float | None](), []
    for when, record in (("before", power.idle if power is not None else run.idle_after), ("after", run.idle_after)):
        if isinstance(record, UnsetType):
            found.append(None)
            reasons.append(f"idle power was not measured {when} the passes")
            continue
        watts, reason = mean_watts(record)
        found.append(watts)
        reasons += [] if watts is not None else [f"idle power {when} the passes: {reason}"]
    return Idle(found[0], found[1], "; ".join(reasons) or None)


def levels_of(run: Run, rows: bool = True) -> dict[str, Windows]:
    """The windows of each cap level of a run; without ``rows`` no watts of single rows."""
    return {cap: windows_of(run.plan, blocks_at(run, cap), rows) for cap in run.plan.caps}


def over_cap(power: Power, level: Level | None, windows: Windows) -> int:
    """In how many passes a window drew more than the cap of its level, by a meter of what the cap limits.

    The mean over all families would hide one that draws too much behind the others.
    """
    if level is None or level.watts is None or limited(power, level) != power.scope or not windows.watts:
        return 0
    most_w = MEAN_SHARE * level.watts + MEAN_W
    return int(np.count_nonzero(np.any([watts > most_w for watts in windows.watts.values()], axis=0)))


def limited(power: Power, level: Level) -> str:
    """What the cap of a level limits; "" where nobody said it of one that was set from outside."""
    if not isinstance(level.scope, UnsetType):
        return level.scope
    return "" if level.name.startswith(EXTERNAL) else power.cap_scope


def state_of(power: Power, level: Level | None, windows: Windows) -> str:
    """The state of a level after its passes: what was shown before them, or that a window drew more than the cap."""
    if over_cap(power, level, windows):
        return "over_cap"
    return level.shown if level is not None else "unknown"


def scored(
    plan: Plan, reference: Reference, names: Mapping[str, Sequence[str]], windows: Windows, idle_w: float | None
) -> Scored:  # fmt: skip
    """The level's logs: of the ratio of rates to the reference per core, and of the whole host's per watt.

    Rows with untimed hooks are in no watts, and so in no figure per watt; the whole host's rate is never divided by
    cores, so its unit is a core of the reference.
    """
    logs: dict[str, dict[str, Array]] = {measure: {} for measure in MEASURES}
    why: dict[str, dict[str, list[str]]] = {measure: {} for measure in MEASURES}
    cores = divisors(plan)
    for family, members in names.items():
        keys = {name: row_key(name, "cores") for name in members}
        lacking = {key: reason for key in keys.values() if (reason := _missing(plan, windows, key))}
        ratios = {name: log(windows.ops_per_s[key]) - math.log(reference.variants[name].per_core_ops_per_s.value)
                  for name, key in keys.items() if key in windows.ops_per_s}  # fmt: skip
        why["per_core"][family] = [f"{key} ({reason})" for key, reason in lacking.items()]
        if not lacking:
            logs["per_core"][family] = family_logs({n: ratios[n] - math.log(cores[keys[n]]) for n in members})
        outside = {key for key in keys.values() if key in windows.ops_per_s and key not in windows.metered}
        short = [f"{key} ({reason})" for key, reason in lacking.items() if key not in outside]
        metered = {name: ratios[name] for name, key in keys.items() if key in windows.metered}
        for measure, idle in (("per_watt", 0.0), ("per_watt_net", idle_w)):
            why[measure][family] = short
            if not short and metered and idle is not None:
                watts = windows.watts.get(family, np.full(windows.passes, np.nan)) - idle
                below = int(np.count_nonzero(watts <= 0))
                if below:  # to leave those passes out would be trimming by value
                    text = f"in {below} of {windows.passes} passes the windows drew no more than idle"
                    why[measure][family] = [f"{family} ({text})"]
                else:
                    logs[measure][family] = family_logs(metered) - log(watts)
    return Scored(windows, logs, why)


def _missing(plan: Plan, windows: Windows, key: str) -> str | None:
    """Why a row is missing for good in the windows of a level; None where it is there."""
    values = windows.ops_per_s.get(key)
    if values is None:
        return skip_reason(plan.skipped, key) or (NO_WINDOW if _planned(plan, key) else "not in the plan")
    there = present(values)
    if there >= min(MIN_PASSES, max(1, windows.passes)):
        return None
    return f"in {there} of {windows.passes} passes: {windows.errors.get(key, 'not measured')}"


def _planned(plan: Plan, key: str) -> bool:
    return any(variant.key == key for variant in plan.variants)


def of_families(
    one: Scored, measure: str, families: Sequence[str], weights: Mapping[str, float] | None
) -> Array | None:
    """The logs of families together, per pass; None where one is missing."""
    logs = one.logs[measure]
    if not families or any(family not in logs for family in families):
        return None
    return weighted_logs({family: logs[family] for family in families}, weights or dict.fromkeys(families, 1.0))


def figure(
    one: Scored, measure: str, families: Sequence[str], weights: Mapping[str, float] | None, idle: Idle
) -> Json:  # fmt: skip
    """The points of families together at one level; null with what is missing, or with why there are no watts."""
    logs = of_families(one, measure, families, weights)
    gone = [text for family in families for text in one.why[measure][family]]
    if not gone and measure == "per_watt_net" and idle.mean_w is None:
        return null(idle.reason or "idle power is not known")
    if not gone and measure != "per_core":
        absent = [f for f in families if f not in one.logs[measure]]
        if absent:
            return null(f"no row of {', '.join(absent)} is metered: all have untimed work")
        reasons = [one.windows.reasons[family] for family in families if family in one.windows.reasons]
        if logs is not None and not present(logs) and reasons:
            return null(reasons[0])
    return composite(logs, gone, one.windows.passes, POINTS)


def ratio(one: Scored, base: Scored, measure: str, families: Sequence[str], weights: Mapping[str, float]) -> Json:
    """A level over another, paired by pass: what a pass does to both cancels."""
    a, b = (of_families(which, measure, families, weights) for which in (base, one))
    if a is None or b is None:
        return null("a family is missing at one of the levels")
    return composite(b - a, [], one.windows.passes, 1.0, PAIRED_RHO)


def stopping_logs(plan: Plan, level: str, windows: Windows) -> dict[str, Array]:
    """Logs per pass whose widths decide on the stop: rates of each family, and per watt where there is a meter
    that was read meanwhile."""
    families: dict[str, dict[str, Array]] = {}
    for variant in plan.variants:
        key = variant.key
        if variant.scored and key in windows.ops_per_s and present(windows.ops_per_s[key]):
            families.setdefault(variant.family, {})[variant.name] = log(windows.ops_per_s[key])
    made = {}
    for family, rows in families.items():
        made[f"{level} {family}"] = family_logs(rows)
        metered = {name: logs for name, logs in rows.items() if row_key(name, "cores") in windows.metered}
        if metered and family in windows.watts and not (plan.powered and plan.powered.comes_later):
            made[f"{level} per_watt {family}"] = family_logs(metered) - log(windows.watts[family])
    for kind in (level, f"{level} per_watt"):
        own = [logs for name, logs in made.items() if name.rpartition(" ")[0] == kind]
        if own:
            made[f"{kind} whole"] = np.mean(own, axis=0)
    return made
