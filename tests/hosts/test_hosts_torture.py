"""Runs that are killed at random moments, and go on: as many as fit into 25 s. All of them: ``nox -s torture``."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torture
from pools import CPUS

LIMIT_S = 15.0  # the last run that was begun is finished


@pytest.mark.skipif(len(CPUS) < 2, reason="one core: a group has no place")
def test_killed_runs_go_on_and_leave_nothing(tmp_path: Path) -> None:
    kills, wrong, began = 0, [], time.monotonic()
    for one in torture.short_kills(1000, tmp_path, seed=1):
        kills += sum(one["kills"].values()) - one["kills"]["not met"]
        wrong += one["wrong"]
        if wrong or time.monotonic() - began > LIMIT_S:
            break
    assert wrong == []
    assert kills > 3
