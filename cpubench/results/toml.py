"""TOML that a user gives: bounded, and refused in one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.parse import read, shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES = 1 << 18  # a table of a thousand rows has 50 kB


def read_toml(path: Path, code: str) -> dict[str, Any]:
    """The table that a file holds; UsageError of this code where it holds none."""
    try:
        table: dict[str, Any] = tomllib.loads(read(path, MAX_BYTES).decode())
    except ValueError as error:  # of UTF-8 and of numbers with thousands of digits, too
        raise UsageError(code, f"is not TOML: {shown(str(error), 120)}") from None
    except RecursionError:
        raise UsageError(code, "is nested too deeply") from None
    return table
