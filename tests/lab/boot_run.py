"""Inside: a short run under two caps. Eight passes would take five minutes here: its scores are null by name."""

from __future__ import annotations

import json

import pytest
from lab import guest
from lab.guest import cpubench

TIMES = "settle=0.5,idle=1,uncapped=2,verify=2,total=4,least=0.5"  # seconds; a run's own take minutes
RUN = ("--profile", "quick", "--families", "lock", "--copies", "cores", "--seed", "7", "--times", TIMES)


def test_a_capped_run_has_watts_of_each_level_and_gives_its_limits_back(as_found, tmp_path):
    if "--cap " not in cpubench("run", "--help").out:
        pytest.skip("this cpubench has no `run --cap`")
    out = str(tmp_path / "run")
    said = cpubench("run", *RUN, "--cap", "400W", "--cap", "60%", "--out", out)
    assert said.code == 0, said
    plan = json.loads((tmp_path / "run/run.json").read_text())["plan"]
    caps = {level["name"]: (level["state"], level["watts"]) for level in plan["power"]["levels"]}
    assert [state for state, _ in caps.values()] == ["verified"] * 2
    power = json.loads(cpubench("score", out, "--json").out)["power"]
    assert [row["level"] for row in power["levels"]] == ["400W", "60%"]
    for row in power["levels"]:
        cap_w, watts = caps[row["level"]][1], row["watts"]["value"]
        guest.figure(f"run: {watts:.1f} W in windows under {cap_w:g} W")
        assert 180 < watts <= 1.03 * cap_w + 1
