"""The table of reports names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_each_test_of_the_table_exists() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", Path(__file__).with_name("README.md").read_text())
    files = {path.name: path.read_text() for path in TESTS.rglob("test_*.py")}
    assert len(named) > 30
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in files.get(file, "")] == []
