"""A run leaves a report beside it, and is not less where it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hosts.surroundings import after, may_unshare
from made import made_run, made_variants
from made_reports import put

from cpubench import finish
from cpubench.analysis.reference import load_reference
from cpubench.report.html import page
from cpubench.results.records import Variant

pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")


def variants_of(reference: dict[str, Any]) -> list[Variant]:
    """A variant with copies 1 and cores of each row of a reference."""
    first, made = made_variants()[0], []
    for name, row in reference["variants"].items():
        kernel, _, params = name.removesuffix("]").partition("[")
        for copies, groups in (("1", [[0]]), ("cores", [[0], [1]])):
            made.append(msgspec.structs.replace(
                first, kernel=kernel, params=params, family=row["family"], version=row["version"], copies=copies,
                groups=groups, divisor=len(groups), scored=True, window_ns=0 if copies == "1" else first.ops,
            ))  # fmt: skip
    return made


def test_a_run_of_this_suite_gets_a_page_and_its_data(tmp_path: Path) -> None:
    reference = load_reference()
    run = put(tmp_path / "run", made_run(8, suite=reference["suite"], variants=variants_of(reference)))
    left = finish.leave_report(run)
    assert left == run / "report.html"
    assert left.read_text().lstrip().startswith("<!DOCTYPE html>")
    assert (run / "report.data" / "report.json").exists()


def test_where_there_can_be_none_the_run_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert finish.leave_report(put(tmp_path / "run", made_run(8, suite=999))) is None
    error = capsys.readouterr().err
    assert error.startswith("cpubench: no report: ")
    assert "suite 999" in error
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def test_without_the_extra_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    assert finish.leave_report(put(tmp_path / "run", made_run(8))) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not may_unshare(), reason="needs root to mount a small file system")
@pytest.mark.parametrize("room", ["size=16k", "size=300k", "nr_inodes=12"])
def test_a_full_disk_leaves_no_half_of_a_report(tmp_path: Path, room: str) -> None:
    """The page, or one of the files of its data, does not fit; an older report stays as it was."""
    reference, disk = load_reference(), tmp_path / "disk"
    disk.mkdir()
    run = put(tmp_path / "run", made_run(8, suite=reference["suite"], variants=variants_of(reference)))
    command = [sys.executable, "-I", "-m", "cpubench", "report", str(run), "-o", str(disk / "r.html")]
    script = 'mkdir "$0/r.data"; echo {} > "$0/r.data/report.json"; echo old > "$0/r.html"; "$@"; echo $?; ' \
             'cd "$0"; ls -A . r.data; cat r.html'  # fmt: skip
    mount = after(f"mount -t tmpfs -o {room} none '{disk}'")
    done = subprocess.run(
        [*mount, "sh", "-c", script, str(disk), *command], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["2", ".:", "r.data", "r.html", "r.data:", "report.json", "old"], done.stderr
    (line,) = done.stderr.splitlines()
    assert "cannot be written: No space left on device" in line


def test_a_system_that_lets_no_page_be_made_takes_nothing_from_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """matplotlib raises OSError on import where no place for its cache can be written."""

    def refuse(*given: object) -> None:
        raise OSError("needs a writable cache directory")

    monkeypatch.setattr(finish, "make_report", refuse)
    assert finish.leave_report(put(tmp_path / "run", made_run(8))) is None
    assert capsys.readouterr().err == "cpubench: no report: needs a writable cache directory\n"
