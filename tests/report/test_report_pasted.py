"""Scores and comparisons with watts on terminals of 80 and 120 columns, without colour, and as Markdown."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from made_reports import EVIL, EVIL_NAME, capped, reference_of, tasks_of, watt_variants

from cpubench.entry import main


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pasted")
    reference_of(root, watt_variants())
    capped(root / "a", 1, passes=8)
    capped(root / "b", 2, 1.1, watts=0.8, passes=8)
    return root


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, *given: str) -> str:
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    assert main([*given, "--reference", str(folder / "reference.json")]) == 0
    return out.getvalue()


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_with_watts_fit_and_no_cell_is_cut(folder: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    a, b = str(folder / "a"), str(folder / "b")
    score, compare = (told(folder, monkeypatch, *given) for given in (("score", a), ("compare", a, b)))
    assert "\x1b[1m" in score
    score, compare = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in (score, compare))
    for text in (score, compare):
        assert max(map(len, text.splitlines())) <= columns
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert re.search(r"^200W +verified +\d+\.\d +\d+\.\d +0\.\d % +0\.\d+ +1\.\d+ +2900", score, flags=re.M)
    assert re.search(r"^per watt at 150W: B needs 1\d\.\d % less energy than A", compare, flags=re.M)
    assert re.search(r"^memory at 200W +per watt +1\.1\d+ ", compare, flags=re.M)


def test_no_color_is_plain_on_a_terminal_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in told(folder, monkeypatch, "score", str(folder / "a"))


def test_a_score_as_markdown_has_headline_families_levels_and_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = str(folder / "a"), str(folder / "b")
    one = told(folder, monkeypatch, "score", a, "--markdown")
    rows = [line.split(" | ") for line in one.splitlines() if line.startswith("| ")]
    assert {"| per core", "| per watt", "| lock", "| 150W"} <= {row[0] for row in rows}
    assert {len(row) for row in rows} == {4, 5, 8}
    assert "task score: -" in one
    tasks = told(folder, monkeypatch, "score", a, str(tasks_of(folder / "tasks", "host1")), "--markdown")
    assert "**Task score**: scenario equal" in tasks
    two = told(folder, monkeypatch, "score", a, b, "--markdown")
    assert "**Order per core**" in two
    assert "run 1 ahead of run 2" in two
    assert two.count("**Watts and cap levels**") == 2


def test_names_in_markdown_are_neither_markup_nor_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference, level = reference_of(tmp_path, watt_variants()), f"{EVIL_NAME[:60]}|x"
    run = capped(tmp_path / "a", 1, host={"hostname": EVIL, "cpu_model": EVIL}, passes=8,
                 caps={"as-is": (1.0, 1.0), level: (1.25, 0.6)})  # fmt: skip
    assert main(["score", str(run), "--markdown", "--reference", str(reference)]) == 0
    text = capsys.readouterr().out
    assert "<script" not in text.replace("\\<", "")
    assert not set("\x1b\x00\u202e") & set(text)
    (row,) = [line for line in text.splitlines() if line.startswith("| \\<script")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 9
    assert main(["score", str(run), "--markdown", "--json", "--reference", str(reference)]) == 2
    assert "one document" in capsys.readouterr().err
    assert main(["score", str(run), "--json", "--reference", str(reference)]) == 0
    assert json.loads(capsys.readouterr().out)["power"]["levels"][1]["level"] == level
