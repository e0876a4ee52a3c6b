"""Collecting the results of a fleet: what is indexed, what is refused, and that nothing is half done."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from made_fleet import GIB, SUITE, cell, document_of, fail, put_run, unit
from made_reports import EVIL, reference_of
from made_watts import made_capped_run

from cpubench.analysis.reference import load_reference
from cpubench.analysis.score import score
from cpubench.entry import main
from cpubench.fleet import collect as collecting
from cpubench.fleet.collect import Rules, rules_of
from cpubench.fleet.index import FILE, open_index
from cpubench.fleet.layout import FAILURE, RUN, SUM
from cpubench.fleet.results import collect
from cpubench.recheck import validated
from cpubench.report.fleet import MOST, show_fleet
from cpubench.results.files import canonical, sealed
from cpubench.results.load import load_run
from cpubench.results.packed import sum_line
from cpubench.results.records import Divisor


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    (tmp_path / "lab").mkdir()
    reference_of(tmp_path)
    return tmp_path / "lab"


def rules(fleet: Path, full: bool = False) -> Rules:
    return rules_of(fleet.parent / "reference.json", "equal", validated if full else None)


def told(fleet: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Any]:
    """Exit code and document of ``fleet collect --json``."""
    code = main(["fleet", "collect", str(fleet), "--reference", str(fleet.parent / "reference.json"), "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def test_points_are_those_of_the_score(fleet: Path) -> None:
    files = [unit(fleet, f"h{seed}", seed, slower=1 + seed / 10) for seed in range(3)]
    made = collect(fleet, rules(fleet))
    scale = load_reference(fleet.parent / "reference.json")
    wanted = [score(load_run(file), scale)["headline"]["per_core"]["value"] for file in files]
    assert [one["points"] for one in made["units"]] == pytest.approx(wanted, rel=1e-12)
    assert made["medians"] == [{"model": "made CPU", "kind": "vcpu", "cap": "as-is", "cap_scope": "", "runs": 3,
                                "median": wanted[1]}]  # fmt: skip


def test_only_what_is_new_is_scored(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit(fleet, "a", 1)
    first = collect(fleet, rules(fleet))
    unit(fleet, "b", 2)
    scored = []
    real = collecting.row_of
    monkeypatch.setattr(collecting, "row_of", lambda task, *more: scored.append(task.path) or real(task, *more))
    second = collect(fleet, rules(fleet))
    assert scored == [f"b/as-is-r1-{SUITE}"]
    assert (second["collected"]["new"], second["collected"]["same"]) == (1, 1)
    assert second["units"][0] == first["units"][0]
    shutil.rmtree(fleet / "a")
    third = collect(fleet, rules(fleet))
    assert (third["collected"]["gone"], [one["unit"] for one in third["units"]]) == (1, ["b"])


def test_an_index_is_disposable_and_follows_the_rules(fleet: Path, tmp_path: Path) -> None:
    unit(fleet, "a", 1)
    first = collect(fleet, rules(fleet))
    (fleet / FILE).unlink()
    again = collect(fleet, rules(fleet))
    assert again == first
    other = collect(fleet, rules_of(tmp_path / "reference.json", "coding"))
    assert other["collected"]["new"] == 1


def test_repeats_of_a_host_are_one_unit(fleet: Path) -> None:
    for repeat in (1, 2, 3):
        document = document_of("a", repeat, slower=1 + repeat / 100)
        put_run(fleet, cell("a", repeat), document)
    (one,) = collect(fleet, rules(fleet))["units"]
    assert one["runs"] == 3
    assert one["points"] == pytest.approx(1000 / 1.02, rel=0.03)


def test_a_level_is_scored_from_the_run_of_its_folder(fleet: Path) -> None:
    run = made_capped_run(caps={"200W": (1.25, 0.6)}, host_id="a")
    put_run(fleet, cell("a", cap="200W"), run)
    made = collect(fleet, rules(fleet))
    (one,) = made["units"]
    assert (one["cap"], one["faults"]) == ("200W", [])
    assert one["points"] == pytest.approx(1000 / 1.25, rel=0.03)
    put_run(fleet, cell("b", cap="100W"), made_capped_run(seed=3, host_id="b"))
    (bad,) = collect(fleet, rules(fleet))["bad"]
    assert (bad["code"], bad["text"]) == ("cap", "is at as-is, 200W, not at the 100W of its folder")


def test_medians_are_of_caps_that_limit_the_same(fleet: Path) -> None:
    for at, scope in enumerate(("package", "package", "board")):
        run = made_capped_run(caps={"200W": (1.25 + at, 0.6)}, seed=at, host_id=f"h{at}", power={"cap_scope": scope})
        put_run(fleet, cell(f"h{at}", cap="200W"), run)
    document = collect(fleet, rules(fleet))
    assert [(one["unit"], one["cap_scope"]) for one in document["units"]] == [
        ("h0", "package"), ("h1", "package"), ("h2", "board")]  # fmt: skip
    assert [(one["cap_scope"], one["units"]) for one in document["models"]] == [("board", 1), ("package", 2)]
    made = document["medians"]
    assert [(one["cap"], one["cap_scope"], one["runs"]) for one in made] == [
        ("200W", "board", 1), ("200W", "package", 2)]  # fmt: skip
    assert made[0]["median"] == pytest.approx(1000 / 3.25, rel=0.03)


def test_what_was_changed_on_the_way_counts_nowhere(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = unit(fleet, "a", 1)
    unit(fleet, "b", 2)
    assert told(fleet, capsys)[0] == 0
    document = json.loads(gzip.decompress(file.read_bytes()))
    document["passes"][0]["blocks"][0]["cells"][0]["copy_ops"][0] *= 2
    file.write_bytes(gzip.compress(canonical(document)))  # the sum is still that of the true one
    code, made = told(fleet, capsys)
    assert code == 1
    assert [one["unit"] for one in made["units"]] == ["b"]
    assert (made["bad"][0]["host"], made["bad"][0]["code"]) == ("a", "changed")
    put_run(fleet, cell("a"), document)  # and now a sum that fits
    assert "does not match its sha256" in told(fleet, capsys)[1]["bad"][0]["text"]


def test_cut_and_unfinished_results_are_a_line_each(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("cut", "no-sum", "odd-sum", "empty", "text", "other")
    folder = {name: unit(fleet, name, at).parent for at, name in enumerate(names)}
    (folder["no-sum"] / SUM).unlink()
    (folder["odd-sum"] / SUM).write_text("cut")
    for name, raw in (("cut", (folder["cut"] / RUN).read_bytes()[:-40]), ("empty", b""), ("text", b"{}")):
        (folder[name] / RUN).write_bytes(raw)
        (folder[name] / SUM).write_text(sum_line(raw, RUN))
    reference = str(fleet.parent / "reference.json")
    assert main(["fleet", "collect", str(fleet), "--reference", reference]) == 1
    out = capsys.readouterr().out
    assert "1 results of 1 hosts, 5 bad" in out
    assert {one["host"]: one["code"] for one in told(fleet, capsys)[1]["bad"]} == {
        "cut": "cut", "no-sum": "no_sum", "odd-sum": "sum", "empty": "empty", "text": "packed",
    }  # fmt: skip


def test_a_copy_of_a_run_does_not_count_twice(fleet: Path) -> None:
    document = document_of("a", 1)
    put_run(fleet, cell("a"), document)
    put_run(fleet, cell("b"), document)
    made = collect(fleet, rules(fleet))
    assert [one["unit"] for one in made["units"]] == ["a"]
    assert [one["runs"] for one in made["medians"]] == [1]
    assert made["bad"][0]["text"] == f"is the same run as a/as-is-r1-{SUITE}"


def test_a_host_that_was_exchanged_has_no_points(fleet: Path) -> None:
    put_run(fleet, cell("a", 1), document_of("a", 1))
    put_run(fleet, cell("a", 2), document_of("another", 2))
    (one,) = collect(fleet, rules(fleet))["units"]
    assert one["points"] is None
    assert "2 machines" in one["faults"][0]


def test_runs_that_are_counted_per_different_things_have_no_mean(fleet: Path) -> None:
    put_run(fleet, cell("a", 1), document_of("a", 1))
    put_run(fleet, cell("a", 2), document_of("a", 2, divisor=Divisor(kind="physical_core", n=2)))
    (one,) = collect(fleet, rules(fleet))["units"]
    assert one["points"] is None
    assert "counted per physical_core and per vcpu" in one["faults"][0]


def test_a_run_that_may_not_be_published_is_in_no_median(fleet: Path) -> None:
    unit(fleet, "a", 1)
    unit(fleet, "b", 2, passes=5)
    made = collect(fleet, rules(fleet))
    assert [one["points"] is None for one in made["units"]] == [False, True]
    assert "8 passes are needed" in " ".join(made["units"][1]["faults"])
    assert (made["models"][0]["units"], made["medians"][0]["runs"]) == (1, 1)


def test_failures_and_what_is_missing_are_rows(fleet: Path) -> None:
    unit(fleet, "a", 1)
    fail(fleet, cell("dead"), **{"class": "unreachable", "text": "no \x1b[2J route", "at": "2026-01-02T00:00:00Z"})
    fail(fleet, cell("a"), **{"class": "busy", "text": "it was, before", "at": ""})
    (fail(fleet, cell("odd")).parent / FAILURE).write_text("[")
    cells = [[host, "as-is", 1] for host in ("a", "dead", "odd", "late")]
    (fleet / "plan.json").write_text(json.dumps({"suite_hash": SUITE, "cells": cells}))
    made = collect(fleet, rules(fleet))
    assert [(one["host"], one["class"]) for one in made["failed"]] == [("dead", "unreachable"), ("odd", "unknown")]
    assert made["failed"][0]["text"].isprintable()
    assert made["missing"] == [{"host": "late", "cap": "as-is", "repeat": 1}]
    assert {one["host"]: one["results"] for one in made["hosts"]} == {"a": 1, "dead": 0, "late": 0, "odd": 0}


def test_a_failure_that_came_with_a_result_has_its_row(fleet: Path) -> None:
    for seed, kind in enumerate(("cap not given back", "timed out", "busy")):
        host = kind.split()[0]
        unit(fleet, host, seed)
        fail(fleet, cell(host), **{"class": kind, "text": "x", "at": ""})
    made = collect(fleet, rules(fleet))
    assert [(one["host"], one["class"]) for one in made["failed"]] == [
        ("cap", "cap not given back"), ("timed", "timed out"),
    ]  # fmt: skip
    assert (made["counts"]["results"], made["counts"]["failed"]) == (3, 2)


def test_what_is_printed_of_foreign_text_is_text(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit(fleet, "a", 1, EVIL)
    unit(fleet, "b", 2, passes=5)
    fail(fleet, cell("dead"), **dict.fromkeys(("class", "text", "at"), EVIL))
    reference = str(fleet.parent / "reference.json")
    assert main(["fleet", "collect", str(fleet), "--reference", reference]) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    assert all(text in out for text in ("<script>", "2 results of 2 hosts, 1 failed (2 new, 0 known)", "8 passes are"))


def test_a_table_that_is_cut_says_so(fleet: Path) -> None:
    unit(fleet, "a", 1)
    document = collect(fleet, rules(fleet))
    for count in (2 * MOST, 2 * MOST + 5):
        out = io.StringIO()
        show_fleet({**document, "models": document["models"] * count}, out)
        assert out.getvalue().count("made CPU (per vcpu)") == 2 * MOST
        assert ("and 5 more; --json has all" in out.getvalue()) == (count > 2 * MOST)


def test_results_of_another_plan_are_left_out_and_told(fleet: Path) -> None:
    for seed in range(3):
        unit(fleet, f"a{seed}", seed)
    put_run(fleet, cell("old", suite="f" * 12), document_of("old", 9))
    fail(fleet, cell("dead", suite="f" * 12), **{"class": "unreachable", "text": "x", "at": "y"})
    made = collect(fleet, rules(fleet))
    assert (made["counts"]["of_another_plan"], len(made["units"])) == (1, 3)
    assert [one["runs"] for one in made["medians"]] == [3]
    assert (made["failed"], "dead" in {one["host"] for one in made["hosts"]}) == ([], False)


def test_two_collectors_do_not_meet(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit(fleet, "a", 1)
    with open_index(fleet, rules(fleet).mark):
        code, made = told(fleet, capsys)
    assert (code, made["error"]["code"]) == (2, "busy")
    assert told(fleet, capsys)[0] == 0


def test_an_index_is_as_it_was_after_a_collector_died(fleet: Path) -> None:
    unit(fleet, "a", 1)
    first = collect(fleet, rules(fleet))

    def die() -> None:
        with open_index(fleet, rules(fleet).mark) as index:
            index.drop([f"a/as-is-r1-{SUITE}"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        die()
    assert collect(fleet, rules(fleet)) == first | {"collected": {"new": 0, "same": 1, "gone": 0}}


def broken_index(file: Path, kind: str) -> None:
    if kind == "folder":
        file.mkdir()
    elif kind == "text":
        file.write_text("no database, but longer than the header of one" * 9)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE theirs (x)")
        other.close()


@pytest.mark.parametrize(("kind", "code"), [("folder", "write"), ("text", "index"), ("theirs", "index")])
def test_what_is_no_index_of_ours_is_left_alone(
    fleet: Path, kind: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    unit(fleet, "a", 1)
    broken_index(fleet / FILE, kind)
    before = None if kind == "folder" else (fleet / FILE).read_bytes()
    exit_code, made = told(fleet, capsys)
    assert (exit_code, made["error"]["code"]) == (2, code)
    assert before is None or (fleet / FILE).read_bytes() == before


def test_a_folder_that_cannot_be_written_is_one_line(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit(fleet, "a", 1)
    fleet.chmod(0o555)
    try:
        if os.access(fleet, os.W_OK):
            pytest.skip("this user may write anywhere")
        code, made = told(fleet, capsys)
    finally:
        fleet.chmod(0o755)
    assert (code, made["error"]["code"]) == (2, "write")


def test_folders_that_are_no_fleet_say_what_is_wanted(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(fleet, capsys)[1]["error"]["code"] == "no_fleet"
    assert told(fleet / "none", capsys)[1]["error"]["code"] == "missing"
    unit(fleet / "one", "a", 1)
    assert "give one of them" in told(fleet, capsys)[1]["error"]["text"]


@pytest.mark.parametrize("command", ["score", "validate", "compare"])
def test_other_commands_say_what_reads_a_fleet(fleet: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    unit(fleet, "a", 1)
    (fleet / "plan.json").write_text("{}")
    assert main([command, str(fleet)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cpubench fleet collect" in line


def test_hosts_of_a_fleet_are_compared_by_their_folders(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit(fleet, "a", 1, noise=0.005)
    unit(fleet, "b", 2, noise=0.005, slower=1.3)
    reference = ["--reference", str(fleet.parent / "reference.json")]
    assert main(["compare", str(fleet / "a"), str(fleet / "b"), *reference, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["headline"]["per_core"]["verdict"] == "slower"


def test_in_full_a_run_that_says_two_things_is_bad(fleet: Path) -> None:
    """Columns of samples are of no figure: only `--full` looks at them."""
    unit(fleet, "a", 1)  # a run of eight passes by a plan of twelve: no stop that this plan makes
    assert collect(fleet, rules(fleet))["bad"] == []
    (bad,) = collect(fleet, rules(fleet, full=True))["bad"]
    assert bad["code"] in {"stop", "half_width"}


def test_two_hundred_units_by_processes_are_as_by_one(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [document_of("x", seed, noise=0.01) for seed in range(7)]
    slow = document_of("x", 99, slower=1.4, facts={"memory_total_bytes": 256 * GIB})
    for at in range(200):
        run = slow if at == 100 else runs[at % 7]
        host = {**run["host"], "cpu_model": "AB"[at % 2], "hostname": f"u{at}", "id": f"m{at}"}
        document = {**run, "host": host, "plan": {**run["plan"], "host_id": f"m{at}"}}
        put_run(fleet, cell(f"u{at:03}"), sealed(document))
    monkeypatch.setattr(collecting, "MOST_PROCESSES", 2)
    by_two = collect(fleet, rules(fleet))
    (fleet / FILE).unlink()
    monkeypatch.setattr(collecting, "MANY", 10_000)
    by_one = collect(fleet, rules(fleet))
    assert by_one == by_two
    assert [(one["model"], one["units"]) for one in by_one["models"]] == [("A", 100), ("B", 100)]
    (odd,) = by_one["odd"]
    assert (odd["unit"], odd["differs"][0]["what"]) == ("u100", "memory")
