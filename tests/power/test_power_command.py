"""External meters: commands that print watts, or anything else."""

from __future__ import annotations

import time

import pytest
from power import meter_trees as made

from cpubench.errors import UsageError
from cpubench.power.channel import now_ns
from cpubench.power.command import CommandMeter, parse_line
from cpubench.power.energy import energy
from cpubench.power.gauge import found
from cpubench.power.meters import open_meter
from cpubench.power.probe import probe_one, watch

STEADY = 'while :; do echo "$(date +%s.%N) {}"; sleep 0.05; done'


def test_lines_are_time_and_watts_or_joules():
    assert parse_line(b"1700000000.25 251.5") == (1700000000.25, 251.5, "W")
    assert parse_line(b" 1700000000,98123.4 J\r") == (1700000000, 98123.4, "J")
    assert parse_line(b"1700000000\t3e2 W") == (1700000000, 300, "W")
    for line in (
        b"",
        b"251",
        b"now 251",
        b"1 2 3",
        b"1 -2",
        b"1 nan",
        b"1 inf",
        b"1 1e99",
        b"1 2 kW",
        b"1e9 2",
        b"\xff 1",
    ):
        assert parse_line(line) is None or parse_line(line).value < 1e100, line
    assert parse_line(b"1 nan") is None


def test_a_command_is_a_meter_of_the_wall(tmp_path):
    (log,) = watch([open_meter("cmd:" + STEADY.format(245.5))], 0.6)
    told = energy(log)
    assert (told.scope, told.watts) == ("wall", pytest.approx(245.5))
    assert log.channels[0].provenance == "external"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "no command"),
        ("echo hello; sleep 60", "printed b'hello', not UNIX_TIME WATTS"),
        ("printf '\\033[2J\\n'; sleep 60", r"printed b'\\x1b\[2J', not UNIX_TIME"),
        ("exit 3", r"ended without a reading \(status 3\)"),
        ("no-such-program-here 2>/dev/null", r"status 127"),
        ("echo 12 250; sleep 60", "its time is off by"),
        ("echo $(date +%s)000 250; sleep 60", "not UNIX_TIME|its time is off by"),  # milliseconds
        ("head -c 100000 /dev/zero | tr '\\0' x; sleep 60", "printed b'xxx"),
    ],
)
def test_a_command_that_is_no_meter_is_refused_in_one_line(command, said):
    with pytest.raises(UsageError, match=said) as raised:
        open_meter(f"cmd:{command}")
    assert raised.value.code == "meter_command"
    assert str(raised.value).isprintable()


def test_a_command_that_hangs_is_refused_and_ended(tmp_path):
    with pytest.raises(UsageError, match=r"printed nothing within 0\.3 s"):
        CommandMeter("cmd", f"sleep 600 & echo $! > {tmp_path}/child; wait", first_line_s=0.3)
    child = int((tmp_path / "child").read_text())
    made.until(lambda: made.gone(child))


def test_a_command_that_ends_leaves_a_gap_with_its_name(tmp_path):
    meter = open_meter(f'cmd:for i in 1 2 3; do echo "$(date +%s.%N) 250"; sleep 0.05; done; touch {tmp_path}/end')
    readings = meter.read()
    made.until(lambda: (tmp_path / "end").exists())
    made.until(lambda: meter.read()[-1].errors == ["vanished"])
    readings += meter.read()
    meter.close()
    assert readings[-1][1:] == ([None], ["vanished"])


def test_garbage_in_the_middle_is_a_reading_without_a_value():
    meter = open_meter('cmd:t=$(date +%s.%N); echo "$t 250"; echo "$t oops"; echo "$t 3 J"; echo "$t 251"; sleep 60')
    readings = []

    def arrived():
        readings.extend(meter.read())
        return len(readings) >= 4

    made.until(arrived)
    meter.close()
    assert [r.raw[0] for r in readings] == [250, None, None, 251]
    assert [r.errors[0] for r in readings] == ["", "garbage", "garbage", ""]


def test_a_meter_that_goes_back_in_time_is_named(tmp_path):
    base = time.time()
    (tmp_path / "lines").write_text("".join(f"{base + t:.3f} 250\n" for t in (-8, -7, -6, -9, -5, -4, 0.1)))
    meter = CommandMeter("cmd", f"cat {tmp_path}/lines; sleep 60")
    (log,) = watch([meter], 0.2)
    told = energy(log, now_ns() - 8 * 10**9, now_ns())
    assert "time_backwards" in told.flags


@pytest.mark.parametrize(("ours_s", "said"), [(2.0, "come 2 s after their times"), (0.5, r"come 0\.5\d* s after"),
                                              (-3.0, r"came [23](\.\d)? s before")])  # fmt: skip
def test_a_meter_whose_clock_is_off_is_refused(monkeypatch, ours_s, said):
    """Its lines of after a window would be those of the window."""
    monkeypatch.setattr("cpubench.power.command.GAP_S", 0.3)
    with pytest.raises(UsageError, match=f"its lines {said}.*NTP"):
        CommandMeter("cmd", STEADY.format(250), unix=lambda: time.time() + ours_s)


@pytest.mark.parametrize("ours_s", [1.0, -1.0])
def test_a_clock_that_is_set_meanwhile_costs_the_watts(ours_s):
    off_s = [0.0]
    meter = CommandMeter("cmd", STEADY.format(250), unix=lambda: time.time() + off_s[0])
    assert meter.read()
    off_s[0] = ours_s
    (log,) = watch([meter], 1.0)
    assert (energy(log).watts, energy(log).code) == (None, "clock_skew")


def test_lines_that_are_late_now_and_then_are_of_their_own_time():
    command = 'while :; do t=$(date +%s.%N); sleep 0.5; echo "$t 250"; echo "$(date +%s.%N) 250"; done'
    (log,) = watch([CommandMeter("cmd", command)], 1.2)
    assert energy(log).watts == pytest.approx(250)
    assert "clock_skew" not in log.flags


def test_a_command_that_prints_each_few_seconds_is_waited_for(monkeypatch, tmp_path):
    command = 'cmd:while :; do echo "$(date +%s.%N) 250"; sleep 1.6; done'
    assert found(command, tmp_path).scope == "wall"
    (row,) = probe_one(command, tmp_path, 0.4)["meters"]
    assert row["watts"] == pytest.approx(250)
    monkeypatch.setattr("cpubench.power.gauge.GAP_S", 1.4)
    with pytest.raises(UsageError, match=r"slow: no second value came within 1\.4 s"):
        found(command, tmp_path)


def test_joules_are_a_counter(tmp_path):
    command = 'n=0; while :; do n=$((n+30)); echo "$(date +%s.%N) $n J"; sleep 0.1; done'
    meter = open_meter(f"cmd:{command}")
    (log,) = watch([meter], 0.5)
    assert log.channels[0].kind == "energy"
    assert energy(log).by_channel["external:joules"] > 0


def test_one_named_meter_is_probed(tmp_path):
    document = probe_one("cmd:" + STEADY.format(99), tmp_path, 0.4)
    (row,) = document["meters"]
    assert (row["usable"], row["watts"], document["problems"]) == (True, pytest.approx(99), [])
