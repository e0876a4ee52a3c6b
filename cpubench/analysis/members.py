"""The runs of a comparison, each reduced to what comparing needs: the raw integers of fifty would be gigabytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from cpubench.analysis.cells import BASE_CAP, blocks_at, measured, whole_passes
from cpubench.analysis.composite import MIN_PASSES, Array, log, present
from cpubench.analysis.control import floor_facts, without_control
from cpubench.analysis.curves import Curves, curves_of
from cpubench.analysis.noise import noise_of_blocks
from cpubench.analysis.notes import REMARKS
from cpubench.analysis.rates import Rates, block_rates, divisors
from cpubench.analysis.rows import skip_reason
from cpubench.analysis.scenarios import Scenario
from cpubench.analysis.score import score
from cpubench.results.parse import shown
from cpubench.results.records import Block, Cell, Plan, Run
from cpubench.results.windows import WindowCell

NO_FREE = "the run has no passes without a cap"

Json = dict[str, Any]


@dataclass(frozen=True)
class Member:
    """A run of a side. Logs are of rates: of one copy alone, or of all copies per core that they occupy."""

    where: str  # its file, for sentences
    sha256: str
    plan: Plan  # without the control kernel, of which there is no row here
    host: Json
    indexes: list[int]  # of the passes that have every level
    logs: dict[str, Array]  # by row key, over these passes; NaN where one has no such cell
    errors: dict[str, str]  # the first reason that a sample of a row failed with, by row key
    obtained: dict[str, Json]  # by row key, of all levels: `huge_ppm` as mean, others as the set of their values
    faults: list[str]  # why it may not be published, beside missing rows
    noise: Json  # flags of the blocks of all levels and of the samples without a cap, counted
    floor_percent: float | None  # what a difference of nothing came out as
    floor_reason: str | None
    curves: Curves | None = None  # of windows: watts, and rates under caps

    @property
    def passes(self) -> int:
        return len(self.indexes)


def member(
    run: Run, where: str, reference: Mapping[str, Any], scenario: Scenario, scored: Json | None = None
) -> Member:
    """The run without its samples; the ``reference`` says which rows are scored. ``scored`` is its score document, by
    who has it already."""
    blocks, plan = blocks_at(run, BASE_CAP), without_control(run.plan)
    rates = block_rates(plan, blocks)
    document = scored or score(run, reference, scenario.name, {scenario.name: scenario})
    # Missing rows are told where they are missed.
    faults = [note["text"] for note in document["notes"] if note["code"] not in {*REMARKS, "missing", "no_headline"}]
    indexes = [block.index for block in blocks]
    every = [block for one in whole_passes(run) for block in one.blocks]
    return Member(where, run.sha256, plan, run.host, indexes, _logs(plan, rates), rates.errors, _obtained(plan, every),
                  faults, _noise(run, document["noise"]), *floor_facts(blocks), curves_of(run))  # fmt: skip


def _noise(run: Run, free: Json) -> Json:
    """The noise without a cap with the blocks of the other levels added up."""
    every = [free["blocks"], *(noise_of_blocks(run, cap)["blocks"] for cap in run.plan.caps if cap != BASE_CAP)]
    counts = {name: sum(blocks[name] for blocks in every) for name in ("count", "looked", "flagged", "set_aside")}
    codes = dict.fromkeys(code for blocks in every for code in blocks["flags"])
    flags = {code: sum(blocks["flags"].get(code, 0) for blocks in every) for code in codes}
    return {"blocks": counts | {"flags": flags}, "samples": free["samples"]}


def absence(one: Member, key: str) -> str | None:
    """Why a run has no figure for a row that an interval could be made of; None where it has."""
    logs = one.logs.get(key)
    if logs is None:
        return skip_reason(one.plan.skipped, key) or "not in the plan"
    if not one.passes:
        return NO_FREE if BASE_CAP not in one.plan.caps else "the run has no passes"
    there = present(logs)
    if there >= MIN_PASSES:
        return None
    said = one.errors.get(key)
    if there == one.passes:
        return f"{MIN_PASSES} passes are needed, the run has {there}"
    return f"in {there} of {one.passes} passes ({MIN_PASSES} are needed): {said or 'not measured'}"


def _logs(plan: Plan, rates: Rates) -> dict[str, Array]:
    cores = divisors(plan)
    made = {}
    for variant in plan.variants:
        if variant.copies == "1":
            made[variant.key] = -log(rates.ns_per_op[variant.key])
        else:
            made[variant.key] = log(rates.ops_per_s[variant.key]) - np.log(cores[variant.key])
    return made


def _obtained(plan: Plan, blocks: Sequence[Block]) -> dict[str, Json]:
    found: dict[str, dict[str, list[Any]]] = {}
    rows = {variant.key for variant in plan.variants}
    for block in blocks:
        cells: list[Cell | WindowCell] = [*block.cells, *(cell for window in block.windows for cell in window.cells)]
        for cell in cells:
            if cell.key in rows and measured(cell):
                row = found.setdefault(cell.key, {})
                for name in ("huge_ppm", "file_system", "tmpfs", "mount_options"):
                    row.setdefault(name, []).append(cell.obtained.get(name))
    return {key: {name: _summary(name, values) for name, values in row.items()} for key, row in found.items()}


def _summary(name: str, values: list[Any]) -> Any:
    if name != "huge_ppm":
        return sorted({shown(str(value), 200) for value in values if value is not None})
    numbers = [value for value in values if type(value) in (int, float)]
    return fmean(numbers) if numbers else None
