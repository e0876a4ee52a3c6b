"""What a score says of watts and caps: figures per watt, the curve over cap levels, and what each level is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import UnsetType
from msgspec.structs import asdict

from cpubench.analysis.cells import BASE_CAP, blocks_at
from cpubench.analysis.composite import log
from cpubench.analysis.flags import around_windows, moved, window_flags
from cpubench.analysis.levels import (
    POINTS,
    Idle,
    Scored,
    figure,
    idle_of,
    levels_of,
    of_families,
    over_cap,
    ratio,
    scored,
    state_of,
)
from cpubench.analysis.quantity import composite, no_meter, null, quantity
from cpubench.analysis.reference import Reference
from cpubench.results.names import row_key
from cpubench.results.records import Block, Run
from cpubench.results.states import CLAIMED, HELD
from cpubench.results.windows import Level, Power

Json = dict[str, Any]
COUNTERS = {"thermal": ("core_throttles", "package_throttles"), "power_limit": ("power_limits",)}


@dataclass(frozen=True)
class Watched:
    """The levels of a run with a meter or caps, scored."""

    run: Run
    levels: dict[str, Scored]
    idle: Idle
    families: list[str]  # that the scenario weighs
    weights: Mapping[str, float]


def watched(
    run: Run, reference: Reference, names: Mapping[str, Sequence[str]], weights: Mapping[str, float]
) -> Watched | None:
    """The scored levels; None of a run without a meter and caps."""
    if run.plan.powered is None:
        return None
    idle, without = idle_of(run), run.plan.powered.meter == ""
    made = {level: scored(run.plan, reference, names, windows, None if without else idle.mean_w)
            for level, windows in levels_of(run).items()}  # fmt: skip
    return Watched(run, made, idle, [family for family in names if weights.get(family)], weights)


def per_watt(made: Watched | None, family: str | None = None) -> Json:
    """Points per watt at the level without a cap: of a family, or of the whole by the scenario's weights."""
    if made is None or made.run.plan.powered is None or not made.run.plan.powered.meter:
        return no_meter()
    if BASE_CAP not in made.levels:
        return null("the run has no passes without a cap")
    families = made.families if family is None else [family]
    if not families:
        return null("the scenario weighs none of the families")
    weights = made.weights if family is None else None
    return figure(made.levels[BASE_CAP], "per_watt", families, weights, made.idle)


def power_document(made: Watched | None) -> Json | None:
    """The meter, the idle power, and a row for each cap level; None of a run without them."""
    power = made.run.plan.powered if made is not None else None
    if made is None or power is None:
        return None
    known = {level.name: level for level in power.levels}
    levels = [_level(made, power, cap, known.get(cap)) for cap in made.run.plan.caps]
    merged = None if isinstance(power.merged, UnsetType) else asdict(power.merged)
    return {
        "meter": power.meter or None, "problem": power.problem or None, "scope": power.scope or None,
        "provenance": power.provenance or None, "cap_scope": power.cap_scope or None, "shortened": power.shortened,
        "merged": merged,
        "idle": {"before_watts": made.idle.before_w, "after_watts": made.idle.after_w, "reason": made.idle.reason},
        "levels": levels, "most_efficient": _most_efficient(made, levels), "efficiency": _efficiency(made, levels),
    }  # fmt: skip


def _level(made: Watched, power: Power, cap: str, known: Level | None) -> Json:
    one, blocks = made.levels[cap], blocks_at(made.run, cap)
    with_meter, measures = bool(power.meter), ("per_core", "per_watt", "per_watt_net")
    figures = {m: figure(one, m, made.families, made.weights, made.idle) if m == "per_core" or with_meter
               else no_meter() for m in measures}  # fmt: skip
    of_families_ = {family: {m: figure(one, m, [family], None, made.idle) if m == "per_core" or with_meter
                             else no_meter() for m in measures} | {"ratio": _ratios(made, cap, [family])}
                    for family in one.why["per_core"]}  # fmt: skip
    return {
        "level": cap, "state": state_of(power, known, one.windows),
        "shown": known.shown if known is not None else "unknown",
        "text": known.text if known is not None else "", "cap_watts": known.watts if known is not None else None,
        "evidence": list(known.evidence) if known is not None else [],
        "flags": list(known.flags) if known is not None else [],
        "passes": one.windows.passes, "over_cap_passes": over_cap(power, known, one.windows),
        "changed_passes": sum(bool(b.changed) for b in blocks),
        "flagged": sum(bool(window_flags(made.run.plan, block)) for block in blocks),
        "watts": quantity(log(one.windows.mean_w), reason=_why(one)) if with_meter else no_meter(),
        **figures, "ratio": _ratios(made, cap, made.families), "families": of_families_,
        "energy_flags": dict(sorted(one.windows.flags.items())), "windows": one.windows.windows,
        **_evidence(blocks),
    }  # fmt: skip


def _why(one: Scored) -> str:
    """Why no pass of a level has mean watts: what the first family that lacks them says."""
    reasons = one.windows.reasons
    return next((f"{family}: {reasons[family]}" for family in one.windows.families if family in reasons),
                "not measured")  # fmt: skip


