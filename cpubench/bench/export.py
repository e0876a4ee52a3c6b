"""A run in the formats of other tools, straight from its file: no pytest session is needed."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from cpubench.analysis.cells import ns_per_op, ops_per_s
from cpubench.bench.clock import CLOCK_NAME
from cpubench.bench.facts import facts_of_run, facts_of_variant, machine_info
from cpubench.bench.replay import Row, cells_at, default_cap, failure, rows_planned, seconds_per_op
from cpubench.results.parse import shown

if TYPE_CHECKING:
    from cpubench.results.records import Cell, Run, Variant

CSV_COLUMNS = ("variant", "copies", "cap", "pass", "ops", "elapsed_ns", "ops_per_s", "ns_per_op", "error")
# pytest-benchmark's keys; none of them but the timer had a part in the measurement (see extra_info).
OPTIONS = dict.fromkeys(("min_rounds", "max_time", "min_time", "precision", "confidence")) | {
    "disable_gc": False, "timer": CLOCK_NAME, "warmup": False,
}  # fmt: skip
# What pytest-benchmark writes outside a checkout: the numbers belong to a host, not to the folder of the export.
COMMIT = {
    "id": "unversioned", "time": None, "author_time": None, "dirty": False, "project": "cpubench",
    "branch": "(unknown)",
}  # fmt: skip


def to_pytest_benchmark(run: Run, cap: str | None = None) -> dict[str, Any]:
    """The document that ``pytest suites --cpubench-run RUN --benchmark-json`` writes, of one cap level.

    Variants that failed are not among the benchmarks, as there: ``cpubench.failed`` names them with the reason.
    """
    from pytest_benchmark import __version__

    cap = cap or default_cap(run)
    cells = cells_at(run, cap)
    shown = [(variant, cells.get(variant.key, [])) for variant in rows_planned(run)]
    return {
        "machine_info": machine_info(run.host),
        "commit_info": COMMIT,
        "benchmarks": [_benchmark(run, variant, cap, own) for variant, own in shown if not failure(own)],
        "datetime": run.plan.created_utc,
        "version": __version__,
        "cpubench": facts_of_run(run, cap),
    }


def _benchmark(run: Run, variant: Variant, cap: str, cells: list[tuple[int, Cell]]) -> dict[str, Any]:
    from pytest_benchmark.stats import Stats

    row = Row(variant.family, variant.name, variant.copies)
    untyped: Any = Stats
    stats = untyped()
    for seconds in seconds_per_op(cells):
        stats.update(seconds)
    return {
        "group": row.group,
        "name": row.test,
        "fullname": row.fullname,
        "params": {"variant": row.name, "copies": row.copies},
        "param": row.param,
        "extra_info": {"cpubench": facts_of_variant(run, variant, cap, cells)},
        "options": OPTIONS,
        "stats": {**stats.as_dict(), "data": stats.data, "iterations": variant.ops},
    }


def to_csv(run: Run) -> str:
    """One line per cap level, variant, copies and pass. ``ops`` and ``elapsed_ns`` are sums over the copies.

    So ``ns_per_op`` is the time of one copy, and ``ops_per_s`` the sum of the copies' rates.
    """
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for cap in run.plan.caps:
        cells = cells_at(run, cap)
        for variant in rows_planned(run):
            for index, cell in cells.get(variant.key, []):
                ops, elapsed = sum(cell.copy_ops), sum(cell.copy_elapsed_ns)
                texts = (_text(variant.name), variant.copies, _text(cap), index)
                lines.writerow((*texts, ops, elapsed, ops_per_s(cell), ns_per_op(cell), _text(cell.error or "")))
    return out.getvalue()


def _text(text: str) -> str:
    """The text, made harmless for terminals and spreadsheets: a vendor's run must not start a formula in them."""
    safe = shown(text, 2000)
    return f"'{safe}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else safe
