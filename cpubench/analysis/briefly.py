"""The figures of a run without its rows, by the same functions as its score: for an index of thousands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cpubench.analysis.cells import BASE_CAP, blocks_at
from cpubench.analysis.noise import noise_of_blocks
from cpubench.analysis.notes import faults_of
from cpubench.analysis.power import power_document, watched
from cpubench.analysis.rates import block_rates
from cpubench.analysis.reference import Reference
from cpubench.analysis.scenarios import Scenario
from cpubench.analysis.score import check_comparable, composed, parts_of
from cpubench.results.records import Run
from cpubench.results.states import CLAIMED

Json = dict[str, Any]
MEASURES = ("per_core", "speed", "per_watt")
# Of a run under caps alone: it has no passes that its whole is scored by, which says nothing against its levels.
OF_THE_BASE = frozenset({"only_capped", "missing", "passes", "no_headline"})


@dataclass(frozen=True)
class Figure:
    """A quantity of a run at a cap level; ``family`` "" is the whole."""

    cap: str
    family: str
    measure: str
    made: Json


@dataclass(frozen=True)
class Brief:
    """``faults`` are by level why its figures may not be published: the first reasons."""

    passes: int
    figures: list[Figure]
    faults: dict[str, list[str]]


def brief_score(run: Run, reference: Reference, scenario: Scenario) -> Brief:
    """Headline and families at each cap level, and what stands against publishing them."""
    check_comparable(run.plan, reference)
    blocks = blocks_at(run, BASE_CAP)
    rates = block_rates(run.plan, blocks)
    parts = parts_of(run.plan, reference, rates)
    watts = watched(run, reference, parts.names, scenario.families)
    (headline, families), power = composed(parts, scenario, watts), power_document(watts)
    composites = {"headline": headline} | families
    found = faults_of(run, reference, rates, parts.gone, composites, noise_of_blocks(run, BASE_CAP), power)
    figures, faults = [], {}
    levels = [] if power is None else [level for level in power["levels"] if level["level"] != BASE_CAP]
    if BASE_CAP in run.plan.caps:
        for family, measures in {"": headline, **families}.items():
            figures += [Figure(BASE_CAP, family, measure, measures[measure]) for measure in MEASURES]
        faults[BASE_CAP] = [note["text"] for note in found if note["where"] not in {level["level"] for level in levels}]
    for level in levels:
        figures += _of_level(level)
        faults[level["level"]] = _faults(level, found, [one["level"] for one in levels])
    return Brief(rates.passes or max((level["passes"] for level in levels), default=0), figures, faults)


def _of_level(level: Json) -> list[Figure]:
    """The figures of windows under a cap; speed has none."""
    made = [Figure(level["level"], "", "watts", level["watts"])]
    for family, measures in {"": level, **level["families"]}.items():
        made += [Figure(level["level"], family, measure, measures[measure]) for measure in ("per_core", "per_watt")]
    return made


def _faults(level: Json, found: Sequence[Json], capped: Sequence[str]) -> list[str]:
    """What stands against a level: its own faults and those of the run, without those of other levels."""
    name = level["level"]
    others = {BASE_CAP, *capped} - {name}
    own = [note["text"] for note in found if note["where"] not in others and note["code"] not in OF_THE_BASE]
    if level["per_core"]["value"] is None:
        own.append(f"no per_core: {level['per_core']['reason']}")
    if level["state"] not in CLAIMED:
        own.append(f"the cap is {level['state']}: {level['text']}")
    return own
