"""The sampler: readings at the edges of windows and inside, none between, and a run that outlives its meter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from power import meter_trees as made

from cpubench.errors import UsageError
from cpubench.power.channel import now_ns
from cpubench.power.energy import energy
from cpubench.power.gauge import gauge
from cpubench.power.meters import open_meter
from cpubench.power.sampler import Sampler


def on_cpu_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


@pytest.fixture
def server(tmp_path):
    """Two packages with memory, as on a common server."""
    for n in (0, 1):
        made.zone(tmp_path, str(n), f"package-{n}")
        made.zone(tmp_path, f"{n}:0", "dram")
    return tmp_path


def test_a_window_is_read_at_its_edges_and_inside(server):
    with Sampler("powercap", server) as sampler:
        for joules in (100.0, 250.0):  # of two windows
            sampler.begin()
            t0 = now_ns()
            time.sleep(0.45)
            for n in (0, 1):
                made.joule(server, str(n), joules)
            t1 = now_ns()
            log = sampler.end()
            assert max(log.readings[0].at_ns) <= t0 < t1 <= min(log.readings[-1].at_ns)
            assert len(log.readings) >= 4
            told = energy(log)
            assert told.joules == pytest.approx(200 if joules == 100 else 300, rel=0.02)  # all of it in the last step
            assert energy(log, t0, t1).covered == 1.0


def test_between_windows_it_sleeps(server):
    with Sampler("powercap", server) as sampler:
        sampler.begin()
        sampler.end()
        pid = sampler._process.pid
        counts = [on_cpu_ns(pid)]

        def sleeps() -> bool:  # it may still be on its way to sleep after its answer
            time.sleep(0.3)
            counts.append(on_cpu_ns(pid))
            return counts[-1] == counts[-2]

        made.until(sleeps)
        assert len(counts) <= 3


@pytest.mark.parametrize("name", ["frobnicate", "powercap:wall", "perf", "cmd:echo hello; sleep 9", "redfish:bmc"])
def test_a_meter_that_cannot_be_opened_is_told_by_the_sampler_too(server, name):
    with pytest.raises(UsageError) as here:
        open_meter(name, server)
    with pytest.raises(UsageError) as there:
        Sampler(name, server)
    assert (there.value.code, str(there.value)) == (here.value.code, str(here.value))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_meter_that_dies_leaves_a_reason_and_the_run_goes_on(server, number):
    with Sampler("powercap", server) as sampler:
        sampler.begin()
        os.kill(sampler._process.pid, number)
        told = energy(sampler.end())
        assert (told.joules, told.code) == (None, "vanished")
        sampler.begin()
        assert energy(sampler.end()).reason == "the meter's process: it ended"


def test_a_meter_that_hangs_is_waited_for_no_longer_than_agreed(server, monkeypatch):
    monkeypatch.setattr("cpubench.power.sampler.ANSWER_S", 0.3)
    with Sampler("powercap", server) as sampler:
        sampler.begin()
        os.kill(sampler._process.pid, signal.SIGSTOP)
        try:
            assert energy(sampler.end()).reason == "the meter's process: no answer in time"
        finally:
            os.kill(sampler._process.pid, signal.SIGCONT)


def test_it_ends_with_whoever_started_it(server, tmp_path):
    sampler = Sampler(f'cmd:echo $$ > {tmp_path}/pid; while :; do echo "$(date +%s.%N) 250"; sleep 0.1; done', server)
    child = int((tmp_path / "pid").read_text())
    pid = sampler._process.pid
    assert sampler._process.stdin is not None
    sampler._process.stdin.close()  # as when the block is killed
    sampler._process.wait(10)
    made.until(lambda: made.gone(pid) and made.gone(child))
    sampler.close()


def test_a_commands_lines_before_and_after_a_window_are_its_edges(server):
    command = 'while :; do echo "$(date +%s.%N) 250"; sleep 0.3; done'
    with Sampler(f"cmd:{command}", server) as sampler:
        for _ in range(2):
            sampler.begin()
            t0 = now_ns()
            time.sleep(0.4)
            t1 = now_ns()
            told = energy(sampler.end(), t0, t1)
            assert told.watts == pytest.approx(250)
            assert told.covered > 0.99


def test_the_sampler_imports_nothing_that_starts_threads_or_takes_long():
    code = "import sys, cpubench.power.sampler; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "msgspec", "click", "rich", "pytest", "psutil", "cpubench._native", "ssl"} & set(told)


def test_reading_ten_times_a_second_costs_less_than_a_thousandth_of_a_core(server):
    meter = open_meter("powercap:package+dram", server)
    costs = []
    for _ in range(5):
        begin = time.process_time_ns()
        for _ in range(200):
            meter.read()
        costs.append((time.process_time_ns() - begin) / 200)
    meter.close()
    assert 10 * min(costs) / 1e9 < 0.001


def test_a_gauge_tells_the_watts_of_each_second_or_nothing(server):
    scope, seconds = gauge("cmd:" + 'while :; do echo "$(date +%s.%N) 250"; sleep 0.1; done', server)
    assert (scope, seconds(2.0)) == ("wall", [pytest.approx(250)] * 2)
    with pytest.raises(UsageError, match="constant: powercap:package-0 did not move"):
        gauge("powercap", server)
    with pytest.raises(UsageError, match="no_interface"):
        gauge("perf", server)


def test_a_gauge_whose_meter_stops_meanwhile_tells_nothing(server):
    scope, seconds = gauge('cmd:for i in $(seq 40); do echo "$(date +%s.%N) 250"; sleep 0.05; done', server)
    assert (scope, seconds(5.0)) == ("wall", None)
