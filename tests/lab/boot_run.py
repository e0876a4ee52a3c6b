"""Inside: a short run under two caps and without, which has points per watt of its families at each level."""

from __future__ import annotations

import json

import pytest
from lab import guest
from lab.guest import cpubench

# Seconds. The profile's own would make half an hour of eight passes; each of the 24 blocks takes three seconds to start.
TIMES = "settle=0.5,idle=2,uncapped=3,verify=3,total=4,least=0.5"
LEVELS = ("400W", "60%", "as-is")
CAPS = [word for level in LEVELS for word in ("--cap", level)]
RUN = ("--profile", "quick", "--families", "lock,switch", "--copies", "cores", "--seed", "7", "--times", TIMES)
BUDGET = "330s"
MEASURES = ("per_core", "per_watt", "per_watt_net")


@pytest.fixture(scope="module")
def run():
    """The run, its document and what the registers held before and after; its folder stays for the host."""
    guest.load()
    before, out = guest.registers(), guest.LAB / "capped"
    said = cpubench("run", *RUN, *CAPS, "--budget", BUDGET, "--workdir", "/tmp", "--out", str(out))
    assert said.code == 0, said
    return out, json.loads((out / "run.json").read_text()), before, guest.registers()


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
    assert levels["400W"]["watts"] == 400
    assert levels["60%"]["watts"] == pytest.approx(0.6 * levels["60%"]["uncapped_w"], abs=0.5)


def test_each_level_has_points_per_watt_of_its_families(power):
    assert [row["level"] for row in power["levels"]] == list(LEVELS)
    for row in power["levels"]:
        assert row["passes"] >= 8
        assert list(row["families"]) == ["lock", "switch"]
        for family, found in row["families"].items():
            for measure in MEASURES:
                figure = found[measure]
                assert 0 < figure["low"] <= figure["value"] <= figure["high"], (row["level"], family, figure)
            assert found["per_watt_net"]["value"] > found["per_watt"]["value"]
            value, watts = found["per_watt"]["value"], row["watts"]["value"]
            guest.figure(f"run {row['level']}: {family} {value:.4g} points/W, windows of {watts:.1f} W")
    assert power["idle"]["before_watts"] == pytest.approx(180, rel=0.2)


def test_windows_under_a_cap_draw_no_more_than_it_allows(power):
    watts = {row["level"]: (row["watts"]["value"], row["cap_watts"]) for row in power["levels"]}
    for level in LEVELS[:2]:
        mean_w, cap_w = watts[level]
        assert 180 < mean_w <= 1.03 * cap_w + 1
    assert [row["over_cap_passes"] for row in power["levels"][:2]] == [0, 0]


def test_the_whole_is_null_by_the_names_of_what_is_missing(run):
    document = cpubench("score", str(run[0]), "--json").json
    headline = document["headline"]["per_watt"]
    assert headline["value"] is None or sorted(document["families"]) != ["lock", "switch"]


def test_the_run_is_valid(run):
    assert cpubench("validate", str(run[0])).code == 0
