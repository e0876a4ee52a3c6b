"""Watts and levels compared: from windows alone, within one scope, level by level."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import pytest
from made import made_run
from made_watts import loaded, made_capped_run

from cpubench.analysis.compare import compare
from cpubench.analysis.levels import levels_of, stopping_logs
from cpubench.analysis.members import member
from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import Scenario
from cpubench.errors import UsageError
from cpubench.report.comparison import lists, show_comparison
from cpubench.results.records import Run
from cpubench.versus import tell

Doc = dict[str, Any]
EQUAL = Scenario("equal", "", dict.fromkeys(("spawn", "file", "switch", "lock", "memory"), 1.0), {})


@pytest.fixture(scope="module")
def reference() -> Doc:
    return make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")


@pytest.fixture(autouse=True)
def _no_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("made_watts.HOOKED", set())


def compared(reference: Doc, a: Doc, b: Doc) -> Doc:
    members = [[member(loaded(document), name, reference, EQUAL)] for name, document in (("a", a), ("b", b))]
    found = compare(members, reference, EQUAL)
    json.dumps(found, allow_nan=False)
    return found


def test_per_watt_is_compared_without_a_cap_and_at_each_level_of_both(reference: Doc) -> None:
    a = made_capped_run(24, seed=1)
    b = made_capped_run(24, seed=2, watts=0.8, caps={"as-is": (1.0, 1.0), "200W": (1.25, 0.9)}, host_id="other")
    doc = compared(reference, a, b)
    per_watt = doc["headline"]["per_watt"]
    assert per_watt["ratio"]["value"] == pytest.approx(1.25, rel=0.02)
    assert (per_watt["verdict"], per_watt["paired"]) == ("faster", False)
    assert doc["headline"]["per_core"]["ratio"]["value"] == pytest.approx(1.0, rel=0.02)
    (level,) = doc["levels"]
    assert (level["level"], level["source"]) == ("200W", "windows")
    assert level["headline"]["per_core"]["ratio"]["value"] == pytest.approx(1.0, rel=0.02)
    assert level["headline"]["per_watt"]["ratio"]["value"] == pytest.approx(0.6 / (0.8 * 0.9), rel=0.02)
    assert level["families"]["memory"]["per_watt"]["verdict"] == "slower"
    capped = level["rows"]
    assert {(row["copies"], row["cap"]) for row in capped} == {("cores", "200W")}
    assert {row["cap"] for row in doc["rows"]} == {"as-is"}  # who looks a row up by its name must find no other
    assert all(row["ratio"]["value"] == pytest.approx(1.0, rel=0.03) for row in capped)
    assert doc["refused"] == []


def test_levels_of_one_side_alone_are_not_compared_and_named(reference: Doc) -> None:
    a, b = made_capped_run(12, seed=1), made_run(12, seed=2)
    doc = compared(reference, a, b)
    assert doc["levels"] == []
    assert (
        doc["refused"]
        == [
            {"code": "cap", "text": "200W: not every run has windows at it"},
            {"code": "no_meter", "text": "per watt: B was measured without a meter"},
        ][:1]
    )
    assert doc["headline"]["per_watt"]["reason"] == "B was measured without a meter"
    assert doc["headline"]["per_core"]["ratio"]["value"] is not None


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"scope": "wall"}, "scope", "watts of package and wall are not compared"),
        ({"provenance": "external"}, "provenance", "watts of measured and external are not compared"),
    ],
)
def test_other_scopes_and_kinds_of_meters_are_refused(reference: Doc, fields: Doc, code: str, text: str) -> None:
    doc = compared(reference, made_capped_run(12, seed=1), made_capped_run(12, seed=2, power=fields))
    assert [one["code"] for one in doc["refused"]] == [code]
    assert text in doc["headline"]["per_watt"]["reason"]
    assert doc["levels"][0]["headline"]["per_watt"]["verdict"] == "not compared"
    assert doc["levels"][0]["headline"]["per_core"]["ratio"]["value"] is not None


def test_estimates_of_a_hypervisor_are_refused_on_both_sides(reference: Doc) -> None:
    a, b = (made_capped_run(12, seed=seed, power={"provenance": "estimated"}) for seed in (1, 2))
    assert [one["code"] for one in compared(reference, a, b)["refused"]] == ["estimated"]


def test_caps_of_other_scopes_are_other_levels(reference: Doc) -> None:
    doc = compared(reference, made_capped_run(12, seed=1), made_capped_run(12, seed=2, power={"cap_scope": "board"}))
    assert doc["levels"] == []
    assert doc["refused"] == [{"code": "cap", "text": "200W: the caps limit board and package"}]


def test_a_cap_that_was_not_shown_to_hold_is_said_beside_the_figure(reference: Doc) -> None:
    doc = compared(
        reference, made_capped_run(12, seed=1), made_capped_run(12, seed=2, states={"200W": "set_unverified"})
    )
    assert doc["levels"][0]["headline"]["per_core"]["reason"] == "cap verified in A, set_unverified in B"


def test_passes_that_drew_more_than_a_cap_are_said_whatever_was_shown_before_them(reference: Doc) -> None:
    a, b = made_capped_run(12, seed=1), made_capped_run(12, seed=2, watts=2.5)  # 98 and 246 W under 200 W
    claim = compared(reference, a, b)["levels"][0]["headline"]["per_watt"]
    assert claim["reason"] == "cap verified in A, over_cap in B"
    elsewhere = made_capped_run(12, seed=2, watts=2.5, power={"cap_scope": "board"})  # no meter of what is limited
    other = made_capped_run(12, seed=3, watts=2.5, power={"cap_scope": "board"})
    assert compared(reference, elsewhere, other)["levels"][0]["headline"]["per_watt"]["reason"] is None


def test_runs_without_watts_have_the_claims_that_they_had(reference: Doc) -> None:
    doc = compared(reference, made_run(12, seed=1), made_run(12, seed=2))
    assert (doc["levels"], doc["refused"]) == ([], [])
    assert doc["headline"]["per_watt"]["reason"] == "no_meter"
    assert doc["claims"] == 29


def test_watts_that_are_to_be_merged_are_compared_once_they_are_there(reference: Doc) -> None:
    later = {"meter": "csv", "scope": "", "provenance": ""}
    doc = compared(reference, made_capped_run(12, seed=1), made_capped_run(12, seed=2, power=later))
    assert doc["headline"]["per_watt"]["reason"] == "watts are to be merged with a run"
    assert {"code": "to_merge", "text": "per watt: watts are to be merged with a run"} in doc["refused"]
    there = later | {"scope": "wall", "provenance": "external"}
    doc = compared(reference, *(made_capped_run(12, seed=seed, power=there) for seed in (1, 2)))
    assert doc["headline"]["per_watt"]["ratio"]["value"] == pytest.approx(1, rel=0.02)


def test_watts_that_were_merged_did_not_decide_on_the_stop() -> None:
    for meter, told in (("csv", False), ("cmd", True)):
        run = loaded(made_capped_run(9, power={"meter": meter}))
        logs = stopping_logs(run.plan, "200W", levels_of(run)["200W"])
        assert ("200W per_watt whole" in logs, "200W whole" in logs) == (told, True)


def only_capped(seed: int, **obtained: Any) -> Doc:
    """A run without as-is, as all are that somebody else has capped, whose rows had these things."""
    document = made_capped_run(12, seed=seed, caps={"200W": (1.0, 1.0)}, host_id=f"host{seed}")
    for one in document["passes"]:
        for block in one["blocks"]:
            for window in block["windows"]:
                for cell in window["cells"]:
                    cell["obtained"] = dict(obtained)
    return document


def test_rows_of_other_files_are_refused_where_there_are_only_levels_too(reference: Doc) -> None:
    a, b = only_capped(1, file_system="ext4"), only_capped(2, file_system="tmpfs")
    with pytest.raises(UsageError, match="nothing can be compared: different file systems: ext4 in A, tmpfs in B"):
        compared(reference, a, b)
    for document, one in ((a, "ext4"), (b, "ext4")):
        for window in (w for p in document["passes"] for block in p["blocks"] for w in block["windows"]):
            for cell in window["cells"]:
                cell["obtained"]["file_system"] = "tmpfs" if window["family"] == "file" and document is b else one
    doc = compared(reference, a, b)
    (level,) = doc["levels"]
    told = {row["name"]: row["reason"] for row in level["rows"] if row["family"] == "file"}
    assert set(told.values()) == {"different file systems: ext4 in A, tmpfs in B"}
    assert {one["code"] for one in doc["refused"]} == {"file_system"}
    assert "different file systems" in level["headline"]["per_core"]["reason"]
    assert level["families"]["memory"]["per_core"]["ratio"]["value"] is not None


def test_other_pages_refuse_their_rows_and_are_said_in_the_whole_at_levels_too(reference: Doc) -> None:
    a, b = only_capped(1, huge_ppm=0), only_capped(2, huge_ppm=1_000_000)
    (level,) = compared(reference, a, b)["levels"]
    assert all(row["ratio"]["value"] is None for row in level["rows"])
    for made in (level["headline"]["per_core"], level["headline"]["per_watt"], level["families"]["memory"]["per_core"]):
        assert made["ratio"]["value"] is not None
        assert made["reason"].endswith("different page sizes")


def test_what_is_said_of_levels_reaches_the_page(reference: Doc, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = made_capped_run(12, seed=1), made_capped_run(12, seed=2, states={"200W": "over_cap"}, host_id="other")
    for one in b["passes"]:
        for block in one["blocks"]:
            for window in block["windows"]:
                if block["cap"] == "200W" and window["family"] == "file":
                    for cell in window["cells"]:
                        cell |= {"copy_ops": [], "copy_elapsed_ns": [], "error": "EIO"}
    doc = compared(reference, a, b)
    out = io.StringIO()
    show_comparison(doc, out)
    text = " ".join(out.getvalue().split())
    assert "all at 200W cap verified in A, over_cap in B" in text
    assert "at 200W" in next(line for line in dict(lists(doc))["Not compared"] if "EIO" in line[0])[1]
    assert tell(doc | {"slower": [], "fail_band_percent": 3.0}, json_=False, markdown=True) == 0
    assert "scored rows are not compared" in capsys.readouterr().err


def test_blocks_under_caps_are_in_the_noise_of_a_side(reference: Doc) -> None:
    a, b = only_capped(1), only_capped(2)
    for one in a["passes"][:2]:
        environment = one["blocks"][0]["environment"]
        environment["after"]["others_ns"] = environment["before"]["others_ns"] + 10**12
    side = compared(reference, a, b)["sides"]["a"]
    assert side["noise"]["blocks"] == {"contended": pytest.approx(2 / 12)}
    assert side["runs"][0]["passes"] == 12
