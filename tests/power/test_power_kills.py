"""Killed cappers leave the limits that they found; the whole two hundred are `nox -s torture`."""

import json
import subprocess
import sys
from pathlib import Path

KILLS = 60


def test_the_old_limits_stand_again_after_every_kill():
    """Of SIGKILL, SIGTERM and SIGINT within 2 s; of the guardian too, at the next start."""
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run([sys.executable, str(script), str(KILLS)], capture_output=True, text=True, timeout=120)
    found = json.loads(done.stdout)
    assert (done.returncode, found["given_back"], found["bad"]) == (0, KILLS, []), done.stderr
    assert found["with_a_limit_changed"] > KILLS / 4  # or the kills came too early to show anything
