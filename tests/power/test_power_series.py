"""A watts series that is known, through every meter over ten simulated minutes: joules within 0.1 %, wraps included."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from host import trees
from power import bmc
from power import meter_trees as made

from cpubench.power import dcmi, hsmp, perf
from cpubench.power.channel import Channel, Log, Meter, Reading, log_of
from cpubench.power.command import CommandMeter
from cpubench.power.energy import energy
from cpubench.power.merged import placed
from cpubench.power.meters import open_meter
from cpubench.power.redfish import RedfishMeter
from cpubench.power.table import Asked, read_table

LENGTH_S = 600
TRUE_J = made.joules(LENGTH_S)


def run(meter: Meter, clock: made.Clock, put, period_s: float = 1.0) -> Log:
    """The log of ten minutes in which ``put`` sets what the meter shows at each moment."""
    put(0.0)
    readings: list[Reading] = meter.read()
    for number in range(1, round(LENGTH_S / period_s) + 1):
        clock.pass_s(period_s)
        put(number * period_s)
        readings += meter.read()
    meter.close()
    return log_of(meter, readings)


def exact(told, scale: float = 1.0) -> None:
    assert told.reason is None
    assert told.joules == pytest.approx(scale * TRUE_J, rel=1e-3)
    assert told.watts == pytest.approx(scale * TRUE_J / LENGTH_S, rel=1e-3)
    assert (told.rejected, told.covered) == (0, 1.0)


def opened(name: str, root: Path) -> tuple[Meter, made.Clock]:
    meter, clock = open_meter(name, root), made.Clock()
    meter._clock = clock  # type: ignore[attr-defined]
    return meter, clock


@pytest.mark.parametrize(
    ("range_", "scale", "start_j"), [(made.AMD_RANGE, 1, 0), (made.DRAM_RANGE, 1, 0), (made.INTEL_RANGE, 2.7, 250_000)]
)
def test_powercap(tmp_path, range_, scale, start_j):
    """Three wraps of each counter."""
    for n in (0, 1):
        made.zone(tmp_path, str(n), f"package-{n}", range_=range_)
    meter, clock = opened("powercap", tmp_path)

    def put(t: float) -> None:
        for n in (0, 1):
            made.joule(tmp_path, str(n), (start_j + scale * made.joules(t) * (1 + 0.1 * n)) % (range_ / 1e6))

    told = energy(run(meter, clock, put))
    exact(told, 2.1 * scale)
    assert told.wraps == 2 * 3


def test_a_counter_that_starts_anywhere_and_is_read_irregularly(tmp_path):
    made.zone(tmp_path, "0", "package-0", range_=made.AMD_RANGE)
    meter, clock = opened("powercap", tmp_path)
    readings, t = [], 0.0
    for step_s in [0.1, 7.3, 0.9, 31.0, 2.2] * 14:
        made.joule(tmp_path, "0", (made.joules(t) + 65500) % (made.AMD_RANGE / 1e6))
        readings += meter.read()
        last = t
        t += step_s
        clock.pass_s(step_s)
    told = energy(log_of(meter, readings))
    assert told.joules == pytest.approx(made.joules(last), rel=1e-3)
    assert told.wraps == int((made.joules(last) + 65500) // (made.AMD_RANGE / 1e6))


def test_perf(tmp_path):
    trees.write(made.packages(tmp_path, 0), {
        "sys/bus/event_source/devices/power/type": "23", "sys/bus/event_source/devices/power/cpumask": "0",
        "sys/bus/event_source/devices/power/events/energy-pkg": "event=0x02",
        "sys/bus/event_source/devices/power/events/energy-pkg.scale": "2.3283064365386962890625e-10",
        "sys/bus/event_source/devices/power/events/energy-pkg.unit": "Joules",
    })  # fmt: skip
    pipes: list[int] = []

    def open_counter(kind: int, config: int, cpu: int) -> int:
        out, into = os.pipe()
        pipes.append(into)
        return out

    found, clock = perf.find(tmp_path, open_counter), made.Clock()
    meter = perf.PerfMeter("perf", "package", found.channels, frozenset([0]), tmp_path, open_counter, clock)
    log = run(meter, clock, lambda t: os.write(pipes[-1], round(made.joules(t) * 2**32).to_bytes(8, "little")))
    for pipe in pipes:
        os.close(pipe)
    exact(energy(log))


@pytest.mark.parametrize(
    ("name", "chip", "value", "label", "scale"),
    [
        ("amd_energy", "amd_energy", "energy1_input", "Esocket0", 1.0),
        ("hsmp_hwmon", "amd_hsmp_hwmon", "power1_input", "", 1.0),
        ("power_meter", "power_meter", "power1_average", "", 1.0),
        ("grace", "power_meter", "power1_average", "", 1.0),
        ("smpro", "smpro", "power1_input", "CORE VRD", 1.0),
        ("xgene", "apm_xgene", "power1_input", "CPU power", 1.0),
    ],
)
def test_hwmon(tmp_path, name, chip, value, label, scale):
    files = {"name": chip, value: "1", value.rpartition("_")[0] + "_label": label}
    if name == "grace":
        files["power1_oem_info"] = "Grace Power Socket 0"
    made.hwmon(tmp_path, 0, "device.0", files)
    meter, clock = opened(name, tmp_path)
    of = made.joules if "energy" in value else made.watts
    path = tmp_path / made.H / "hwmon0" / value
    exact(energy(run(meter, clock, lambda t: path.write_text(f"{round(of(t) * 1e6)}\n"))), scale)


def test_hsmp(tmp_path):
    trees.write(tmp_path, {"dev/hsmp": ""})
    clock, now = made.Clock(), [0]
    channels = [Channel("hsmp:socket-0", "package", "power", 1e-3, socket=0)]
    host = made.hsmp_host(tmp_path, lambda message, socket: now[0])
    meter = hsmp.HsmpMeter("hsmp", "package", channels, None, host, clock)
    exact(energy(run(meter, clock, lambda t: now.__setitem__(0, round(1000 * made.watts(t))))))


def test_dcmi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    trees.write(tmp_path, {"dev/ipmi0": ""})
    said = tmp_path / "said"
    said.write_text(bmc.READING.format(watts=1, state="activated"))
    bmc.ipmitool(tmp_path / "bin", f'while IFS= read -r line; do echo "$line"; done < {said}')
    meter, clock = opened("dcmi", tmp_path)

    def put(t: float) -> None:
        said.write_text(bmc.READING.format(watts=round(made.watts(t)), state="activated"))

    exact(energy(run(meter, clock, put, dcmi.PERIOD_S)))


def test_redfish(monkeypatch):
    for name, value in (("USER", bmc.USER), ("PASSWORD", bmc.PASSWORD), ("INSECURE", "1")):
        monkeypatch.setenv(f"CPUBENCH_REDFISH_{name}", value)
    reading, clock = {"PowerWatts": {"Reading": 1.0}}, made.Clock()
    with bmc.server(bmc.chassis(environment=reading)) as (url, _):
        meter = RedfishMeter("redfish", url, clock)

        def put(t: float) -> None:
            reading["PowerWatts"]["Reading"] = round(made.watts(t), 1)

        exact(energy(run(meter, clock, put, 5.0)))


@pytest.mark.parametrize("unit", ["W", "J"])
def test_a_command_and_a_csv(tmp_path, unit):
    of = made.watts if unit == "W" else made.joules
    path = tmp_path / "lines"
    path.write_text("".join(f"{1.7e9 + t:.3f} {of(t):.2f} {unit}\n" for t in range(LENGTH_S + 1)))
    meter = CommandMeter("cmd", f"cat {path}; sleep 60", made.Clock(), lambda: 1.7e9 + LENGTH_S)
    readings: list[Reading] = []

    def arrived() -> bool:
        readings.extend(meter.read())
        return len(readings) > LENGTH_S

    made.until(arrived)
    exact(energy(log_of(meter, readings)))
    meter.close()
    table = tmp_path / "lines.csv"
    table.write_text(path.read_text().replace(" ", ","))
    ties = ((0, round(1.7e18)), (LENGTH_S * 10**9, round(1.7e18) + LENGTH_S * 10**9))
    exact(energy(placed(read_table(table, Asked()), "wall", ties, (0, LENGTH_S * 10**9))))
