"""Runs of tasks in the report: beside a run or given, of its host and of no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from made_reports import candidate, reference_of, tasks_of
from made_watts import made_power

from cpubench.errors import UsageError
from cpubench.report.html import page as pages
from cpubench.results.windows import Level
from cpubench.vendor import report_document

pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")


def blocks(document: dict[str, Any]) -> list[Any]:
    return next(one for one in pages.sections_of(document) if one.name == "tasks").blocks


def test_tasks_beside_a_run_and_given_ones_are_shown_the_newest_of_each(tmp_path: Path) -> None:
    reference = reference_of(tmp_path)
    a, b, c = (candidate(tmp_path / name, at) for at, name in enumerate("abc", 1))
    tasks_of(a, "host1")
    given = tasks_of(tmp_path / "given", "host2", 2.0)
    newer = tasks_of(tmp_path / "newer", "host1", 3.0, {"created_utc": "2026-02-01T00:00:00Z", "seed": 2})
    document = report_document([a, b, c], reference=reference, tasks=[str(given), f"A={newer}"])
    assert [len(one["tasks"]) for one in document["candidates"]] == [2, 1, 0]
    named = {block.name: block for block in blocks(document) if hasattr(block, "name")}
    assert [row[-1] for row in named["task-runs"].rows] == ["no, there is a newer one", "yes", "yes"]
    seconds = {tuple(row[:2]): float(row[2]) for row in named["phases-T1"].rows}
    name = "  T1[verify-heavy,light]"
    assert seconds[f"A{name}", "test"] / seconds[f"B{name}", "test"] == pytest.approx(1.5, rel=0.01)
    assert [row[1] for row in named["task-rates"].rows[:2]] == ["A", "B"]
    text = " ".join(sentence for block in blocks(document) for sentence in getattr(block, "sentences", ()))
    assert "No run of tasks of C." in text
    assert "Not the same on all" not in text


def test_tasks_without_a_cap_are_shown_before_newer_ones_under_one(tmp_path: Path) -> None:
    reference = reference_of(tmp_path)
    a, b = (candidate(tmp_path / name, at) for at, name in enumerate("ab", 1))
    tasks_of(a, "host1")
    level = Level(name="100W", state="verified", text="holds", watts=100.0)
    power = msgspec.to_builtins(made_power([level]))
    later = {"created_utc": "2026-02-01T00:00:00Z", "seed": 2, "cap": "100W", "power": power}
    given = [tasks_of(tmp_path / f"capped{at}", f"host{at}", 3.0, later) for at in (1, 2)]
    document = report_document([a, b], reference=reference, tasks=[str(one) for one in given])
    rows = next(one for one in blocks(document) if getattr(one, "name", "") == "task-runs").rows
    assert [(row[0], row[4], row[-1]) for row in rows] == [
        ("A", "100W (verified)", "no, there is one without a cap"), ("A", "none set", "yes"),
        ("B", "100W (verified)", "yes"),
    ]  # fmt: skip
    text = " ".join(sentence for block in blocks(document) for sentence in getattr(block, "sentences", ()))
    assert "Not the same on all, so times are of different work: power cap." in text


def test_without_tasks_one_sentence_says_how_to_have_them(tmp_path: Path) -> None:
    document = report_document([candidate(tmp_path / "a", 1)], reference=reference_of(tmp_path))
    (block,) = blocks(document)
    assert block.sentences == [
        "No figures: no run of tasks is beside these runs or was given (`cpubench tasks run`, `report --tasks`)."
    ]


def test_tasks_of_another_host_or_of_two_candidates_are_refused(tmp_path: Path) -> None:
    reference = reference_of(tmp_path)
    a, b = candidate(tmp_path / "a", 1), candidate(tmp_path / "b", 1, 1.1, id="again")
    given = tasks_of(tmp_path / "given", "host1")
    with pytest.raises(UsageError, match="is of the host of A and B: say which, as A=PATH"):
        report_document([a, b], reference=reference, tasks=[str(given)])
    one = report_document([a, b], reference=reference, tasks=[f"B={given}"])
    assert [len(made["tasks"]) for made in one["candidates"]] == [0, 1]
    stranger = tasks_of(tmp_path / "stranger", "host9")
    for text in (str(stranger), f"A={stranger}"):
        with pytest.raises(UsageError, match="is of the host host9, which is not that of a candidate's runs"):
            report_document([a], reference=reference, tasks=[text])
    tasks_of(a, "host9")
    with pytest.raises(UsageError, match="host9"):
        report_document([a], reference=reference)


def test_tasks_of_different_work_are_not_put_beside_each_other_in_silence(tmp_path: Path) -> None:
    a, b = candidate(tmp_path / "a", 1), candidate(tmp_path / "b", 2)
    tasks_of(a, "host1")
    tasks_of(b, "host2", fields={"programs": {"cc": {"version": "gcc 14"}}, "inputs_sha256": "1" * 64})
    document = report_document([a, b], reference=reference_of(tmp_path))
    text = " ".join(sentence for block in blocks(document) for sentence in getattr(block, "sentences", ()))
    assert "Not the same on all, so times are of different work: inputs, programs." in text
