"""Inside: a short run under two caps and without, which has points per watt of its families at each level."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab import guest
from lab.guest import cpubench

# Seconds. The profile's own would make half an hour of eight passes; each of 24 blocks takes three seconds to start.
TIMES = "settle=0.5,idle=2,uncapped=3,verify=3,total=4,least=0.4"
LEVELS = ("500W", "70%", "as-is")  # of 660 W: a lower cap holds up the start of each block as well
CAPS = [word for level in LEVELS for word in ("--cap", level)]
RUN = ("--profile", "quick", "--families", "lock", "--copies", "cores", "--seed", "7", "--times", TIMES)
MEASURES = ("per_core", "per_watt", "per_watt_net")
PYTHON = (sys.executable, "-I", "-c", "import cpubench.power.sampler")


def budget() -> str:
    """What eight passes take here, and a third more: each of their blocks starts two Pythons beside its second of
    windows. QEMU has what other work leaves of two cores, so a budget that is always the same would not do."""
    began = time.monotonic()
    for _ in range(3):
        subprocess.run(PYTHON, check=True)
    return f"{min(1200, 20 + 50 * (time.monotonic() - began)):.0f}s"


@pytest.fixture(scope="module")
def run():
    """The run, its document and what the registers held before and after; its folder stays for the host."""
    guest.load()
    before, out, how_long = guest.registers(), Path("/tmp/capped"), budget()
    said = cpubench("run", *RUN, *CAPS, "--budget", how_long, "--out", str(out))
    assert said.code == 0, said
    shutil.copytree(out, guest.LAB / "capped")
    document = json.loads((out / "run.json").read_text())
    guest.figure(f"run: {len(document['passes'])} passes in a budget of {how_long}")
    return out, document, before, guest.registers()


@pytest.fixture(scope="module")
def power(run):
    return cpubench("score", str(run[0]), "--json").json["power"]


def test_the_limits_are_to_the_byte_what_they_were(run):
    _, _, before, after = run
    assert before == after
    assert before["intel-rapl:1/constraint_0_power_limit_uw"] == b"350000000\n"
    assert list(guest.JOURNALS.glob("cap-*")) == []


def test_both_caps_are_verified_by_watts(run):
    levels = {level["name"]: level for level in run[1]["plan"]["power"]["levels"]}
    for name in LEVELS[:2]:
        guest.figure(f"run {name}: {levels[name]['state']}, {levels[name]['drawn_w']:.1f} W under full load")
    assert [levels[name]["state"] for name in LEVELS] == ["verified", "verified", "as_found"]
    assert levels["500W"]["watts"] == 500
    assert levels["70%"]["watts"] == pytest.approx(0.7 * levels["70%"]["uncapped_w"], abs=0.5)


def test_each_level_has_points_per_watt_of_the_family(power):
    assert [row["level"] for row in power["levels"]] == list(LEVELS)
    for row in power["levels"]:
        found = row["families"]["lock"]
        for measure in MEASURES:
            assert found[measure]["passes"] >= 8, found
            assert 0 < found[measure]["low"] < found[measure]["value"] < found[measure]["high"]
        assert found["per_watt_net"]["value"] > found["per_watt"]["value"]
        points, watts = found["per_watt"]["value"], row["watts"]["value"]
        guest.figure(f"run {row['level']}: {points:.4g} points/W of lock, {watts:.1f} W in {row['windows']} windows")
    assert 180 < power["idle"]["before_watts"] < 260  # at rest, but for the reading itself


def test_windows_under_a_cap_draw_no_more_than_it_allows(power):
    watts = {row["level"]: (row["watts"]["value"], row["cap_watts"]) for row in power["levels"]}
    for level in LEVELS[:2]:
        mean_w, cap_w = watts[level]
        assert 180 < mean_w <= 1.03 * cap_w + 1
    assert [row["over_cap_passes"] for row in power["levels"][:2]] == [0, 0]


def test_the_whole_is_null_by_the_names_of_what_is_missing(run):
    headline = cpubench("score", str(run[0]), "--json").json["headline"]["per_watt"]
    assert (headline["value"], headline["reason"].startswith("missing: spawn_")) == (None, True)


def test_the_run_is_valid(run):
    assert cpubench("validate", str(run[0])).code == 0
