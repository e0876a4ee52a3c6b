"""The pure rules: unwrap, gaps, what may be added, and when there are no joules."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power import meter_trees as made

from cpubench.power import doubts
from cpubench.power.channel import Channel, Log, Reading, dump, load
from cpubench.power.energy import Energy, energy, watts_each
from cpubench.power.mirrors import settled
from cpubench.power.overlap import may_add, pick, totals
from cpubench.power.unwrap import is_sentinel, step

PKG = Channel("powercap:package-0", "package", "energy", 1e-6, socket=0, range_raw=made.INTEL_RANGE, gap_s=600.0)
DRAM = Channel("powercap:package-0/dram", "dram", "energy", 1e-6, socket=0, range_raw=made.DRAM_RANGE, gap_s=600.0)
WALL = Channel("external:watts", "wall", "power", 1.0, max_w=6000.0)
SCOPES = ["package", "dram", "core", "psys", "superchip", "module", "cpu", "sysio"]
MOST = 1.1 * 1500e6


@pytest.mark.parametrize(
    ("before", "now", "range_", "joules"),
    [
        (262143000000, 1000000, made.INTEL_RANGE, 1.328850),  # C8, C13, C16, C17
        (65712000000, 500000, made.DRAM_RANGE, 1.499613),  # C11: its own range, not the package's
        (65532000000, 100000, made.AMD_RANGE, 0.710987),  # C14
        (1000, 251001000, made.INTEL_RANGE, 251.0),
    ],
)
def test_a_step_is_unwrapped_by_the_range_of_its_own_zone(before, now, range_, joules):
    found = step(before, now, range_, MOST)
    assert found.raw == pytest.approx(joules * 1e6, abs=61)
    assert (found.wraps, found.flag) == (int(now < before), "")


@pytest.mark.parametrize(
    ("before", "now", "range_", "flag"),
    [
        (500, 400, made.INTEL_RANGE, "negative_step"),  # C10: 262 kJ in a second
        (262143000000, 1000000, None, "negative_step"),  # no range, no guess
        (10, -(2**31) * 5, None, "negative_step"),  # C20
        (70e9, 1000, made.AMD_RANGE, "negative_step"),  # beyond its own range
        (0, 2_000_000_000, made.INTEL_RANGE, "implausible_high"),
    ],
)
def test_a_step_that_no_wrap_explains_is_rejected_by_name(before, now, range_, flag):
    assert step(before, now, range_, MOST) == (None, 0, flag)


def test_where_two_wraps_could_hide_nothing_is_claimed():
    assert step(100, 200, made.AMD_RANGE, 44 * 1500e6) == (None, 0, "gap")


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 1_500_000_000), min_size=1, max_size=60), st.integers(0, made.AMD_RANGE - 1))
def test_any_counter_that_moves_by_less_than_its_range_is_added_up_exactly(steps, start):
    rows, total = [(0.0, [start])], 0
    for number, one in enumerate(steps, 1):
        total += one
        rows.append((float(number), [(start + total) % made.AMD_RANGE]))
    told = energy(made.log([replace(PKG, range_raw=made.AMD_RANGE)], rows))
    assert told.by_channel["powercap:package-0"] == pytest.approx(total / 1e6, rel=1e-9, abs=1e-6)
    assert told.wraps == (start + total) // made.AMD_RANGE
    assert told.rejected == 0


@pytest.mark.parametrize("raw", [2**32 - 1, (2**32 - 1) * 1000, 2**63 - 1, 2**63, 2**64 - 1])
def test_all_ones_mean_none(raw):
    assert is_sentinel(raw)
    assert not is_sentinel(raw // 3)
    told = energy(made.log([WALL], [(t, [float(raw)]) for t in range(12)]))  # C46
    assert (told.joules, told.code) == (None, "sentinel")


def test_one_sentinel_among_values_costs_nothing():
    rows = [(float(t), [2**32 - 1 if t == 5 else 300e6 * t + 7]) for t in range(11)]
    told = energy(made.log([PKG], rows))
    assert told.joules == pytest.approx(3000)
    assert told.flags == ("sentinel",)


def test_only_what_was_covered_is_integrated_and_a_hole_is_no_number():
    rows = [(0.0, [0.0]), (0.01, [3e6])]
    told = energy(made.log([PKG], rows), 0, 15_000_000_000)  # C19
    assert (told.joules, told.watts, told.code) == (None, None, "gap")
    assert told.by_channel["powercap:package-0"] == pytest.approx(3.0)
    assert told.covered == pytest.approx(0.01 / 15)
    assert told.reason == "0.0667 % of 15 s was covered by readings"


def test_a_reset_is_rejected_and_counting_starts_anew():
    rows = [(float(t), [300e6 * t + 9e9]) for t in range(20)] + [(20.0 + t, [300e6 * t]) for t in range(20)]
    told = energy(made.log([PKG], rows))
    assert "negative_step" in told.flags
    assert told.rejected == 1
    assert told.watts == pytest.approx(300)  # over what was covered: 38 of 39 s
    assert told.joules == pytest.approx(300 * 38)
    assert energy(made.log([PKG], rows[15:25])).joules is None  # 8 of 9 s


def test_a_counter_that_stands_still_is_no_meter():
    told = energy(made.log([PKG], [(float(t), [0]) for t in range(3)]))  # C22
    assert (told.joules, told.code) == (None, "constant")
    assert {"constant", "zero"} <= set(told.flags)
    assert energy(made.log([PKG], [(float(t), [5]) for t in range(3)])).code == "constant"
    assert energy(made.log([WALL], [(float(t), [0.0]) for t in range(12)])).code == "zero"
    assert energy(made.log([PKG], [(float(t), [2e5 * t]) for t in range(12)])).code == "zero"  # 0.2 W


def test_watts_beyond_what_a_machine_draws_are_not_taken():
    told = energy(made.log([WALL], [(float(t), [300.0 if t % 10 else 7000.0]) for t in range(1, 30)]))
    assert told.watts == pytest.approx(300)
    assert "implausible_high" in told.flags
    assert energy(made.log([WALL], [(float(t), [7000.0]) for t in range(9)])).code == "implausible_high"


def test_short_windows_are_marked_and_the_shortest_refused():
    def rows(step_s):
        return [(step_s * t, [300e6 * step_s * t + 5]) for t in range(11)]

    assert energy(made.log([PKG], rows(0.1))).flags == ()
    assert energy(made.log([PKG], rows(0.05))).flags == ("short",)
    assert energy(made.log([PKG], rows(0.005))).code == "short"


def test_a_clock_that_goes_back_is_named():
    times = [0, 1, 2, 3, 2.5, 4, 5]
    told = energy(made.log([WALL], [(float(t), [200.0]) for t in times]))
    assert "time_backwards" in told.flags
    assert told.joules == pytest.approx(1000)
    back = energy(made.log([WALL], [(t, [200.0]) for t in [100.0, 101.0, *map(float, range(60))]]), 10**11, 160 * 10**9)
    assert (back.joules, back.code) == (None, "gap")


def test_a_series_that_is_renewed_too_seldom_is_coarse():
    rows = [(0.5 * t, [200.0 + t // 10]) for t in range(121)]  # another value each 5 s, 60 s long
    assert "coarse" in energy(made.log([WALL], rows)).flags
    fast = [(0.5 * t, [200.0 + t % 2]) for t in range(121)]
    assert energy(made.log([WALL], fast)).flags == ()


def test_the_edges_of_a_window_lie_between_readings():
    rows = [(float(t), [300e6 * t + 3]) for t in range(20)]
    assert energy(made.log([PKG], rows), 2_500_000_000, 12_750_000_000).joules == pytest.approx(300 * 10.25)
    ramp = [(float(t), [10.0 * t]) for t in range(20)]
    assert energy(made.log([WALL], ramp), 2_500_000_000, 4_500_000_000).joules == pytest.approx(5 * (4.5**2 - 2.5**2))


def test_packages_without_a_reading_leave_no_total():
    two = [PKG, replace(PKG, id="powercap:package-1", socket=1)]
    rows = [(float(t), [1e8 * t + 1, None if t else 1.0]) for t in range(5)]
    told = energy(made.log(two, rows, sockets=[0, 1]))
    assert (told.joules, told.code) == (None, "read_error")
    part = energy(made.log(two[:1], [(t, r[:1]) for t, r in rows], sockets=[0, 1]))  # C2, C35
    assert (part.joules, part.code) == (None, "partial_sockets")
    assert part.reason == "package of 0 is told, of packages 0-1"


def test_memory_is_added_once_and_only_where_every_socket_has_it():
    rows = [(float(t), [100e6 * t + 1, 20e6 * t + 1]) for t in range(11)]
    one = made.log([PKG, DRAM], rows, "package")
    assert energy(one).joules == pytest.approx(1000)  # C37
    assert energy(replace(one, scope="package+dram")).joules == pytest.approx(1200)
    other = [PKG, replace(PKG, id="powercap:package-1", socket=1), replace(DRAM, socket=1)]
    three = made.log(other, [(t, [r[0], r[0], r[1]]) for t, r in rows], "package", [0, 1])
    assert energy(three).joules == pytest.approx(2000)
    uneven = energy(replace(three, scope="package+dram"))  # C38
    assert (uneven.joules, uneven.code) == (None, "asymmetric_domains")


def test_memory_of_sockets_that_differ_threefold_is_not_believed():
    channels = [c for n in (0, 1) for c in (replace(PKG, id=f"powercap:{n}", socket=n),
                                            replace(DRAM, id=f"powercap:d{n}", socket=n))]  # fmt: skip
    rows = [(float(t), [300e6 * t + 1, 200e6 * t + 1, 300e6 * t + 1, 6e6 * t + 1]) for t in range(5)]
    log = made.log(channels, rows, "package", [0, 1])
    assert energy(log).watts == pytest.approx(600)  # C41
    assert energy(replace(log, scope="package+dram")).code == "asymmetric"
    assert energy(replace(log, scope="dram")).joules is None


def test_different_loads_are_told_by_socket():
    two = [PKG, replace(PKG, id="powercap:package-1", socket=1)]
    told = energy(made.log(two, [(float(t), [200e6 * t + 1, 50e6 * t + 1]) for t in range(11)]))  # C43, C34
    assert told.by_socket == {0: pytest.approx(2000), 1: pytest.approx(500)}
    assert told.joules == pytest.approx(2500)
    assert "asymmetric" in told.flags


def test_dies_that_show_one_counter_are_counted_once_and_others_added():
    dies = [replace(PKG, id=f"powercap:die-{n}", die=n, mirrors=True) for n in range(3)]
    same = energy(made.log(dies, [(float(t), [90e6 * t + 1] * 3) for t in range(11)]))
    assert same.joules == pytest.approx(900)
    assert "deduped_die" in same.flags
    real = energy(made.log(dies[:2], [(float(t), [90e6 * t + 1, 70e6 * t + 1]) for t in range(11)]))  # C25
    assert real.joules == pytest.approx(1600)
    assert real.flags == ()


def two_dies(rng, seconds: float, perf: bool, watts: tuple[float, float] | None) -> Log:
    """A window of two dies, read by turns 40 us apart: of one counter of 200 W, or of two. They move each ms.

    A tenth of the readings was held up in between.
    """
    ids = ("perf:energy-pkg@0", "perf:energy-pkg@8") if perf else ("powercap:die-0", "powercap:die-1")
    starts = [rng.uniform(0, made.AMD_RANGE / 1e6), rng.uniform(0, made.AMD_RANGE / 1e6)]
    begin, readings = rng.uniform(1, 2), []
    for number in range(round(seconds / 0.2) + 1):
        at = begin + 0.2 * number + rng.uniform(0, 0.01)
        both = (at, at + (8e-3 if number % 10 == 3 else 4e-5))
        told = []
        for die, t in enumerate(both):
            joules = int(t * 1000) / 1000 * (watts[die] if watts else 200.0) + starts[die if watts else 0]
            told.append(int((joules - (starts[die] if perf and watts else 0)) * 1e6) % made.AMD_RANGE)
        if perf and not watts:  # each counts from when it was opened
            told[1] = (told[1] - 123_456) % made.AMD_RANGE
        readings.append(Reading([round(t * 1e9) for t in both], told, ["", ""]))
    range_ = None if perf else made.AMD_RANGE
    dies = [replace(PKG, id=id_, die=n, mirrors=True, range_raw=range_) for n, id_ in enumerate(ids)]
    return Log("made", "package", tuple(dies), frozenset([0]), tuple(readings))


@pytest.mark.parametrize(("perf", "seconds"), [(False, 1.2), (False, 10.0), (True, 2.4), (True, 10.0)])
def test_mirrors_are_never_added_however_their_ticks_fall(perf, seconds):
    rng = random.Random(f"{perf} {seconds}")
    for _ in range(300):
        log = two_dies(rng, seconds, perf, None)
        if perf and any(b.raw[0] < a.raw[0] for a, b in zip(log.readings, log.readings[1:], strict=False)):
            continue  # without a range a step back is rejected
        told = energy(log)
        assert told.watts == pytest.approx(200, rel=0.02)
        assert "deduped_die" in told.flags
        whole = settled(log)
        for first in range(len(log.readings) - 3):  # a row of its own: the decision is that of the window
            row = replace(whole, readings=whole.readings[first : first + 3])
            assert energy(row).watts == pytest.approx(200, rel=0.05)
        assert all(watts == pytest.approx(200, rel=0.02) for watts in watts_each(log))


@pytest.mark.parametrize(("perf", "seconds"), [(False, 0.4), (False, 1.2), (False, 10.0), (True, 3.0), (True, 10.0)])
@pytest.mark.parametrize("share", [1.005, 0.995, 1.02])
def test_dies_of_equal_load_are_both_counted(perf, seconds, share):
    rng = random.Random(f"{perf} {seconds} {share}")
    for _ in range(100):
        told = energy(two_dies(rng, seconds, perf, (200.0, 200.0 * share)))
        assert told.watts == pytest.approx(200 * (1 + share), rel=0.02)
        assert "deduped_die" not in told.flags


def test_where_nobody_can_say_whether_two_dies_are_one_there_are_no_joules():
    told = energy(two_dies(random.Random(1), 0.6, True, None))
    assert (told.joules, told.watts, told.code) == (None, None, "mirrored")
    assert told.reason.startswith("perf:energy-pkg@0 and perf:energy-pkg@8 may show one counter or two")
    halves = [[90e6 * t + 1, 90e6 * t + (1 if t < 5 else 9e6)] for t in range(11)]
    dies = [replace(PKG, id=f"powercap:die-{n}", die=n, mirrors=True) for n in range(2)]
    assert energy(made.log(dies, [(float(t), row) for t, row in enumerate(halves)])).code == "mirrored"
    closed = energy(made.log(dies, [(float(t), [90e6 * t, None]) for t in range(5)]))
    assert closed.code == "read_error"


def test_a_clock_that_is_off_costs_the_watts_of_a_command_and_not_of_a_file():
    log = replace(made.log([WALL], [(0.5 * t, [200.0 + t % 2]) for t in range(121)]), flags=frozenset(["clock_skew"]))
    assert (energy(log).watts, energy(log).code) == (None, "clock_skew")
    assert energy(replace(log, meter="csv")).watts == pytest.approx(200.5)


def test_what_may_be_added_and_what_never():
    core = replace(PKG, id="powercap:c", scope="core")
    psys = replace(PKG, id="powercap:p", scope="psys", socket=None)
    assert may_add(PKG, DRAM)
    assert may_add(PKG, replace(PKG, id="powercap:package-1", socket=1))
    assert may_add(PKG, replace(PKG, id="powercap:die", die=1))
    for other in (PKG, core, psys, replace(PKG, id="perf:x", socket=1), replace(PKG, kind="power", socket=1), WALL):
        assert not may_add(PKG, other)
    found = pick([psys, core, PKG, DRAM], "package", None)
    assert [c.id for c in found.channels] == [PKG.id]
    assert found.left_out == {"powercap:p": "another scope: psys", "powercap:c": "inside package",
                              DRAM.id: "another scope: dram"}  # fmt: skip
    assert totals([psys, core, PKG, DRAM]) == ["package", "package+dram", "dram", "psys"]


@settings(derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(SCOPES), max_size=12), st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_no_total_ever_holds_a_scope_that_lies_inside_another(scopes, sockets):
    channels = [replace(PKG, id=f"m:{n}", scope=s, socket=sockets[n]) for n, s in enumerate(scopes)]
    for total in totals(channels):
        kept = pick(channels, total, None).channels
        assert {c.scope for c in kept} <= set(total.split("+"))
        assert len({(c.scope, c.socket) for c in kept}) == len(kept)


def test_each_second_has_its_watts():
    rows = [(0.5 * t, [300e6 * 0.5 * t + 1]) for t in range(9)] + [(4 + 0.5 * t, [1200e6 + 50e6 * t]) for t in (1, 2)]
    assert watts_each(made.log([PKG], rows)) == pytest.approx([300, 300, 300, 300, 100])
    assert watts_each(made.log([PKG], [])) == []


def test_a_log_is_the_same_after_json():
    log = made.log([PKG, DRAM], [(0.0, [1, None]), (1.0, [2, 3])], "package+dram", [0, 1])
    assert load(json.loads(json.dumps(dump(log)))) == log
    lost = replace(log, lost="vanished: the meter's process: it ended")
    assert (energy(lost).joules, energy(lost).code) == (None, "vanished")
    assert energy(made.log([PKG], [])).joules is None


def told(scope: str, watts: float, seconds: float = 20.0) -> Energy:
    return Energy(scope, watts * seconds, watts, seconds, 1.0)


def test_meters_that_contradict_each_other_are_named():
    assert "80 W" in doubts.sources_disagree(told("dram", 80), told("dram", 20))  # C40
    assert not doubts.sources_disagree(told("package", 200), told("package", 203))
    assert not doubts.sources_disagree(told("package", 200), told("dram", 20))
    assert not doubts.sources_disagree(told("package", 200, 1.0), told("package", 230, 1.0))  # 1 s: 20 %
    assert doubts.exceeds_wall(told("package", 300), told("wall", 250))
    assert not doubts.exceeds_wall(told("package", 200), told("wall", 250))
    assert doubts.unresponsive(told("package", 100), told("package", 104))
    assert not doubts.unresponsive(told("package", 100), told("package", 240))


def test_parts_are_smaller_than_the_whole_and_counters_differ():
    core = replace(PKG, id="powercap:core", scope="core")
    assert doubts.child_exceeds_parent([PKG, core], {PKG.id: 100.0, core.id: 103.0})
    assert not doubts.child_exceeds_parent([PKG, core], {PKG.id: 100.0, core.id: 101.0})
    assert doubts.mirrored([{"a": 100.0, "b": 100.05}, {"a": 70.0, "b": 70.0}]) == "a and b took the same in 2 windows"
    assert not doubts.mirrored([{"a": 100.0, "b": 100.05}, {"a": 70.0, "b": 71.0}])
