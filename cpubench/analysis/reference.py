"""References: what one named machine does, so that a score has a scale; claims are ratios between candidates."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from cpubench.analysis.composite import MIN_PASSES, log, present
from cpubench.analysis.quantity import quantity
from cpubench.analysis.rates import divisors, run_rates, scored_names
from cpubench.errors import UsageError
from cpubench.results.check import check_seal
from cpubench.results.files import sealed
from cpubench.results.load import typed
from cpubench.results.names import row_key, split_key
from cpubench.results.parse import located, parse, read, shown
from cpubench.results.records import Positive, Run, Sha256

FILE = Path(__file__).parents[1] / "data" / "reference.json"
SCHEMA = "cpubench.reference/1"
BASE_CAP = "as-is"  # scores and references come from the passes without a cap

Amount = Annotated[float, Meta(gt=0)]


class Figure(Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval, and how many passes it is from."""

    value: Amount
    low: Amount | None
    high: Amount | None
    passes: Positive
    reason: str | None = None


class ReferenceRow(Struct, frozen=True, kw_only=True):
    """A scored row of the suite on the reference machine."""

    family: str
    version: Positive
    ns_per_op: Figure  # with one copy
    per_core_ops_per_s: Figure  # with copies on all cores, divided by them


class Reference(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.reference/1"]
    name: str
    suite: Positive
    description: str
    divisor_kind: Literal["physical_core", "vcpu", "granted_cpu"]
    host: dict[str, Any]
    variants: Annotated[dict[str, ReferenceRow], Meta(min_length=1)]
    sha256: Sha256


def load_reference(path: Path | None = None) -> dict[str, Any]:
    """The reference of a file, checked; by default the shipped one."""
    file = FILE if path is None else path
    try:
        document = parse(read(file))
        as_reference(document)
        check_seal(document)
    except UsageError as fault:
        raise located(file, fault) from None
    return document


def as_reference(document: dict[str, Any]) -> Reference:
    """The document as a record."""
    return typed(document, SCHEMA, Reference)


def make_reference(run: Run, name: str, description: str = "", rows_wanted: Collection[str] = ()) -> dict[str, Any]:
    """The sealed reference document that a run makes; every scored row must be there in both copies.

    ``rows_wanted`` are those that it must have, whatever the run was asked for: of families that were not asked for a
    run knows nothing.
    """
    rates, cores = run_rates(run, BASE_CAP), divisors(run.plan)
    rows, missing = {}, []
    for row, variant in scored_names(run.plan).items():
        one, all_cores = row_key(row, "1"), row_key(row, "cores")
        short = [
            key for key in (one, all_cores) if key not in rates.ns_per_op or present(rates.ns_per_op[key]) < MIN_PASSES
        ]
        missing += short
        if not short:
            rows[row] = ReferenceRow(
                family=variant.family,
                version=variant.version,
                ns_per_op=Figure(**quantity(log(rates.ns_per_op[one]))),
                per_core_ops_per_s=Figure(**quantity(log(rates.ops_per_s[all_cores]) - math.log(cores[all_cores]))),
            )
    missing += [one.variant for one in run.plan.skipped if one.scored]
    missing += [row for row in rows_wanted if row not in rows and row not in {split_key(key)[0] for key in missing}]
    if missing or not rows:
        names = ", ".join(shown(key, 40) for key in missing[:3]) + (" .." if len(missing) > 3 else "")
        text = f"a reference needs every scored row in {MIN_PASSES} passes; missing: {names or 'all'}"
        raise UsageError("incomplete", text, f"run of {shown(run.plan.host_id, 60)}")
    return sealed(
        {
            "schema": SCHEMA,
            "name": name,
            "suite": run.plan.suite,
            "description": description,
            "divisor_kind": run.plan.divisor.kind,
            "host": {name: run.host.get(name) for name in ("arch", "cpu_model", "kernel", "virtual")},
            "variants": msgspec.to_builtins(rows),
        }
    )
