"""Folders and other files that somebody else made: bounded as a whole, and looked at without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts.surroundings import as_nobody, may_unshare
from made import made_run, truthful, written

from cpubench.errors import UsageError
from cpubench.measure.folder import discard
from cpubench.measure.sides import resumed_sides
from cpubench.recheck import validated
from cpubench.report.html.prices import load_prices
from cpubench.results import load, temporary
from cpubench.results.inputs import load_inputs


def test_blocks_of_a_folder_are_bounded_together(tmp_path: Path) -> None:
    """Each of them is small enough to be read."""
    folder = written(tmp_path / "run", truthful(made_run(2)))
    for number in range(3):
        with (folder / f"block-9{number}-x.json").open("wb") as out:
            out.truncate(90_000_000)
    with pytest.raises(UsageError, match=r"run: holds 5 blocks of 270\d+ bytes; at most"):
        validated(folder)


def test_blocks_of_a_folder_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "run", truthful(made_run(3)))
    monkeypatch.setattr(load, "MOST_BLOCKS", 2)
    with pytest.raises(UsageError, match=r"holds 3 blocks of \d+ bytes; at most 2 of"):
        validated(folder)


@pytest.mark.skipif(not may_unshare(), reason="needs root to become another user")
@pytest.mark.parametrize("command", ["validate", "score", "compare", "tasks show", "run --resume"])
def test_a_folder_that_may_be_listed_and_not_entered_is_one_line(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "locked"
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0o444)
    for parent in list(folder.parents)[:3]:
        parent.chmod(0o755)
    free = [part if "dac_read_search" not in part else part.replace("+dac_read_search", "-dac_read_search")
            for part in as_nobody()]  # fmt: skip
    arguments = [*command.split(), str(folder)] + [str(folder)] * (command == "compare")
    code = "import sys; from cpubench.entry import main; sys.exit(main())"
    called = [*free, sys.executable, "-I", "-c", code, *arguments]
    done = subprocess.run(called, capture_output=True, text=True, check=False, cwd="/")
    if "python" in done.stderr.partition("\n")[0] and "Permission denied" in done.stderr and not done.stdout:
        pytest.skip("the interpreter is in a folder of root's")
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "Permission denied" in line or "not readable" in line


@pytest.mark.parametrize("load_file", [load_prices, load_inputs])
@pytest.mark.parametrize(
    ("text", "said"),
    [("a = " + "[" * 100_000, "is nested too deeply"), ("a = " + "7" * 5000, "is not TOML"), ("\0", "is not TOML"),
     ("#" * 300_000, "300000 bytes; at most")],
    ids=["nested", "digits", "NUL", "long"],
)  # fmt: skip
def test_tables_of_users_are_bounded(tmp_path: Path, load_file: object, text: str, said: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        load_file(file)  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["pipe", "deep", "huge", "list"])
def test_the_sides_of_a_run_are_read_like_any_file(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "turns.json"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.write_text({"deep": '{"prefix":' * 100_000, "huge": '{"prefix": 1e999}', "list": "[]"}[kind])
    with pytest.raises(UsageError, match=r"turns\.json: is not what run --ab wrote"):
        resumed_sides(tmp_path, load.load_plan)


def test_a_run_of_which_nothing_was_measured_leaves_no_half_file(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    for name in ("plan.json", "log.jsonl", ".block-000-as-is.json.17.tmp"):
        (folder / name).write_text("{")
    discard(folder, [folder])
    assert list(tmp_path.iterdir()) == []


def test_no_place_for_temporary_files_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    with (
        pytest.raises(UsageError, match="no folder for temporary files can be used: No such file"),
        temporary.temporary(),
    ):
        raise AssertionError
