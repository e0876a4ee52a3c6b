"""Handing control from one process to another and back, on the same core and between cores."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.cpubench("switch")
def test_switch(cpubench_replay: Callable[[str, str], None], variant: str, copies: str) -> None:
    cpubench_replay(variant, copies)
