"""Runs of one candidate together, and words on page one that must hold for all of those that they name."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from made import made_run
from made_reports import candidate, put, reference_of

from cpubench.analysis.verdicts import BAND, MARGIN
from cpubench.errors import UsageError
from cpubench.report.html.answers import answer_rows
from cpubench.report.html.blocks import Text
from cpubench.report.html.evidence import method
from cpubench.report.html.summary import summary
from cpubench.results.records import Divisor
from cpubench.vendor import report_document

Doc = dict[str, Any]
CORES = Divisor(kind="physical_core", n=2)


def run(folder: Path, at: int, host: Doc | None = None, **made: Any) -> Path:
    """One of several runs of the host "h"."""
    made = {"divisor": CORES, "created_utc": f"2026-01-0{at + 1}T00:00:00Z", **made}
    document = made_run(12, seed=at, host_id="h", id=f"run-{at}", **made)
    return put(folder / f"run{at}", document, **{"hostname": "h", "id": "h", "virtual": False, **(host or {})})


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Doc:
    root = tmp_path_factory.mktemp("three")
    runs = [candidate(root / name, at, 1 + at / 1000, noise=0.003) for at, name in enumerate("abc")]
    return report_document(runs, reference=reference_of(root))


def test_runs_that_are_counted_otherwise_are_no_candidate(tmp_path: Path) -> None:
    reference = reference_of(tmp_path)
    run(tmp_path / "same", 0)
    run(tmp_path / "same", 1, divisor=Divisor(kind="granted_cpu", n=1))
    told = r"run1/run\.json: counts per 1 x granted_cpu, run0 of the same host per 2 x physical_core: give"
    with pytest.raises(UsageError, match=told):
        report_document([tmp_path / "same"], reference=reference)
    apart = report_document([tmp_path / "same" / name for name in ("run0", "run1")], reference=reference)
    assert [one["score"]["divisor"]["kind"] for one in apart["candidates"]] == ["physical_core", "granted_cpu"]


def test_facts_that_are_not_the_same_in_all_runs_are_said_of_each(tmp_path: Path) -> None:
    run(tmp_path / "same", 0, {"governor": "performance", "cpu_model": "M", "virtual": True, "smt": True})
    run(tmp_path / "same", 1, {"governor": "powersave", "cpu_model": "N", "reasons": {"smt": "EACCES"}})
    others = [candidate(tmp_path / name, at, host={"cpu_model": "N"}, divisor=CORES)
              for at, name in enumerate("bc", 5)]  # fmt: skip
    made = report_document([tmp_path / "same", *others], reference=reference_of(tmp_path))
    facts = made["candidates"][0]["facts"]
    assert (facts["governor"], facts["CPU"], facts["host"]) == ("performance or powersave", "M or N", "h")
    assert (facts["SMT"], facts["turbo"]) == ("yes or not known: EACCES", None)
    found = {one["id"]: one for one in made["refusals"] if one["id"] in ("R6", "R9")}
    assert found["R6"]["who"] == ["A"]  # its newest run was not in a virtual machine
    assert found["R9"]["who"] == ["A"]  # three hosts have had an N, and one an M


def test_equal_is_said_of_those_that_were_shown_to_be_so_in_pairs(three: Doc) -> None:
    doc = copy.deepcopy(three)
    doc["answers"][0]["tiers"] = [["A", "B", "C"]]
    claims = {(pair["a"], pair["b"]): pair["headline"]["per_core"] for pair in doc["pairs"]}
    for words, said in (("equivalent equivalent equivalent", "A, B, C equal"),
                        ("equivalent equivalent faster", "A or B or C"),
                        ("inconclusive equivalent equivalent", "A or B or C")):  # fmt: skip
        for claim, word in zip(claims.values(), words.split(), strict=True):
            claim["verdict"] = word
        assert answer_rows(doc)[0][1] == said
    assert list(claims) == [("A", "B"), ("A", "C"), ("B", "C")]


def test_what_is_said_of_all_holds_for_each(three: Doc) -> None:
    doc = copy.deepcopy(three)
    doc["candidates"][1]["score"]["covers"] = 0.5
    assert "the measured families cover 50 % of it" in summary(doc).scale
    for pair in doc["pairs"]:
        pair["band_percent"] = 7.0  # the A/A floor of this one
    said = " ".join(text for block in method(doc).blocks if isinstance(block, Text) for text in block.sentences)
    assert f"beyond {100 * BAND:g} % or the A/A floor of the pair" in said
    assert f"equivalent within {100 * MARGIN:g} %" in said


def test_turbo_is_a_difference_of_configuration(tmp_path: Path) -> None:
    pair = [candidate(tmp_path / name, at, host={"turbo": name == "a"}) for at, name in enumerate("ab")]
    made = report_document(pair, reference=reference_of(tmp_path))
    assert {"what": "turbo", "a": "true", "b": "false"} in made["pairs"][0]["differences"]
    (rule,) = [one for one in made["refusals"] if one["id"] == "R8"]
    assert rule["text"].endswith(": turbo")
