"""A run file is believed whole or refused with its place; these are the ways in which files are broken."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken import Doc, block, cell, fault_of, reseal, written
from made import made_run, made_wide_variants

from cpubench.results.files import sealed
from cpubench.results.load import load_run

Change = Callable[[Doc], object]


@pytest.fixture
def document() -> Doc:
    return made_run(5)


def test_indented_file_with_unknown_keys_and_exponents_loads(tmp_path: Path, document: Doc) -> None:
    document["later"] = {"key": [1.5]}
    cell(document)["obtained"] = {"load": 1e-05, "big": 1e300, "name": "\x7f\u00e9\u2028"}
    file = tmp_path / "run.json"
    file.write_text(json.dumps(reseal(document), indent=1))
    assert load_run(file).passes[3].blocks[0].cells[2].obtained["load"] == 1e-05


def test_loading_needs_no_numpy() -> None:
    code = "import sys, cpubench.results.load; print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True).stdout == "[]\n"


def planned(document: Doc, copies: str = "cores") -> Doc:
    """A variant of the plan: ``file_create`` on both CPUs, or alone."""
    rows = document["plan"]["variants"]
    found: Doc = next(v for v in rows if (v["kernel"], v["copies"]) == ("file_create", copies))
    return found


def divided(document: Doc, kind: str, n: float) -> None:
    document["plan"]["divisor"] = {"kind": kind, "n": n}


def aside(document: Doc, **changed: Any) -> None:
    document["passes"][3]["set_aside"] = [copy.deepcopy(sealed(block(document) | changed))]


STRUCTURE: dict[str, tuple[Change, str, str]] = {
    "column shorter": (lambda d: cell(d)["samples"]["cpu_ns"].pop(), "length", "cells[2].samples.cpu_ns"),
    "copy_ops shorter": (lambda d: cell(d)["copy_ops"].pop(), "length", "passes[3].blocks[0].cells[2].copy_ops"),
    "copy_elapsed_ns longer": (lambda d: cell(d)["copy_elapsed_ns"].append(1), "length", "cells[2].copy_elapsed_ns"),
    "copy in no time": (lambda d: cell(d)["copy_elapsed_ns"].__setitem__(1, 0), "zero_time", "copy_elapsed_ns[1]"),
    "sample in no time": (
        lambda d: cell(d)["samples"]["elapsed_ns"].__setitem__(1, 0), "zero_time", "samples.elapsed_ns[1]",
    ),
    "variant not planned": (lambda d: cell(d).update(params="rss=9M"), "variant", "passes[3].blocks[0].cells[2]"),
    "variant twice in a block": (lambda d: block(d)["cells"].append(cell(d)), "twice", "passes[3].blocks[0].cells[17]"),
    "round of unknown variants": (lambda d: block(d)["rounds"][1].append(99), "variant", "blocks[0].rounds[1]"),
    "block of another plan": (lambda d: block(d).update(plan_id="x"), "plan_id", "passes[3].blocks[0]"),
    "block at another cap": (lambda d: block(d).update(cap="9W"), "cap", "passes[3].blocks[0]"),
    "pass twice": (lambda d: d["passes"].append(d["passes"][0]), "twice", "passes[5]"),
    "block of another pass": (lambda d: block(d).update(index=4), "pass", "passes[3].blocks[0]"),
    "cap twice in a pass": (lambda d: d["passes"][3]["blocks"].append(block(d)), "twice", "passes[3].blocks[1]"),
    "set aside twice": (lambda d: d["passes"][3].update(set_aside=[block(d), block(d)]), "twice", "set_aside[1]"),
    "set aside and counted": (lambda d: d["passes"][3].update(set_aside=[block(d)]), "set_aside", "set_aside[0]"),
    "set aside at another cap": (lambda d: aside(d, cap="9W"), "cap", "passes[3].set_aside[0]"),
    "set aside of another pass": (lambda d: aside(d, index=4), "pass", "passes[3].set_aside[0]"),
    "set aside of another plan": (lambda d: aside(d, plan_id="x"), "plan_id", "passes[3].set_aside[0]"),
    "planned twice": (
        lambda d: d["plan"]["variants"].append(d["plan"]["variants"][0]), "twice", "plan.variants[17]",
    ),
    "planned without copies": (lambda d: d["plan"]["variants"][1].update(groups=[]), "copies", "plan.variants[1]"),
    "no cap level": (lambda d: d["plan"].update(caps=[]), "cap", "plan.caps"),
    "CPU twice in the plan": (lambda d: d["plan"]["cpus"].append(1), "twice", "plan.cpus[2]"),
    "other number of passes": (lambda d: d["stopped"].update(passes=6), "passes", "stopped.passes"),
    "one copy that is two": (lambda d: planned(d, "1").update(groups=[[0], [1]]), "copies", "plan.variants[3]"),
    "copies on one CPU": (lambda d: planned(d).update(groups=[[1], [1]]), "twice", "plan.variants[4]"),
    "a group on one CPU": (lambda d: planned(d).update(groups=[[0, 0]]), "twice", "plan.variants[4]"),
    "copy outside the plan": (lambda d: planned(d).update(groups=[[0], [2]]), "cpu", "plan.variants[4]"),
    "more cores than CPUs": (lambda d: planned(d, "1").update(divisor=2), "divisor", "plan.variants[3]"),
    "more cores than the plan": (lambda d: divided(d, "vcpu", 1), "divisor", "plan.variants[2]"),
    "more cores than CPUs in the plan": (lambda d: divided(d, "physical_core", 3), "divisor", "plan.divisor"),
    "more granted than there is": (lambda d: divided(d, "granted_cpu", 2.5), "divisor", "plan.divisor"),
    "half a core": (lambda d: divided(d, "physical_core", 1.5), "divisor", "plan.divisor"),
    "window of unknown variant": (
        lambda d: block(d)["windows"].append({"family": "file", "t0_ns": 1, "t1_ns": 2, "cells": [
            {"kernel": "x", "params": "", "t0_ns": 1, "t1_ns": 2, "copy_ops": [], "copy_elapsed_ns": [], "error": None}
        ]}), "variant", "windows[0].cells[0]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURE)
def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path, document: Doc, name: str) -> None:
    change, code, place = STRUCTURE[name]
    change(document)
    fault = fault_of(written(tmp_path, reseal(document)))
    assert fault.code == code
    assert fault.where.endswith(place)
    assert "run.json" in fault.where


def test_a_quota_that_grants_less_than_the_copies_occupy_is_no_fault(tmp_path: Path, document: Doc) -> None:
    divided(document, "granted_cpu", 0.5)
    assert load_run(written(tmp_path, reseal(document))).plan.divisor.n == 0.5


def test_siblings_are_fewer_cores_than_cpus(tmp_path: Path, document: Doc) -> None:
    divided(document, "physical_core", 1)
    for variant in document["plan"]["variants"]:
        variant["divisor"] = 1
    assert load_run(written(tmp_path, reseal(document))).plan.divisor.n == 1


RECORDS: dict[str, tuple[Change, str]] = {
    "negative": (lambda d: cell(d)["copy_ops"].__setitem__(1, -5), "$.passes[3].blocks[0].cells[2].copy_ops[1]"),
    "float": (lambda d: cell(d)["copy_ops"].__setitem__(1, 5.0), "$.passes[3].blocks[0].cells[2].copy_ops[1]"),
    "bool": (lambda d: cell(d)["copy_ops"].__setitem__(1, True), "$.passes[3].blocks[0].cells[2].copy_ops[1]"),
    "text": (lambda d: block(d)["times"].update(hook_ns="0"), "$.passes[3].blocks[0].times.hook_ns"),
    "null": (lambda d: d["plan"].update(seed=None), "$.plan.seed"),
    "no hash": (lambda d: d.pop("sha256"), "$"),
    "no samples": (lambda d: cell(d).pop("samples"), "$.passes[3].blocks[0].cells[2]"),
    "unknown copies": (lambda d: cell(d).update(copies="\x1b[2Jall"), "$.passes[3].blocks[0].cells[2].copies"),
    "version 0": (lambda d: d["plan"]["variants"][1].update(version=0), "$.plan.variants[1].version"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_wrong_types_are_refused_with_their_path(tmp_path: Path, document: Doc, name: str) -> None:
    change, place = RECORDS[name]
    change(document)
    fault = fault_of(written(tmp_path, document))
    assert fault.code == "record"
    assert fault.where.endswith(f"run.json: {place}")


def test_a_changed_block_is_named(tmp_path: Path, document: Doc) -> None:
    cell(document)["copy_ops"][1] += 1
    fault = fault_of(written(tmp_path, document))
    assert (fault.code, fault.where.rpartition(": ")[2]) == ("hash", "passes[3].blocks[0]")
    assert "content was changed" in fault.text
    block(document).update(sealed(block(document)))
    assert fault_of(written(tmp_path, document)).where.endswith("run.json")  # the run's own hash still tells


def test_a_changed_block_that_was_set_aside_is_named(tmp_path: Path, document: Doc) -> None:
    aside(document, rounds=[])
    assert load_run(written(tmp_path, sealed(document))).passes[3].set_aside[0].rounds == []
    document["passes"][3]["set_aside"][0]["times"]["ready_ns"] += 1
    fault = fault_of(written(tmp_path, sealed(document)))
    assert (fault.code, fault.where.rpartition(": ")[2]) == ("hash", "passes[3].set_aside[0]")


def test_a_pass_that_was_dropped_is_noticed(tmp_path: Path, document: Doc) -> None:
    del document["passes"][2]
    assert fault_of(written(tmp_path, document)).code == "hash"


def test_unknown_major_says_what_is_known(tmp_path: Path, document: Doc) -> None:
    fault = fault_of(written(tmp_path, document | {"schema": "cpubench.run/2"}))
    assert fault.code == "schema_version"
    assert "cpubench.run/2" in fault.text
    assert "cpubench.run/1" in fault.text


@pytest.mark.parametrize("schema", ["cpubench.block/1", "x\n", 7, None, ["cpubench.run/1"]])
def test_other_files_are_no_run(tmp_path: Path, document: Doc, schema: Any) -> None:
    assert fault_of(written(tmp_path, document | {"schema": schema})).code == "schema"


def test_a_cell_that_failed_at_once_may_be_empty(tmp_path: Path, document: Doc) -> None:
    samples = cell(document)["samples"]
    cell(document).update(copy_ops=[], copy_elapsed_ns=[], error="EPERM")
    assert fault_of(written(tmp_path, reseal(document))).code == "sums"  # samples of no copy would only be half shown
    cell(document).update(samples={name: [] for name in samples})
    assert load_run(written(tmp_path, reseal(document))).passes[3].blocks[0].cells[2].error == "EPERM"
    cell(document).update(error=None)
    assert fault_of(written(tmp_path, reseal(document))).code == "length"


def test_a_big_run_loads_in_bounded_time(tmp_path: Path) -> None:
    variants = made_wide_variants(256, 40)
    file = written(tmp_path, made_run(60, cpus=256, samples=3, variants=variants))
    start = time.perf_counter()
    run = load_run(file)
    took = time.perf_counter() - start
    assert (len(run.passes), len(run.plan.variants)) == (60, 80)
    assert took < 5  # 0.5 to 0.8 s on a quiet host
