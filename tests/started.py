"""Programs that a test starts: however the test ends, nothing of them is left, and nothing is waited for without end.

A Popen that is dropped by a failed test warns when the collector finds it, in the middle of some other test.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def started(command: Sequence[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """The running program; killed at the end where it still runs."""
    with subprocess.Popen([str(word) for word in command], **options) as process:
        try:
            yield process
        finally:
            process.kill()  # nothing where it has ended; else leaving the block would wait for its end
