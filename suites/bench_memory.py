"""Loads, copies and page faults at working sets that are equal on every host."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.cpubench("memory")
def test_memory(cpubench_replay: Callable[[str, str], None], variant: str, copies: str) -> None:
    cpubench_replay(variant, copies)
