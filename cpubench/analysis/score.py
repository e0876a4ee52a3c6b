"""The score of a run against a reference: ratios per pass, composites inside each pass, then intervals over passes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cpubench.analysis.cells import BASE_CAP, blocks_at
from cpubench.analysis.composite import Array, family_logs, log, mean, weighted_logs
from cpubench.analysis.control import floor_facts
from cpubench.analysis.flags import Flag
from cpubench.analysis.floor import near_floor
from cpubench.analysis.noise import flags_of_rows, noise
from cpubench.analysis.notes import judged
from cpubench.analysis.plateaus import badges
from cpubench.analysis.power import Watched, add_rows, per_watt, power_document, watched, watt_rows
from cpubench.analysis.quantity import Asked, composites
from cpubench.analysis.rates import Rates, block_rates, divisors
from cpubench.analysis.reference import Reference, as_reference
from cpubench.analysis.rows import gone_rows, variant_rows
from cpubench.analysis.scenarios import Scenario, covers, load_scenarios, pick
from cpubench.errors import UsageError
from cpubench.results.names import row_key
from cpubench.results.parse import shown
from cpubench.results.records import Plan, Run

POINTS = 1000.0  # what the reference has
# The copies that a measure needs of each row.
NEEDS = {"per_core": ("cores",), "speed": ("1",), "scaling_efficiency": ("1", "cores")}

Json = dict[str, Any]
Logs = dict[str, dict[str, Array]]  # by measure and by row or family


@dataclass(frozen=True)
class Parts:
    """What the composites of a run are made of."""

    names: dict[str, list[str]]  # the scored rows of each family
    logs: Logs  # of measure and family; a family that lacks a row is not there
    gone: dict[str, str]  # why a row is missing for good, by its key
    passes: int


def score(
    run: Run,
    reference: Mapping[str, Any],
    scenario: str = "equal",
    weights: Mapping[str, Scenario] | None = None,
) -> Json:
    """The score document: points (1000 = reference) with 95 % intervals, rows and notes.

    ``weights`` are the scenarios to pick from, by default the shipped ones. The reference says which rows are scored.
    Passes without a cap count; figures per watt, and what a cap does, come from windows.
    """
    ref = as_reference(dict(reference))
    weighing = pick(load_scenarios() if weights is None else weights, scenario)
    check_comparable(run.plan, ref)
    blocks = blocks_at(run, BASE_CAP)
    rates = block_rates(run.plan, blocks)
    floor_percent, floor_reason = floor_facts(blocks)
    parts = parts_of(run.plan, ref, rates)
    watts = watched(run, ref, parts.names, weighing.families)
    (headline, families), power = composed(parts, weighing, watts), power_document(watts)
    disturbed = noise(run, BASE_CAP)
    notes, publishable = judged(run, ref, rates, parts.gone, {"headline": headline} | families, disturbed, power)
    flagged = flags_of_rows(run, BASE_CAP)
    for own in (badges(run.plan, rates), near_floor(run.plan, rates)):
        for key, names in own.items():
            flagged[key] = flagged.get(key, []) + names
    every = variant_rows(run.plan, ref, rates, BASE_CAP, flagged)
    add_rows(power, watts, every)
    raised = {code for codes in flagged.values() for code in codes}
    return {
        "suite": run.plan.suite,
        "reference": ref.name,
        "host": run.host,
        "divisor": {"kind": run.plan.divisor.kind, "n": run.plan.divisor.n},
        "scenario": weighing.name,
        "weights_sha256": weighing.sha256,
        "covers": covers(weighing, [f for f, row in families.items() if row["per_core"]["value"] is not None]),
        "publishable": publishable,
        "profile": run.plan.profile,
        "passes": rates.passes,
        "floor_percent": floor_percent,
        "floor_reason": floor_reason,
        "notes": notes,
        "noise": disturbed,
        "headline": headline,
        "families": families,
        "power": power,
        "variants": watt_rows(watts, every),
        "badges": {flag.value: flag.sentence for flag in Flag if flag.value in raised},
    }


def check_comparable(plan: Plan, reference: Reference) -> None:
    """None if run and reference mean the same work: one suite, and the same version of every scored kernel."""
    where = f"reference {shown(reference.name, 60)}"
    if plan.suite != reference.suite:
        raise UsageError("suite", f"the run is of suite {plan.suite}, the reference of suite {reference.suite}", where)
    for variant in plan.variants:
        row = reference.variants.get(variant.name)
        if row is not None and row.version != variant.version:
            text = f"{shown(variant.name, 60)} is version {variant.version} in the run, {row.version} in the reference"
            raise UsageError("version", text, where)


def parts_of(plan: Plan, reference: Reference, rates: Rates) -> Parts:
    """The logs per pass that the composites of a run are made of."""
    names: dict[str, list[str]] = {}
    for name, row in reference.variants.items():
        names.setdefault(row.family, []).append(name)
    gone = gone_rows(plan, reference.variants, rates)
    return Parts(names, _families(_rows(plan, reference, rates), names), gone, rates.passes)


def composed(parts: Parts, scenario: Scenario, watts: Watched | None) -> tuple[Json, dict[str, Json]]:
    """The measures of the whole, weighted by the scenario and beside that with equal weights, and of each family."""
    asked = {(family, measure): _asked(parts, measure, members, parts.logs[measure].get(family))
             for family, members in parts.names.items() for measure in NEEDS}  # fmt: skip
    equal = Scenario("equal", "", dict.fromkeys(parts.names, 1.0), {})
    whole = {"per_core": ("per_core", scenario), "speed": ("speed", scenario), "equal_weights": ("per_core", equal)}
    wholes = {name: _whole(parts, measure, weights) for name, (measure, weights) in whole.items()}
    *made, per_core, speed, equal_weights = composites([*asked.values(), *wholes.values()], parts.passes)
    found = dict(zip(asked, made, strict=True))
    families = {family: {measure: found[family, measure] for measure in NEEDS} | {"per_watt": per_watt(watts, family)}
                for family in parts.names}  # fmt: skip
    headline = {"per_core": per_core, "per_watt": per_watt(watts), "speed": speed, "equal_weights": equal_weights}
    return headline, families


def _whole(parts: Parts, measure: str, scenario: Scenario) -> Asked:
    wanted = [family for family in parts.names if scenario.families.get(family)]
    if not wanted:
        return Asked(None, [], POINTS, f"the scenario {scenario.name} weighs none of the families")
    logs, members = parts.logs[measure], [name for family in wanted for name in parts.names[family]]
    there = all(family in logs for family in wanted)
    return _asked(parts, measure, members, weighted_logs(logs, scenario.families) if there else None)


def _asked(parts: Parts, measure: str, members: list[str], logs: Array | None) -> Asked:
    """The points of ``members`` together; with the names of those that are gone in copies that it needs."""
    keys = [row_key(name, copies) for name in members for copies in NEEDS[measure]]
    scale = 1.0 if measure == "scaling_efficiency" else POINTS
    return Asked(logs, [f"{key} ({parts.gone[key]})" for key in keys if key in parts.gone], scale)


def _rows(plan: Plan, reference: Reference, rates: Rates) -> Logs:
    """Logs of the ratios to the reference, by measure and row; a row that was not planned is not there."""
    rows: Logs = {measure: {} for measure in NEEDS}
    cores = divisors(plan)
    copies = {variant.key: len(variant.groups) for variant in plan.variants}
    for name, row in reference.variants.items():
        one, every = row_key(name, "1"), row_key(name, "cores")
        if every in copies:
            per_core = log(rates.ops_per_s[every]) - math.log(cores[every])
            rows["per_core"][name] = per_core - math.log(row.per_core_ops_per_s.value)
        if one in copies:
            rows["speed"][name] = math.log(row.ns_per_op.value) - log(rates.ns_per_op[one])
        if one in copies and every in copies:
            per_copy = log(rates.ops_per_s[every]) - math.log(copies[every])
            rows["scaling_efficiency"][name] = per_copy - log(rates.ops_per_s[one])
    return rows


def _families(rows: Logs, names: Mapping[str, list[str]]) -> Logs:
    """Logs by measure and family; a family that lacks a row is not there."""
    families: Logs = {measure: {} for measure in rows}
    for measure, by_row in rows.items():
        for family, members in names.items():
            if all(name in by_row for name in members):
                own = {name: by_row[name] for name in members}
                # Efficiency is a mean over rows: it explains the family and is no part of the score.
                flat = measure == "scaling_efficiency"
                families[measure][family] = mean(list(own.values())) if flat else family_logs(own)
    return families
