"""Inside: a short run under a cap."""

from __future__ import annotations

import json

import pytest
from lab import guest
from lab.guest import cpubench

TIMES = "settle=1,idle=1,uncapped=3,verify=3,total=4,least=0.5"  # seconds; a run's own take minutes
RUN = ("--profile", "quick", "--families", "lock", "--copies", "cores", "--seed", "7", "--times", TIMES)


def test_a_capped_run_has_scores_by_watts_at_each_level(as_found, tmp_path):
    if "--cap " not in cpubench("run", "--help").out:
        pytest.skip("this cpubench has no `run --cap`")
    out = str(tmp_path / "run")
    said = cpubench("run", *RUN, "--cap", "400W", "--cap", "as-is", "--cap", "60%", "--out", out)
    assert said.code == 0, said
    plan = json.loads((tmp_path / "run/run.json").read_text())["plan"]
    states = {level["name"]: level["state"] for level in plan["power"]["levels"]}
    assert states == {"400W": "verified", "as-is": "as_found", "60%": "verified"}
    assert cpubench("validate", out).code == 0
    power = cpubench("score", out, "--json").json["power"]
    guest.figure(json.dumps(power["levels"])[:2000])
    assert [row["level"] for row in power["levels"]] == ["400W", "as-is", "60%"]
