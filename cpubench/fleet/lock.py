"""One controller at a time in a folder of results; the kernel frees the lock of one that died."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpubench.errors import UsageError

LOCK = ".lock"


@contextmanager
def controller(fleet: Path) -> Iterator[None]:
    """Nothing, while the lock of RESULTS/<fleet> is held; UsageError where another has it or nothing can be written."""
    try:
        fleet.mkdir(parents=True, exist_ok=True)
        lock = os.open(fleet / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError("results", f"cannot be written: {error.strerror}", str(fleet)) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError("busy", "another `cpubench fleet` works in there; wait for its end", str(fleet)) from None
        yield
    finally:
        os.close(lock)
