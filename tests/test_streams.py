"""Streams that cannot be written or are not there: one line or none, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLI = [sys.executable, "-I", "-m", "cpubench"]
COMMANDS = [["host"], ["host", "--json"], ["check"], ["list", "--json"], ["tasks", "list"], ["--help"], ["nothing"]]


def called(arguments: list[str], redirect: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", f'exec "$@" {redirect}', "sh", *CLI, *arguments], capture_output=True, text=True,
                          check=False, timeout=60)  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk_behind_stdout_is_one_line(arguments: list[str]) -> None:
    done = called(arguments, "> /dev/full")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == "cpubench: stdout: cannot be written: No space left on device" or arguments == ["nothing"]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("redirect", [">&-", "2>&-", "<&-", "<&- >&- 2>&-", "2> /dev/full"])
def test_streams_that_are_closed_or_full_change_nothing_else(arguments: list[str], redirect: str) -> None:
    done = called(arguments, redirect)
    assert done.returncode == (2 if arguments == ["nothing"] else 0)
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (arguments != ["nothing"] and ">&-" not in redirect.replace("2>&-", ""))


def test_a_reader_that_has_seen_enough_is_no_fault_to_tell_of() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*CLI, "host"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")


def test_what_the_system_refuses_is_one_line(tmp_path: Path) -> None:
    """A command that needs a folder for temporary files, where nobody may have one."""
    code = "import sys, tempfile; tempfile.tempdir = '/proc/none'; from cpubench.entry import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-I", "-c", code, "tasks", "list"], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "no folder for temporary files can be used: No such file or directory; set TMPDIR" in line
