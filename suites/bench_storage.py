"""Small files on the disk of the scratch folder, as agents' folders lie there; shown, and in no score."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.cpubench("storage")
def test_storage(cpubench_replay: Callable[[str, str], None], variant: str, copies: str) -> None:
    cpubench_replay(variant, copies)
