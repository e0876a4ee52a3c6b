"""A place for what is needed for a moment."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpubench.errors import UsageError


@contextmanager
def temporary(prefix: str = "cpubench-") -> Iterator[Path]:
    """A folder that is gone afterwards. UsageError where there is no place for one, or no room in it."""
    try:
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        text = f"no folder for temporary files can be used: {error.strerror or error}; set TMPDIR"
        raise UsageError("temporary", text, str(error.filename or "")) from None
