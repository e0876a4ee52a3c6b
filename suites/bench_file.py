"""Small files on a tmpfs: creating, writing, looking up, reading and removing them."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.cpubench("file")
def test_file(cpubench_replay: Callable[[str, str], None], variant: str, copies: str) -> None:
    cpubench_replay(variant, copies)
