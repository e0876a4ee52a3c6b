"""What is missing is null by name, and silences exactly the composites that need it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from made import made_run, made_variants

from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.results.records import Missing, Run

Doc = dict[str, Any]


def loaded(document: Doc) -> Run:
    return msgspec.convert(document, Run)


def reference() -> Doc:
    return make_reference(loaded(made_run(8, noise=0)), "made-reference")


def drop(document: Doc, passes: range, kernel: str, copies: str) -> None:
    for number in passes:
        block = document["passes"][number]["blocks"][0]
        block["cells"] = [c for c in block["cells"] if (c["kernel"], c["copies"]) != (kernel, copies)]


def test_a_missing_row_makes_its_family_and_the_headline_null_by_name() -> None:
    document = made_run(16)
    drop(document, range(9), "file_create", "cores")
    doc = score(loaded(document), reference())
    for made in (doc["headline"]["per_core"], doc["headline"]["equal_weights"], doc["families"]["file"]["per_core"]):
        assert made["value"] is None
        assert made["reason"] == "missing: file_create@cores (in 7 of 16 passes: not measured)"
    assert doc["families"]["file"]["scaling_efficiency"]["value"] is None
    assert doc["families"]["file"]["speed"]["value"] is not None
    assert doc["headline"]["speed"]["value"] is not None
    assert doc["families"]["spawn"]["per_core"]["value"] is not None
    assert not doc["publishable"]
    assert doc["covers"] == pytest.approx(0.8)
    assert {"code": "missing", "where": "file_create@cores"}.items() <= doc["notes"][0].items()


def test_skipped_and_unplanned_rows_say_so() -> None:
    left = [v for v in made_variants(2) if v.kernel not in ("file_create", "lock_mutex")]
    doc = score(loaded(made_run(8, variants=left, skipped=[Missing("file_create", "tmpfs too small")])), reference())
    assert doc["families"]["file"]["speed"]["reason"] == "missing: file_create@1 (skipped: tmpfs too small)"
    assert doc["families"]["lock"]["speed"]["reason"] == "missing: lock_mutex[cs=200ns]@1 (not in the plan)"
    assert "file_create@cores" in doc["headline"]["per_core"]["reason"]
    assert "lock_mutex[cs=200ns]@cores" in doc["headline"]["per_core"]["reason"]
    row = next(v for v in doc["variants"] if v["name"] == "file_create")
    assert row["ns_per_op"] == row["watts"]
    assert (row["ns_per_op"]["value"], row["ns_per_op"]["reason"]) == (None, "tmpfs too small")
    assert (row["family"], row["scored"]) == ("file", True)


def test_a_family_without_weight_does_not_silence_the_headline() -> None:
    left = [v for v in made_variants(2) if v.kernel != "file_create"]
    doc = score(loaded(made_run(8, variants=left)), reference(), "chat")  # a chat host writes no files
    assert doc["headline"]["per_core"]["value"] is not None
    assert doc["headline"]["equal_weights"]["value"] is None
    assert not doc["publishable"]


def test_passes_without_a_cell_leave_only_the_composites_that_need_it() -> None:
    document = made_run(20)
    drop(document, range(3), "file_create", "cores")
    doc = score(loaded(document), reference())
    assert doc["families"]["file"]["per_core"]["passes"] == 17
    assert doc["headline"]["per_core"]["passes"] == 17
    assert doc["families"]["spawn"]["per_core"]["passes"] == 20
    assert doc["headline"]["speed"]["passes"] == 20
    assert doc["publishable"]
    drop(document, range(3, 5), "file_create", "cores")
    drop(document, range(5, 6), "spawn_fork_exec", "cores")
    doc = score(loaded(document), reference())
    assert doc["headline"]["per_core"]["passes"] == 14
    assert {n["where"] for n in doc["notes"] if n["code"] == "left_out"} == {
        "file per_core", "file scaling_efficiency", "headline per_core", "headline equal_weights",
    }  # fmt: skip
    assert not doc["publishable"]


def test_few_passes_have_rows_but_no_composites() -> None:
    doc = score(loaded(made_run(7)), reference())
    assert doc["headline"]["per_core"]["reason"] == "8 passes are needed; 7 of 7 are complete"
    assert doc["headline"]["per_core"]["passes"] == 7
    assert all(row["ns_per_op"]["value"] for row in doc["variants"])
    assert "passes" in {note["code"] for note in doc["notes"]}
    assert not doc["publishable"]
    one = score(loaded(made_run(1)), reference())["variants"][0]["ns_per_op"]
    assert (one["low"], one["high"], one["reason"]) == (None, None, "an interval needs two passes")
    assert score(loaded(made_run(0)), reference())["variants"][0]["ns_per_op"]["reason"] == "not measured"
