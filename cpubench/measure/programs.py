"""Where the static programs of the build are."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

_BIN = Path(__file__).resolve().parent.parent / "_bin"
SHELL = Path("/bin/sh")  # what kernels with the flag "shell" execute
COPY = _BIN / "cpubench-copy"
TARGET = _BIN / "cpubench-target"
BOX = _BIN / "cpubench-box"  # of the task T3


def fault() -> str | None:
    """Why the programs cannot run here, or None."""
    for program in (COPY, TARGET):
        if not program.is_file():
            return f"{program} is missing: install cpubench again"
        if not os.access(program, os.X_OK):
            return f"{program} may not be executed (no x bit, or a file system mounted noexec)"
    return None


def sha256(path: Path) -> str:
    """The SHA-256, in hex, of a program's file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def shell() -> dict[str, str]:
    """The host's shell: the file behind its links, and its SHA-256; empty where there is none that can be read."""
    try:
        path = SHELL.resolve(strict=True)
        return {"shell": str(path), "shell_sha256": sha256(path)}
    except OSError:
        return {}
