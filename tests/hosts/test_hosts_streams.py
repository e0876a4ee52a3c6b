"""Real runs whose terminal or disk goes away behind their streams: what was measured stays, and is valid."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hosts import short

from cpubench import recheck
from cpubench.measure.profiles import PROFILES

RUN = [sys.executable, "-I", str(Path(short.__file__)), "file_create@1", "run", "--profile", "quick", "--out"]


@pytest.mark.parametrize(
    ("redirect", "code", "said"),
    [("2> /dev/full", 0, ""), ("2>&-", 0, ""), (">&-", 0, ""), ("2>&1 | head -1", 0, ""),
     ("> /dev/full", 2, "cpubench: stdout: cannot be written: No space left on device")],
)  # fmt: skip
def test_a_run_does_not_end_because_nobody_can_read_of_it(
    tmp_path: Path, redirect: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sh", "-c", f'"$@" {redirect}', "sh", *RUN, str(tmp_path / "r")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert "Traceback" not in done.stderr + done.stdout
    if said:
        assert done.stderr.splitlines()[-2:] == [f"cpubench: the run is kept in {tmp_path / 'r'}", said]
    monkeypatch.setitem(PROFILES, "quick", short.QUICK)
    monkeypatch.setattr(recheck, "SAMPLE_NS", short.SAMPLE_NS)
    assert recheck.validated(tmp_path / "r")["passes"] == short.PASSES
    assert not list((tmp_path / "r").glob(".*"))
