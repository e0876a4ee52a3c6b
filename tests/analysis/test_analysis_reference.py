"""A reference is whole, sealed and says what one core did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from made import made_run

from cpubench.analysis.reference import load_reference, make_reference
from cpubench.errors import UsageError
from cpubench.results.files import canonical, sealed
from cpubench.results.records import Missing, Run


def loaded(document: dict[str, Any]) -> Run:
    return msgspec.convert(document, Run)


def test_reference_holds_the_scored_rows_per_core(tmp_path: Path) -> None:
    made = make_reference(loaded(made_run(8, cpus=4, noise=0)), "m1", "a made machine")
    assert set(made["variants"]) == {
        "spawn_fork_exec[rss=384M]", "file_create", "switch_pipe[place=same]", "switch_pipe[place=other]",
        "lock_mutex[cs=200ns]", "mem_chase[set=16K]", "mem_chase[set=256M]",
    }  # fmt: skip
    row = made["variants"]["mem_chase[set=256M]"]
    assert (row["family"], row["version"]) == ("memory", 1)
    assert row["ns_per_op"]["value"] == pytest.approx(110)
    assert row["per_core_ops_per_s"]["value"] == pytest.approx(1e9 / 110)
    pair = made["variants"]["lock_mutex[cs=200ns]"]  # two copies, each on two of four cores
    assert pair["per_core_ops_per_s"]["value"] == pytest.approx(1e9 / 500 / 2)
    assert (made["name"], made["suite"], made["divisor_kind"]) == ("m1", 1, "vcpu")
    file = tmp_path / "reference.json"
    file.write_bytes(canonical(made))
    assert load_reference(file) == made


def test_incomplete_run_makes_no_reference() -> None:
    with pytest.raises(UsageError, match="8 passes; missing: spawn"):
        make_reference(loaded(made_run(7)), "short")
    document = made_run(8)
    for one in document["passes"]:
        one["blocks"][0]["cells"] = [c for c in one["blocks"][0]["cells"] if c["kernel"] != "file_create"]
    with pytest.raises(UsageError, match=r"missing: file_create@1, file_create@cores"):
        make_reference(loaded(document), "holes")
    skipped = [Missing("mem_tlb", "no memory", scored=True), Missing("io_uring", "EPERM")]
    with pytest.raises(UsageError, match=r"missing: mem_tlb$"):
        make_reference(loaded(made_run(8, skipped=skipped)), "skipped")
    assert make_reference(loaded(made_run(8, skipped=skipped[1:])), "shown row skipped")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: d["variants"]["file_create"]["ns_per_op"].update(value=0), "record"),
        (lambda d: d["variants"]["file_create"]["ns_per_op"].update(value=None), "record"),
        (lambda d: d.update(variants={}), "record"),
        (lambda d: d.update(schema="cpubench.reference/9"), "schema_version"),
        (lambda d: d.update(schema="cpubench.run/1"), "schema"),
        (lambda d: d.update(name="other"), "hash"),
    ],
)
def test_broken_reference_is_refused(tmp_path: Path, change: Any, code: str) -> None:
    made = make_reference(loaded(made_run(8)), "m1")
    change(made)
    file = tmp_path / "reference.json"
    file.write_bytes(canonical(made if code == "hash" else sealed(made)))
    with pytest.raises(UsageError) as caught:
        load_reference(file)
    assert caught.value.code == code
    assert "reference.json" in caught.value.where


def test_missing_reference_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: there is no such file"):
        load_reference(tmp_path / "none.json")
