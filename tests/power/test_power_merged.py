"""Rows of a CSV on the clock of the samples, and what is said of files whose times cannot be right."""

from __future__ import annotations

import math

import pytest

from cpubench.errors import UsageError
from cpubench.power import clocks
from cpubench.power.channel import LATER, dump, load
from cpubench.power.energy import energy
from cpubench.power.merged import doubt, placed, zone_hint
from cpubench.power.meters import open_meter
from cpubench.power.table import Asked, read_table
from cpubench.results import windows

S = 10**9
T = 1_700_000_000
RESTS = [((T + 20) * S, (T + 30) * S), ((T + 90) * S, (T + 100) * S)]
LOADS = [((T + at) * S, (T + at + 2) * S) for at in range(30, 90, 5)]


def written(tmp_path, watts, shift_s=0.0, every_s=1.0, last=120):
    path = tmp_path / "w.csv"
    times = [number * every_s for number in range(round(last / every_s))]
    path.write_text("".join(f"{T + at + shift_s:.3f},{watts(at):.4f}\n" for at in times))
    return read_table(path, Asked())


def host(at):
    return 60.0 if 20 <= at <= 30 or 90 <= at <= 100 else 160.0 + 5 * math.sin(at)


def test_rows_stand_where_the_ties_put_them(tmp_path):
    table = written(tmp_path, lambda at: 300 + at)
    ties = ((50 * S, (T + 2) * S), (150 * S, (T + 102) * S + S // 100))  # 100 ppm apart
    log = placed(table, "wall", ties, (50 * S, 54 * S))
    assert [reading.at_ns[0] // 10**6 for reading in log.readings] == [
        49_000,
        50_000,
        50_999,
        51_999,
        52_999,
        53_999,
        54_999,
    ]
    assert (log.meter, log.scope, log.channels[0].provenance, log.clock) == (LATER, "wall", "external", ties)
    assert load(dump(log)) == log
    told = energy(log, 50 * S, 54 * S)
    assert told.watts == pytest.approx(304, abs=1e-3)
    assert len(placed(table, "wall", ties, (50 * S, 54 * S), beside=0).readings) == 5


def test_a_clock_that_was_set_costs_the_watts_of_that_while(tmp_path):
    table = written(tmp_path, host)
    ties = ((0, T * S), (10 * S, (T + 10) * S + S // 10))
    log = placed(table, "wall", ties, (S, 2 * S))
    assert log.lost == "clock_step: the clock of this host was set by 0.1 s meanwhile"
    assert energy(log, S, 2 * S).code == "clock_step"
    assert clocks.was_set(((0, T * S), (10 * S, (T + 10) * S + 6_000_000))) == ""  # pulled
    assert clocks.was_set(((5, 5), (5, 6))).startswith("clock_step")


def test_a_tie_is_the_try_that_nothing_came_between():
    mono = iter([0, 100, 200, 202, 300, 390, 400, 500, 600, 700])
    unix = iter([10_050, 10_201, 10_350, 10_499, 10_650])
    assert clocks.tie(lambda: next(mono), lambda: next(unix)) == (201, 10_201)


def test_meanwhile_there_are_no_watts_but_a_reason():
    log = clocks.at_rest(0.01)
    told = energy(log)
    assert (told.watts, told.code, told.reason) == (None, "to_merge", "watts are to be merged")
    assert log.clock[1][0] - log.clock[0][0] >= 10**7
    assert windows.CSV == LATER
    with pytest.raises(UsageError, match="only `cpubench run` takes it"):
        open_meter(LATER)


@pytest.mark.parametrize("every_s", [0.1, 0.5, 1.0])
def test_a_file_of_the_run_is_believed(tmp_path, every_s):
    assert doubt(written(tmp_path, host, every_s=every_s), RESTS, LOADS) == ""
    assert doubt(written(tmp_path, host, 0.2, every_s=every_s), RESTS, LOADS) == ""
    assert doubt(written(tmp_path, host), [], LOADS).startswith("clock_unseen: ")


@pytest.mark.parametrize("off_s", [-4.0, -2.0, 2.0, 4.0])
def test_a_clock_that_is_off_is_seen_by_when_the_host_rested(tmp_path, off_s):
    said = doubt(written(tmp_path, host, off_s), RESTS, LOADS)
    assert said.startswith("clock_skew: at rest the file has ")
    given = float(said.partition("--offset ")[2].partition(",")[0])
    assert given == pytest.approx(-off_s, abs=1.0)


def test_another_time_zone_is_told_by_the_load(tmp_path):
    day = 3 * 3600

    def long(at):
        return host(at - day) if 0 <= at - day <= 120 else 70.0

    table = written(tmp_path, long, 7200 - day, last=2 * day)
    assert doubt(table, RESTS, LOADS) == (
        "unresponsive: 70 W at rest and 70 W under load do not tell the run from rest; "
        "with --offset -7200 they would: is it another time zone?"
    )
    assert doubt(written(tmp_path, lambda at: 70.0), RESTS, LOADS).endswith("do not tell the run from rest")
    late = written(tmp_path, host, -5.5 * 3600)
    assert zone_hint(late, (RESTS[0][0], RESTS[1][1])) == "; with --offset +19800 it would: is it another time zone?"
    assert zone_hint(written(tmp_path, host, 1e6), (RESTS[0][0], RESTS[1][1])) == ""
