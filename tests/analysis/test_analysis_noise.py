"""What a score says of noise, and that no number depends on it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from broken import block
from made import made_environment, made_run

from cpubench.analysis.compare import compare
from cpubench.analysis.members import member
from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import load_scenarios
from cpubench.analysis.score import score
from cpubench.results.files import sealed
from cpubench.results.records import Run

Doc = dict[str, Any]
BUSY = {"others_ns": 10**9, "steal_ns": 10**9}


def scored(document: Doc) -> Doc:
    return score(msgspec.convert(document, Run), make_reference(msgspec.convert(made_run(), Run), "made"))


def disturbed(passes: int, flagged: int, **moved: int) -> Doc:
    """A run of which the first blocks had what ``moved``."""
    return made_run(passes, environment=lambda at: made_environment(**(moved if at < flagged else {})))


def codes(doc: Doc) -> set[str]:
    return {note["code"] for note in doc["notes"]}


def test_more_than_a_fifth_of_the_blocks_forbids_to_publish() -> None:
    fifth, more = scored(disturbed(20, 4, **BUSY)), scored(disturbed(20, 5, **BUSY))
    assert fifth["publishable"]
    assert fifth["noise"]["blocks"] == {
        "count": 20, "looked": 20, "flagged": 4, "set_aside": 0, "flags": {"stolen": 4, "contended": 4},
    }  # fmt: skip
    assert not more["publishable"]
    (text,) = [note["text"] for note in more["notes"] if note["code"] == "noisy"]
    assert text == "5 of 20 blocks were disturbed (stolen 5, contended 5): more than a fifth"


def test_flags_change_no_number() -> None:
    quiet, noisy = made_run(20), disturbed(20, 20, **BUSY)
    for one in noisy["passes"]:
        for cell in one["blocks"][0]["cells"]:
            cell["samples"]["moved"] = cell["samples"]["majflt"] = [1, 1]
    a, b = scored(quiet), scored(noisy)
    rows = [[{**row, "flags": []} for row in doc["variants"]] for doc in (a, b)]
    assert rows[0] == rows[1]
    assert (a["headline"], a["families"]) == (b["headline"], b["families"])
    assert all(row["flags"] == ["migrated", "faulted"] for row in b["variants"])
    assert b["noise"]["samples"] == {"count": 680, "flags": {"migrated": 680, "faulted": 680}}
    assert set(b["badges"]) == {"migrated", "faulted"}
    assert a["badges"] == {}


def test_a_run_without_evidence_says_so_and_may_be_published() -> None:
    doc = scored(made_run(12, environment=lambda at: {}))
    assert (doc["noise"]["looked"], doc["publishable"]) == (False, True)
    assert "no_evidence" in codes(doc)
    some = scored(made_run(12, environment=lambda at: {} if at < 3 else made_environment()))
    assert (some["noise"]["looked"], some["noise"]["blocks"]["looked"]) == (True, 9)
    assert "3 of 12 blocks have no evidence" in next(n["text"] for n in some["notes"] if n["code"] == "no_evidence")
    assert codes(scored(made_run(12))) == {"estimate"}


def test_counters_that_are_not_told_are_doubts_with_their_reason() -> None:
    def environment(at: int) -> Doc:
        made = made_environment()
        for shot in (made["before"], made["after"]):
            shot.update(steal_ns=None, core_throttles=None, package_throttles=None)
        return made | {"reasons": {"steal_ns": "/proc/stat: denied", "others_ns": "/proc: in part"}}

    doubts = scored(made_run(8, environment=environment))["noise"]["doubts"]
    assert doubts == {"stolen": "/proc/stat: denied", "contended": "/proc: in part", "hot": "not told"}


def test_logins_that_change_are_told() -> None:
    assert "logins" not in codes(scored(made_run(8)))
    doc = scored(disturbed(8, 1, logins=2))
    assert [n["text"] for n in doc["notes"] if n["code"] == "logins"] == [
        "between 0 and 2 sessions of users were open: they may work"
    ]
    assert doc["publishable"]


def test_busy_processes_add_up_by_name() -> None:
    def environment(at: int) -> Doc:
        busiest = [{"name": "gcc", "took_ns": 10**7}, {"name": f"short{at}", "took_ns": 10**6}]
        return made_environment() | {"busiest": busiest}

    busiest = scored(made_run(10, environment=environment))["noise"]["busiest"]
    assert busiest[0] == {"name": "gcc", "share": pytest.approx(0.005)}  # of two CPUs
    assert len(busiest) == 3


def test_blocks_that_were_set_aside_are_counted_and_are_in_no_number() -> None:
    document = made_run(10)
    plain = scored(document)
    slow = sealed(block(made_run(10, slower=3.0)) | {"environment": made_environment(**BUSY)})
    document["passes"][3]["set_aside"] = [slow]
    doc = scored(document)
    assert doc["noise"]["blocks"] == plain["noise"]["blocks"] | {"set_aside": 1}
    assert doc["headline"] == plain["headline"]


def compared(a: Doc, b: Doc) -> Doc:
    reference = make_reference(msgspec.convert(made_run(), Run), "made")
    equal = load_scenarios()["equal"]
    return compare([[member(msgspec.convert(one, Run), name, reference, equal)] for name, one in (("a", a), ("b", b))],
                   reference, equal)  # fmt: skip


def test_sides_that_were_disturbed_otherwise_are_told() -> None:
    b = made_run(20, seed=1, environment=lambda at: made_environment(**(BUSY if at < 3 else {})))
    doc = compared(made_run(20), b)
    assert doc["sides"]["a"]["noise"] == {
        "looked": True, "flagged": 0, "blocks": {}, "samples": {}, "set_aside": 0,
    }  # fmt: skip
    assert doc["sides"]["b"]["noise"]["blocks"] == {"stolen": 0.15, "contended": 0.15}
    assert doc["unalike"] == ["The sides were not disturbed alike: flagged blocks 0 % of A, 15 % of B"]
    tenth = made_run(20, seed=1, environment=lambda at: made_environment(**(BUSY if at < 2 else {})))
    assert compared(made_run(20), tenth)["unalike"] == []
    for one in tenth["passes"][:5]:
        for cell in one["blocks"][0]["cells"]:
            cell["samples"]["moved"] = [1, 0]
    assert compared(made_run(20), tenth)["unalike"] == [
        "The sides were not disturbed alike: migrated samples 0 % of A, 12 % of B"
    ]


def test_one_side_without_evidence_is_told_and_two_are_alike() -> None:
    blind = [made_run(20, seed=seed, environment=lambda at: {}) for seed in (1, 2)]
    doc = compared(made_run(20), blind[0])
    assert doc["unalike"][0].startswith("nobody looked at all blocks of B")
    assert doc["sides"]["b"]["noise"]["flagged"] is None
    assert compared(*blind)["unalike"] == []
