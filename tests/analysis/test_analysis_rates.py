"""Rates are sums over copies; a cell without operations is missing and nothing else is."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec
import numpy as np
import pytest
from made import made_run, made_variants

from cpubench.analysis.rates import block_rates, divisors, run_rates
from cpubench.bench.export import to_csv
from cpubench.results.names import row_key
from cpubench.results.records import Divisor, Run


def loaded(document: dict[str, Any]) -> Run:
    return msgspec.convert(document, Run)


def cell(document: dict[str, Any], number: int, key: str) -> dict[str, Any]:
    kernel, copies = key.split("@")
    cells = document["passes"][number]["blocks"][0]["cells"]
    return next(c for c in cells if c["kernel"] == kernel and c["copies"] == copies)


def test_rate_is_the_sum_over_copies_and_time_that_of_a_copy() -> None:
    document = made_run(2)
    cell(document, 1, "file_create@cores").update(copy_ops=[10, 30], copy_elapsed_ns=[1000, 2000])
    cell(document, 1, "file_create@1").update(copy_ops=[40], copy_elapsed_ns=[1000])
    rates = run_rates(loaded(document), "as-is")
    assert rates.ops_per_s["file_create@cores"][1] == pytest.approx(1e9 * (10 / 1000 + 30 / 2000))
    assert rates.ns_per_op["file_create@cores"][1] == pytest.approx(3000 / 40)
    assert rates.ops_per_s["file_create@1"][1] == pytest.approx(4e7)
    assert rates.ns_per_op["file_create@1"][1] == pytest.approx(25)


def test_samples_that_succeeded_count_although_a_later_one_failed() -> None:
    document = made_run(2)
    cell(document, 1, "file_create@1").update(copy_ops=[40], copy_elapsed_ns=[1000], error="SIGSEGV")
    rates = run_rates(loaded(document), "as-is")
    assert rates.ns_per_op["file_create@1"][1] == 25
    assert rates.errors == {"file_create@1": "SIGSEGV"}


@pytest.mark.parametrize("ops", [[0, 0], [5, 0], []])
def test_a_cell_without_operations_of_every_copy_is_missing(ops: list[int]) -> None:
    document = made_run(3)
    cell(document, 1, "file_create@cores").update(copy_ops=ops, copy_elapsed_ns=[9] * len(ops), error="deadline")
    rates = run_rates(loaded(document), "as-is")
    assert np.isnan(rates.ops_per_s["file_create@cores"]).tolist() == [False, True, False]
    assert not np.isnan(rates.ops_per_s["file_create@1"]).any()


def test_an_absent_cell_is_missing() -> None:
    document = made_run(3)
    del document["passes"][0]["blocks"][0]["cells"][3]
    run = loaded(document)
    key = run.plan.variants[3].key
    assert np.isnan(run_rates(run, "as-is").ops_per_s[key]).tolist() == [True, False, False]
    assert block_rates(run.plan, []).passes == 0


def test_a_pass_that_was_cut_before_it_had_every_cap_counts_at_none() -> None:
    document = made_run(4, caps=["as-is", "250W"])
    for one in document["passes"][:3]:
        one["blocks"].append(one["blocks"][0] | {"cap": "250W"})
    run = loaded(document)
    assert [run_rates(run, cap).passes for cap in ("as-is", "250W", "9W")] == [3, 3, 0]


def test_exports_and_scores_take_the_same_road_to_a_rate() -> None:
    document = made_run(2, cpus=4)
    cell(document, 1, "file_create@cores").update(copy_ops=[10, 30, 7, 1], copy_elapsed_ns=[1000, 2000, 3000, 10**15])
    run = loaded(document)
    rates = run_rates(run, "as-is")
    for line in csv.DictReader(io.StringIO(to_csv(run))):
        key, number = row_key(line["variant"], line["copies"]), int(line["pass"])
        assert float(line["ops_per_s"]) == rates.ops_per_s[key][number]
        assert float(line["ns_per_op"]) == rates.ns_per_op[key][number]


def test_divisor_is_the_cores_of_the_copies_or_their_part_of_the_quota() -> None:
    run = loaded(made_run(1, cpus=6))
    assert divisors(run.plan)["mem_chase[set=16K]@cores"] == 6
    granted = msgspec.structs.replace(run.plan, divisor=Divisor("granted_cpu", 1.5))
    assert divisors(granted)["mem_chase[set=16K]@cores"] == 1.5
    some = [
        v for v in made_variants(5) if v.copies == "cores"
    ]  # groups of two leave one of five cores idle: the quota binds all the same
    assert {v.name: v.divisor for v in some}["lock_mutex[cs=200ns]"] == 4
    assert divisors(msgspec.structs.replace(granted, variants=some))["lock_mutex[cs=200ns]@cores"] == 1.5
