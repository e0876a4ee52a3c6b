"""Inside: meters over wraps, and caps that hold, do nothing, or were set by somebody else."""

from __future__ import annotations

import time

import pytest
from lab import guest
from lab.guest import CAP, cpubench, knob

from cpubench.power.channel import log_of
from cpubench.power.energy import energy
from cpubench.power.meters import open_meter
from cpubench.power.virus import burning

pytestmark = pytest.mark.usefixtures("as_found")
STEP_J = 2.4  # the model counts work each 10 ms, of up to 240 W; between two readings a meter has a straight line
SHORT = ("--seconds", "4", "--settle", "2", "--json")


def test_energy_over_wraps_is_what_the_model_drew():
    """Between what it had drawn just before the first reading and just after the last, and the other way round."""
    guest.load(range_j=2400)
    meter = open_meter("powercap:package")
    with burning([0, 1]):
        outer, readings, inner = guest.drawn_j(), meter.read(), guest.drawn_j()
        until = time.monotonic() + 16
        while time.monotonic() < until:
            time.sleep(meter.period_s)
            readings += meter.read()
        time.sleep(meter.period_s)
        least = guest.drawn_j() - inner
        readings += meter.read()
        most = guest.drawn_j() - outer
    meter.close()
    told = energy(log_of(meter, readings))
    guest.figure(f"energy: {told.joules:.1f} J read of {least:.1f} to {most:.1f} J drawn, over {told.wraps} wraps")
    assert told.wraps >= 2
    assert (told.code, told.rejected) == ("", 0)
    assert least - STEP_J <= told.joules <= most + STEP_J


def test_caps_that_hold_are_verified():
    said = cpubench("power", "verify", "--cap", "400W", "--cap", "60%", *SHORT)
    for row in said.json["levels"]:
        guest.figure(f"verify {row['level']}: {row['state']}: {row['text']}")
    assert [(row["state"], row["flags"]) for row in said.json["levels"]] == [("verified", [])] * 2
    assert said.code == 0


def test_limits_that_do_nothing_are_over_the_cap():
    knob("obey", "N")
    said = cpubench("power", "verify", "--cap", "400W", *SHORT)
    (row,) = said.json["levels"]
    assert (said.code, row["state"], row["flags"]) == (1, "over_cap", ["clamp_changed"])


def test_a_cap_of_somebody_else_stays_a_claim_beside_watts():
    assert cpubench("power", "set", *CAP).code == 0
    (row,) = cpubench("power", "verify", "--cap-external", "400:package", *SHORT).json["levels"]
    assert (row["state"], row["evidence"]) == ("external_claim", ["no_uncapped"]), row
    assert cpubench("power", "restore").code == 0


def test_a_cap_below_idle_and_one_above_the_limit_are_refused_at_once():
    for level, why in (("100W", "below the idle power"), ("900W", "above the maximum of 350 W")):
        said = cpubench("power", "verify", "--cap", level, *SHORT)
        assert (said.code, why in said.err) == (2, True), said
