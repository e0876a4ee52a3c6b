"""Groups of threads that contend for one lock or one cache line."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.cpubench("lock")
def test_lock(cpubench_replay: Callable[[str, str], None], variant: str, copies: str) -> None:
    cpubench_replay(variant, copies)
