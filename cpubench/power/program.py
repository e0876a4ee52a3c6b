"""Runs a program with a deadline: in a session of its own, so that all it started ends with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

MOST_BYTES = 1 << 20


class Answer(NamedTuple):
    status: int | None  # None: killed at the deadline
    out: str
    err: str


def run(arguments: Sequence[str], timeout_s: float) -> Answer:
    """What the program printed, in the C locale; OSError where it cannot be started."""
    process = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"LC_ALL": "C"},
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        kill(process)
        return Answer(None, "", "")
    except BaseException:  # Ctrl-C must not leave it behind
        kill(process)
        raise
    return Answer(process.returncode, *(data[:MOST_BYTES].decode("utf-8", "backslashreplace") for data in (out, err)))


def kill(process: subprocess.Popen[bytes]) -> None:
    """Nothing; the program and all that it started are gone, and its pipes closed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
