"""Killed cappers and runs leave the limits that they found; the whole two hundred are `nox -s torture`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pools import CPUS

CAPPERS, RUNS = 24, 8


@pytest.mark.skipif(len(CPUS) < 2, reason="one core: a group has no place")
def test_the_old_limits_stand_again_after_every_kill():
    """Of SIGKILL, SIGTERM and SIGINT within 2 s; of the guardian too, at the next start."""
    script = Path(__file__).with_name("kills.py")
    command = [sys.executable, str(script), str(CAPPERS), str(RUNS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    assert (found["cappers"]["given_back"], found["runs"]["given_back"]) == (CAPPERS, RUNS)
    for kind, kills in (("cappers", CAPPERS), ("runs", RUNS)):
        assert found[kind]["with_a_limit_changed"] > kills / 6  # or the kills came too early to show anything
