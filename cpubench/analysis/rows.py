"""The rows of a score: what each variant did, and which scored rows are missing for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cpubench.analysis.composite import MIN_PASSES, log, present
from cpubench.analysis.quantity import no_meter, null, quantity
from cpubench.analysis.rates import Rates
from cpubench.analysis.reference import Reference
from cpubench.results.names import kernel_of, row_key, split_key
from cpubench.results.records import Missing, Plan

Json = dict[str, Any]


def gone_rows(plan: Plan, names: Iterable[str], rates: Rates) -> dict[str, str]:
    """Why a scored row is missing for good, by its key with copies 1 and cores.

    It is, where it was not planned or skipped, or is in fewer than eight passes although the run has more.
    """
    gone = {}
    for name in names:
        for key in (row_key(name, "1"), row_key(name, "cores")):
            values = rates.ns_per_op.get(key)
            if values is None:
                gone[key] = skip_reason(plan.skipped, key) or "not in the plan"
            elif present(values) < min(MIN_PASSES, max(1, rates.passes)):
                said = rates.errors.get(key, "not measured")
                gone[key] = f"in {present(values)} of {rates.passes} passes: {said}"
    return gone


def variant_rows(
    plan: Plan, reference: Reference, rates: Rates, cap: str, flags: Mapping[str, list[str]]
) -> list[Json]:
    """A row per planned or skipped variant, with ns per operation of a copy and operations per second of all copies."""
    rows = []
    for variant in plan.variants:
        reason = rates.errors.get(variant.key, "not measured")
        rows.append(
            {
                "name": variant.name,
                "family": variant.family,
                "copies": variant.copies,
                "cap": cap,
                "scored": variant.name in reference.variants and variant.copies != "cpus",
                "unit": variant.unit,
                "ns_per_op": quantity(log(rates.ns_per_op[variant.key]), reason=reason),
                "ops_per_s": quantity(log(rates.ops_per_s[variant.key]), reason=reason),
                "watts": no_meter(),
                "joules_per_op": no_meter(),
                "flags": list(flags.get(variant.key, [])),
            }
        )
    planned = {variant.key for variant in plan.variants}
    families = {variant.kernel: variant.family for variant in plan.variants}
    for skip in plan.skipped:
        name, copies = split_key(skip.variant)
        if skip.variant in planned:
            continue
        known = reference.variants.get(name)
        rows.append(
            {
                "name": name,
                "family": known.family if known else families.get(kernel_of(name)),
                "copies": copies or None,  # None: skipped whatever the copies
                "cap": cap,
                "scored": known is not None and copies != "cpus",
                "unit": None,
                "ns_per_op": null(skip.reason),
                "ops_per_s": null(skip.reason),
                "watts": null(skip.reason),
                "joules_per_op": null(skip.reason),
                "flags": list(flags.get(skip.variant, [])),
            }
        )
    return rows


def skip_reason(skipped: list[Missing], key: str) -> str | None:
    """The reason of a row that was skipped under these copies or as a whole."""
    names = (key, split_key(key)[0])
    return next((f"skipped: {skip.reason}" for skip in skipped if skip.variant in names), None)