def _ratios(made: Watched, cap: str, families: list[str]) -> Json:
    """Each figure over that of the level without a cap, paired by pass."""
    names = ("per_core", "per_watt")
    if BASE_CAP not in made.levels:
        return dict.fromkeys(names, null("the run has no level as-is"))
    if cap == BASE_CAP:
        return dict.fromkeys(names, null("it is the level that others are compared with"))
    one, base = made.levels[cap], made.levels[BASE_CAP]
    power = made.run.plan.powered
    weights = made.weights if len(families) > 1 else dict.fromkeys(families, 1.0)
    found = {name: ratio(one, base, name, families, weights) for name in names}
    return found if power is not None and power.meter else found | {"per_watt": no_meter()}


def _efficiency(made: Watched, rows: Sequence[Json]) -> Json:
    """The geometric mean over the levels of the points per watt, inside each pass (as SERT does over loads).

    Of levels whose caps hold: what a host does above its cap is no part of the curve.
    """
    power = made.run.plan.powered
    if power is None or not power.meter:
        return no_meter()
    loose = [f"{row['level']} ({row['state']})" for row in rows if row["state"] not in HELD]
    if loose:
        return null(f"not shown to hold: {', '.join(loose)}")
    logs = [of_families(one, "per_watt", made.families, made.weights) for one in made.levels.values()]
    there = [values for values in logs if values is not None]
    if len(there) < max(2, len(logs)):
        return null("one level is no curve" if len(logs) < 2 else "a level has no points per watt")
    mean = np.mean(there, axis=0)
    return composite(mean, [], len(mean), POINTS)


def _most_efficient(made: Watched, rows: Sequence[Json]) -> Json:
    """The level with the most points per watt of those whose caps hold, and whether it is told from the next."""
    able = [r for r in rows if r["per_watt"]["value"] is not None and r["state"] in CLAIMED]
    if len(able) < 2:
        why = "fewer than two levels have points per watt and a cap that was shown to hold"
        return {"level": None, "next": None, "ratio": null(why), "separable": False, "reason": why}
    first, second = sorted(able, key=lambda row: -row["per_watt"]["value"])[:2]
    better = ratio(made.levels[first["level"]], made.levels[second["level"]], "per_watt", made.families, made.weights)
    return {"level": first["level"], "next": second["level"], "ratio": better,
            "separable": better["low"] is not None and better["low"] > 1, "reason": better["reason"]}  # fmt: skip


def _evidence(blocks: Sequence[Block]) -> Json:
    """Clock at the end of windows, and how often it was throttled during them; None where the host does not tell."""
    khz = [value for block in blocks for window in block.windows for value in window.freq_khz]
    counts = {}
    for name, counters in COUNTERS.items():
        grown = [moved(around_windows(block), counter) for block in blocks for counter in counters]
        told = [value for value in grown if value is not None]
        counts[name] = sum(told) if told else None
    frequency = None
    if khz:
        low, middle, high = (float(value) / 1e3 for value in np.percentile(khz, (5, 50, 95)))
        frequency = {"mean_mhz": sum(khz) / len(khz) / 1e3, "p5_mhz": low, "median_mhz": middle, "p95_mhz": high}
    return {"frequency": frequency, "throttles": counts}


def watt_rows(made: Watched | None, rows: list[Json]) -> list[Json]:
    """The rows of a score, which are of the level without a cap, with watts and joules where windows give them."""
    if made is None:
        return rows
    if BASE_CAP not in made.levels:  # nothing of them was measured; what was skipped keeps its reason
        return [row for row in rows if row["unit"] is None]
    if _metered(made):
        for row in rows:
            row |= _watts(made.levels[BASE_CAP], row_key(row["name"], row["copies"] or ""), row["copies"])
    return rows


def add_rows(document: Json | None, made: Watched | None, rows: Sequence[Json]) -> None:
    """Nothing; gives each level with a cap the rows of its windows, in the shape of the ``rows`` of a score.

    They are not among those: who looks for a row by its name and copies must not find one under a cap.
    """
    if document is None or made is None:
        return
    for level in document["levels"]:
        cap, one = level["level"], made.levels[level["level"]]
        level["variants"] = [] if cap == BASE_CAP else [
            _capped_row(made, row, cap) for row in rows
            if row["copies"] == "cores" and row_key(row["name"], "cores") in one.windows.ops_per_s
        ]  # fmt: skip


def _metered(made: Watched) -> bool:
    return made.run.plan.powered is not None and bool(made.run.plan.powered.meter)


def _capped_row(made: Watched, row: Json, cap: str) -> Json:
    one, key = made.levels[cap], row_key(row["name"], "cores")
    reason = one.windows.errors.get(key, "not measured")
    found = {"cap": cap, "source": "windows", "flags": [],
             "ns_per_op": quantity(log(one.windows.ns_per_op[key]), reason=reason),
             "ops_per_s": quantity(log(one.windows.ops_per_s[key]), reason=reason)}  # fmt: skip
    watts = _watts(one, key, "cores") if _metered(made) else {"watts": no_meter(), "joules_per_op": no_meter()}
    return {**row, **found, **watts}


def _watts(one: Scored, key: str, copies: str | None) -> Json:
    """Watts and joules of a row, from the part of the windows in which it ran alone."""
    values = one.windows.row_watts.get(key)
    if values is None:
        why = one.windows.reasons.get(key)
        if why is None:
            outside = key in one.windows.ops_per_s and key not in one.windows.metered
            why = "its untimed work draws power too" if outside else "watts are those of scored rows on all cores"
        return {"watts": null(why), "joules_per_op": null(why)}
    return {"watts": quantity(log(values)), "joules_per_op": quantity(log(values / one.windows.ops_per_s[key]))}
