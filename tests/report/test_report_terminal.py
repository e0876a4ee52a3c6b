"""What a person sees: the headline first, at most 80 columns, and nothing that a file could do to the terminal."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from made import made_run, made_variants

from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.report.listing import show_list
from cpubench.report.terminal import amount, points, show_score, spread
from cpubench.results.records import Missing, Run

EVIL = "\x1b[31m[bold]red[/bold]\x07\r\u202e"


def scored(name: str = "made-reference", **made: Any) -> dict[str, Any]:
    reference = make_reference(msgspec.convert(made_run(8, noise=0), Run), name)
    document = made_run(12, seed=3, **made)
    for one in document["passes"][2:]:
        for cell in one["blocks"][0]["cells"]:
            if (cell["kernel"], cell["copies"]) == ("file_create", "cores"):
                cell.update(copy_ops=[], copy_elapsed_ns=[], error="killed by SIGSEGV")
    for one in document["passes"]:
        for cell in one["blocks"][0]["cells"]:
            if cell["kernel"] in ("mem_chase", "switch_pipe"):
                cell["samples"]["moved"] = [1, 1]
    return score(msgspec.convert(document, Run), reference, "coding")


def text_of(doc: dict[str, Any]) -> str:
    out = io.StringIO()
    show_score(doc, out)
    return out.getvalue()


@pytest.fixture
def shown() -> str:
    return text_of(scored(skipped=[Missing("io_uring@1", "io_uring_setup EPERM")]))


def test_headline_comes_first_and_notes_last(shown: str) -> None:
    parts = ["1000 points = reference made-reference", "NOT PUBLISHABLE", "95 % interval", "speed", "scaling eff.",
             "spawn_fork_exec[rss=384M] *", "Badges", "Skipped or failed", "Notes"]  # fmt: skip
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_missing_is_a_dash_with_its_reason_once(shown: str) -> None:
    lines = shown.splitlines()
    assert next(line for line in lines if line.startswith("per core")).split()[2:] == ["-", "-", "-"]
    assert " ".join(shown.split()).count("no meter was read") == 1
    flat = " ".join(shown.split())
    assert flat.count("missing: file_create@cores (in 2 of 12 passes: killed by SIGSEGV)") == 1
    assert "io_uring@1 io_uring_setup EPERM" in flat
    named = "mem_chase[set=16K]@1, mem_chase[set=16K]@cores, mem_chase[set=256M]@1"
    assert "migrated a copy was not on the CPU that it is pinned to: switch_pipe[place=same]@1," in flat
    assert f"{named} and 3 more" not in flat  # six are named
    assert flat.count("pinned to") == 1
    assert "and 3 more" in flat


def test_no_line_is_longer_than_80_columns_nor_coloured(shown: str) -> None:
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


def test_long_names_fold_and_numbers_stay_whole() -> None:
    doc = scored()
    doc["variants"][0]["name"] = "spawn_" + "x" * 200
    shown = text_of(doc)
    assert max(map(len, shown.splitlines())) <= 80
    assert " us " in shown
    assert shown.replace("\n", "").count("x") >= 200


def test_text_from_files_cannot_act_on_the_terminal() -> None:
    doc = scored(skipped=[Missing("io@1", EVIL)])
    doc["variants"][0]["name"] = EVIL
    doc["notes"].append({"code": EVIL, "text": EVIL, "where": EVIL})
    doc["families"][EVIL] = doc["families"].pop("lock")
    doc["reference"] = EVIL
    doc["host"]["cpu"] = EVIL
    shown = text_of(doc)
    assert not set("\x1b\x07\r\u202e") & set(shown)
    assert "\\x1b[31m[bold]red[/bold]\\x07\\r\\u202e" in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_takes_it(encoding: str) -> None:
    doc = scored()
    doc["host"]["cpu"] = "\u4e2d\u00e9"
    doc["notes"].append({"code": "x", "text": "\U0001f600", "where": ""})
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    show_score(doc, out)
    out.flush()
    assert ("\u2500" in raw.getvalue().decode(encoding)) == (encoding == "utf-8")


def test_a_terminal_gets_colour_and_never_less_than_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    show_score(scored(), out)
    assert "\x1b[1m" in out.getvalue()
    assert "10 of 12" not in out.getvalue()
    assert "time/op" in out.getvalue()


def test_several_runs_follow_each_other() -> None:
    assert text_of({"runs": [scored(), scored()]}).count("1000 points") == 2


VALUES = [
    {"label": "rss=8M", "scored": False, "needs": ["2 cores", "8 MiB"], "here": None},
    {"label": "rss=384M", "scored": True, "needs": ["2 cores", "384 MiB"], "here": "needs 384 MiB"},
]


def test_kernels_are_listed_by_family() -> None:
    kernel = {"unit": "child", "version": 2, "params": VALUES, "flags": ["blocking"]}
    kernels = [
        kernel | {"name": "spawn_fork_exec", "family": "spawn", "doc": f"fork and execute {EVIL}"},
        kernel | {"name": "mem_chase", "family": "memory", "doc": "follow pointers " * 12, "params": []},
        kernel | {"name": "spawn_thread", "family": "spawn", "doc": "create and join"},
    ]
    out = io.StringIO()
    show_list(kernels, out)
    shown = out.getvalue()
    assert [line for line in shown.splitlines() if line and line[0] not in " *"] == ["spawn", "memory"]
    assert "one operation: a child; version 2; blocking rss=8M, rss=384M *" in " ".join(shown.split())
    assert "needs 2 cores, up to 384 MiB a copy not here: rss=384M: needs 384 MiB" in " ".join(shown.split())
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    show_list([], io.StringIO())


def test_families_that_were_not_measured_are_one_line_and_equal_notes_one_note() -> None:
    part = [v for v in made_variants() if v.family == "lock"]
    run = msgspec.convert(made_run(variants=part), Run)
    shown = text_of(score(run, make_reference(msgspec.convert(made_run(), Run), "full")))
    assert "without any figure: file, memory, spawn, switch" in shown or "without any figure: spawn, file" in shown
    assert shown.count("a scored row is missing") == 1
    assert "per core of spawn" not in shown


def test_numbers_have_three_digits() -> None:
    assert [points(v) for v in (None, 1012.4, 99.96, 12.34, 1.0, 0.9812)] == [
        "-",
        "1012",
        "100",
        "12.3",
        "1.00",
        "0.981",
    ]
    assert amount(2.41e-2, "s") == "24.1 ms"
    assert amount(1.5e-9, "s") == "1.50 ns"
    assert amount(0.99999e-6, "s") == "1.00 us"
    assert amount(41_500, "/s") == "41.5 k/s"
    assert amount(7, "/s") == "7.00 /s"
    assert spread({"value": 100, "low": 98.6, "high": 101.2}) == " +-1.4 %"
    assert spread({"value": 100, "low": 80, "high": 120}) == " +-20 %"
    assert spread({"value": 100, "low": None, "high": None}) == ""


def test_noise_is_one_line_and_foreign_names_are_escaped() -> None:
    doc = scored()
    assert "noise: 0 of 12 blocks flagged\n" in text_of(doc)
    doc["noise"] |= {
        "blocks": {"count": 40, "looked": 40, "flagged": 3, "set_aside": 1, "flags": {"contended": 2, "stolen": 1}},
        "busiest": [{"name": f"gcc{EVIL}", "share": 0.004}], "doubts": {"hot": "no such file"},
    }  # fmt: skip
    shown = " ".join(text_of(doc).split())
    assert "noise: 3 of 40 blocks flagged (contended 2, stolen 1), 1 measured again; busiest other" in shown
    assert "0.4 %; not told, or in part: hot" in shown
    assert not set("\x1b\x07\u202e") & set(shown)
    doc["noise"]["looked"] = False
    assert "noise: not known, nobody looked" in text_of(doc)


def test_rows_of_the_control_are_not_in_the_table() -> None:
    doc = scored()
    doc["variants"].append({**doc["variants"][0], "name": "test_work[again]", "family": "control", "flags": ["drift"]})
    doc["badges"] = {"drift": "it drifts"}  # of the control alone: no badge of the host
    assert "test_work" not in text_of(doc)
    assert "it drifts" not in text_of(doc)
