"""What a pytest-benchmark JSON says beside its numbers: of the machine, of the run and of each variant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cpubench.analysis.cells import ops_per_s
from cpubench.bench.replay import cells_at, failure, rows_planned, rows_skipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpubench.results.records import Cell, Run, Variant

# Of cpubench.host.facts.collect(), beside the names above.
STABLE = (
    "id", "cpu_ids", "microcode", "cpus_allowed", "packages", "smt", "llc_bytes", "quota_cpus", "thp", "clocksource",
    "governor", "mitigations", "virtual",
)  # fmt: skip


def facts_of_variant(run: Run, variant: Variant, cap: str, cells: list[tuple[int, Cell]]) -> dict[str, Any]:
    """``extra_info["cpubench"]``: what was really planned and had, where pytest-benchmark's options are not."""
    rates = [rate for _, cell in cells if (rate := ops_per_s(cell))]
    return {
        "variant": variant.name,
        "copies": variant.copies,
        "family": variant.family,
        "scored": variant.scored,
        "version": variant.version,
        "unit": variant.unit,
        "flags": variant.flags,
        "ops": variant.ops,
        "passes": len({index for index, cell in cells if cell.samples.ops}),
        "cap": cap,
        "ops_per_s": math.exp(math.fsum(map(math.log, rates)) / len(rates)) if rates else None,
        "n_copies": len(variant.groups),
        "divisor": variant.divisor,
        "time": "seconds per operation of one copy; ops_per_s is of all copies, the geometric mean of the passes",
        "errors": [{"pass": index, "reason": cell.error} for index, cell in cells if cell.error],
        "plan": {
            "window_ns": variant.window_ns,
            "sample_ns": run.plan.sample_ns,
            "samples": run.plan.samples,
            "profile": run.plan.profile,
            "seed": run.plan.seed,
            "min_passes": run.plan.min_passes,
            "max_passes": run.plan.max_passes,
            "budget_ns": run.plan.budget_ns,
        },
    }


def machine_info(host: Mapping[str, Any]) -> dict[str, Any]:
    """What stays the same from run to run on one host, under pytest-benchmark's names where it has one.

    pytest-benchmark warns at any difference, so what the kernel counts or grants anew (memory) is not in it.
    """
    return {
        "node": host.get("hostname"),
        "machine": host.get("arch"),
        "system": "Linux",
        "release": host.get("kernel"),
        "cpu": {"brand_raw": host.get("cpu_model"), "vendor_id_raw": host.get("cpu_vendor")},
        "cpubench": {name: host.get(name) for name in STABLE},
    }


def facts_of_run(run: Run, cap: str) -> dict[str, Any]:
    """The top-level key ``cpubench`` of the JSON: what changes from run to run."""
    cells = cells_at(run, cap)
    reasons = ((v.key, failure(cells.get(v.key, []))) for v in rows_planned(run))
    return {
        "run": run.plan.id,
        "sha256": run.sha256,
        "created_utc": run.plan.created_utc,
        "cpubench": run.plan.cpubench,
        "suite": run.plan.suite,
        "profile": run.plan.profile,
        "host_id": run.plan.host_id,
        "divisor": {"kind": run.plan.divisor.kind, "n": run.plan.divisor.n},
        "cap": cap,
        "caps": run.plan.caps,
        "stopped": {
            "by": run.stopped.by,
            "passes": run.stopped.passes,
            "half_width_ppm": run.stopped.half_width_ppm,
        },
        "imported": run.imported,
        "build": run.plan.build,
        "notes": run.notes,
        "failed": [{"variant": key, "reason": reason} for key, reason in reasons if reason],
        "skipped": [{"variant": m.variant, "reason": m.reason} for m in rows_skipped(run)],
    }
