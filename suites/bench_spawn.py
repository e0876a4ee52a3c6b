"""Starting processes and threads and waiting for their end, from parents of known size."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.cpubench("spawn")
def test_spawn(cpubench_replay: Callable[[str, str], None], variant: str, copies: str) -> None:
    cpubench_replay(variant, copies)
