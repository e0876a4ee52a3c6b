"""hwmon chips, the perf PMU and HSMP: what each channel is, and what never counts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from host import trees
from power import meter_trees as made

from cpubench import _native
from cpubench.errors import UsageError
from cpubench.power import hsmp, hwmon, perf, powercap
from cpubench.power.backend import sockets_of
from cpubench.power.channel import log_of
from cpubench.power.energy import energy
from cpubench.power.meters import open_meter
from cpubench.power.overlap import may_add, pick, totals
from cpubench.power.probe import probe, watch

GRACE = {"Module": 300, "Grace": 250, "CPU": 180, "SysIO": 60}


def two_hsmp(root: Path, first: int, second: int) -> Path:
    for number, device, watts in ((first, "AMDI0097:00", 200), (second, "AMDI0097:01", 150)):
        made.hwmon(root, number, device, {"name": "amd_hsmp_hwmon", "power1_input": str(watts * 10**6),
                                          "power1_cap": "400000000", "power1_cap_max": "400000000"})  # fmt: skip
    return made.packages(root, 0, 1)


def grace(root: Path, below: str = "device/", sockets: int = 1) -> Path:
    for number, (socket, (name, watts)) in enumerate((s, item) for s in range(sockets) for item in GRACE.items()):
        made.hwmon(root, number, f"ACPI000D:{number:02}", {
            "name": "power_meter", "power1_average": str(watts * 10**6), "power1_is_battery": "0",
            "power1_average_interval": "1000", "power1_oem_info": f"{name} Power Socket {socket}",
        }, below)  # fmt: skip
    return root


def now(root: Path, name: str):
    """The energy of a second of a meter whose values stand still."""
    clock = made.Clock()
    meter = open_meter(name, root)
    meter._clock = clock
    (log,) = watch([meter], 1.0, clock.pass_s)
    return energy(log)


def test_channels_keep_their_names_when_hwmon_numbers_change(tmp_path):
    a = hwmon.find(two_hsmp(tmp_path / "a", 3, 4), "hsmp_hwmon")  # C44
    b = hwmon.find(two_hsmp(tmp_path / "b", 4, 3), "hsmp_hwmon")
    assert [(c.id, c.socket) for c in a.channels] == [(c.id, c.socket) for c in b.channels]
    assert [c.path[-19:] for c in a.channels] == [f"hwmon{n}/power1_input" for n in (3, 4)]
    assert now(tmp_path / "b", "hsmp_hwmon").watts == pytest.approx(350)
    assert now(tmp_path / "b", "hsmp_hwmon").by_socket == {0: pytest.approx(200), 1: pytest.approx(150)}


def test_two_sockets_of_one_device_are_told_apart_by_order(tmp_path):
    for number in (7, 10):
        folder = tmp_path / f"sys/class/hwmon/hwmon{number}"
        trees.write(folder, {"name": "amd_hsmp_hwmon", "power1_input": str(number * 10**7)})
        (tmp_path / "sys/devices/platform/amd_hsmp").mkdir(parents=True, exist_ok=True)
        (folder / "device").symlink_to(tmp_path / "sys/devices/platform/amd_hsmp")
    assert now(made.packages(tmp_path, 0, 4), "hsmp_hwmon").by_socket == {0: pytest.approx(70), 4: pytest.approx(100)}


@pytest.mark.parametrize("below", ["", "device/"])
def test_of_nested_grace_meters_one_scope_is_taken(tmp_path, below):
    found = hwmon.find(grace(tmp_path, below), "grace")  # C47
    assert totals(found.channels) == ["module", "superchip"]
    for total, watts in (("module", 250), ("superchip", 300)):
        assert now(tmp_path, f"grace:{total}").watts == pytest.approx(watts)
    assert now(tmp_path, "auto").watts == pytest.approx(250)
    for a in found.channels:
        assert not any(may_add(a, b) for b in found.channels)
    assert hwmon.find(tmp_path, "power_meter").channels == []  # nor as a board's


def test_two_grace_sockets_are_added_in_their_scope(tmp_path):
    assert now(grace(tmp_path, sockets=2), "grace").watts == pytest.approx(500)


def test_a_board_meter_is_no_package_and_a_battery_no_meter(tmp_path):
    base = {"name": "power_meter", "power1_average": "412000000", "power1_oem_info": "PSU \x1b[31m"}
    made.hwmon(tmp_path, 0, "ACPI000D:00", {**base, "power1_is_battery": "0"}, "device/")
    made.hwmon(tmp_path, 1, "ACPI000D:01", {**base, "power1_is_battery": "1"}, "device/")
    told = now(tmp_path, "power_meter")
    assert (told.scope, told.watts) == ("board", pytest.approx(412))
    assert len(hwmon.find(tmp_path, "power_meter").channels) == 1


@pytest.mark.parametrize("text", ["4294967295000", "9223372036854775807", "18446744073709551615"])
def test_what_firmware_says_for_nothing_is_a_sentinel(tmp_path, text):
    made.hwmon(tmp_path, 0, "ACPI000D:00", {"name": "power_meter", "power1_average": text})
    assert now(tmp_path, "power_meter").code == "sentinel"
    made.hwmon(tmp_path, 1, "APMC0D29:00", {"name": "apm_xgene", "power1_input": text, "power1_label": "CPU power"})
    assert now(tmp_path, "xgene").code == "sentinel"  # C46


def test_rails_add_up_to_soc_and_memory(tmp_path):
    labels = ["CORE VRD", "SOC", "DIMM VRD1", "DIMM VRD2", "RCA VRD", "SOC TDP"]
    files = {"name": "smpro"}
    for n, label in enumerate(labels, 1):
        files |= {f"power{n}_label": label, f"power{n}_input": str(n * 10**7)}
    made.hwmon(tmp_path, 2, "smpro-hwmon.1.auto", files)
    assert now(tmp_path, "smpro").watts == pytest.approx(10 + 20 + 50)
    assert now(tmp_path, "smpro:dram").watts == pytest.approx(30 + 40)
    assert now(tmp_path, "smpro:soc+dram").watts == pytest.approx(150)
    off = hwmon.find(tmp_path, "smpro", made.Failing({"power1_input": errno.ENXIO}))
    assert [p.code for p in off.problems] == ["vanished"]


def test_of_amd_energy_sockets_count_and_cores_do_not(tmp_path):
    files = {"name": "amd_energy"}
    for n, label in enumerate(["Ecore000", "Ecore001", "Esocket0", "Esocket1"], 1):
        files |= {f"energy{n}_label": label, f"energy{n}_input": str(10**9 * n)}
    made.packages(made.hwmon(tmp_path, 0, "amd_energy.0", files), 0, 1)
    found = hwmon.find(tmp_path, "amd_energy")
    assert [(c.id, c.kind, c.socket) for c in found.channels] == [("amd_energy:Esocket0", "energy", 0),
                                                                 ("amd_energy:Esocket1", "energy", 1)]  # fmt: skip
    closed = hwmon.find(tmp_path, "amd_energy", made.Failing({"energy4_input": errno.EACCES}))
    assert [p.code for p in closed.problems] == ["permission"]
    assert closed.named == {("package", 0, None, ""), ("package", 1, None, "")}


@pytest.mark.parametrize("lost", range(1, 6))
def test_rails_without_one_of_them_are_no_sum(tmp_path, lost):
    labels = ["CORE VRD", "SOC VRD", "DIMM VRD1", "DIMM VRD2", "RCA VRD"]
    files = {"name": "smpro"}
    for n, label in enumerate(labels, 1):
        files |= {f"power{n}_label": label, f"power{n}_input": str(n * 10**7) if n != lost else "busy"}
    made.hwmon(tmp_path, 2, "smpro-hwmon.1.auto", files)
    whole, broken = ("smpro:soc", "smpro:dram") if lost in (3, 4) else ("smpro:dram", "smpro:soc")
    open_meter(whole, tmp_path).close()
    for name in (broken, "smpro:soc+dram"):
        with pytest.raises(UsageError, match=rf"partial: {broken[6:]} of package 0 \w+ is listed and cannot be read"):
            open_meter(name, tmp_path)
    rows = {row["name"]: row for row in probe(tmp_path, 0.2, lambda s: None)["meters"]}
    assert [p["code"] for p in rows[broken]["problems"]].count("partial") == 1
    assert (rows[broken]["usable"], rows["smpro:soc+dram"]["watts"]) == (False, None)


def test_one_of_two_board_meters_is_no_board(tmp_path):
    for n in range(2):
        made.hwmon(tmp_path, n, f"ACPI000D:0{n}", {"name": "power_meter", "power1_average": "200000000"}, "device/")
    assert now(tmp_path, "power_meter").watts == pytest.approx(400)
    (tmp_path / made.H / "hwmon1/device/power1_average").write_text("")
    for name in ("power_meter", "auto"):
        with pytest.raises(UsageError, match="partial: board ACPI000D:01 is listed and cannot be read; read_error: /"):
            open_meter(name, tmp_path)


@pytest.mark.parametrize("chip", ["amdgpu", "nvme", "ina226", "corsairpsu"])
def test_other_chips_never_count(tmp_path, chip):
    made.hwmon(tmp_path, 0, "x", {"name": chip, "power1_input": "99000000", "power1_average": "99000000"})
    assert all(not hwmon.find(tmp_path, name).channels for name in hwmon.CHIPS)
    with pytest.raises(UsageError, match="no_interface"):
        open_meter("auto", tmp_path)


def power_pmu(root: Path, events: dict[str, tuple[str, str]], cpumask: str = "0", kind: int = 23) -> Path:
    base = "sys/bus/event_source/devices/power"
    files = {f"{base}/type": str(kind), f"{base}/cpumask": cpumask}
    for name, (event, scale) in events.items():
        files |= {f"{base}/events/{name}": event, f"{base}/events/{name}.scale": scale,
                  f"{base}/events/{name}.unit": "Joules"}  # fmt: skip
    return trees.write(root, files)


SCALE = "2.3283064365386962890625e-10"
ALL = {"energy-pkg": ("event=0x02", SCALE), "energy-ram": ("event=0x03", SCALE), "energy-cores": ("event=0x01", SCALE),
       "energy-psys": ("event=0x05", "1")}  # fmt: skip


class Counters:
    """Stands in for perf_event_open: a pipe for each event, into which the counts are put before they are read."""

    def __init__(self) -> None:
        self.pipes: dict[tuple[int, int], int] = {}
        self.opened: list[tuple[int, int, int]] = []

    def __call__(self, kind: int, config: int, cpu: int) -> int:
        out, self.pipes[config, cpu] = os.pipe()
        self.opened.append((kind, config, cpu))
        return out

    def put(self, config: int, cpu: int, counts: int) -> None:
        os.write(self.pipes[config, cpu], (counts & (2**64 - 1)).to_bytes(8, "little"))


def test_without_the_pmu_powercap_alone_is_used(tmp_path):
    made.zone(tmp_path, "0", "package-0")
    assert [p.code for p in perf.find(tmp_path).problems] == ["no_interface"]  # C7
    assert open_meter("auto", tmp_path).name == "powercap:package"


def test_events_are_one_for_each_package_of_the_cpumask(tmp_path):
    made.packages(power_pmu(tmp_path, ALL, "0-1"), 0, 1)
    counters = Counters()
    found = perf.find(tmp_path, counters)
    assert [(c.id, c.scope, c.socket, c.unit) for c in found.channels] == [
        ("perf:energy-pkg@0", "package", 0, 2**-32), ("perf:energy-pkg@1", "package", 1, 2**-32),
        ("perf:energy-ram@0", "dram", 0, 2**-32), ("perf:energy-ram@1", "dram", 1, 2**-32),
        ("perf:energy-psys@0", "psys", None, 1.0),
    ]  # fmt: skip
    assert {kind for kind, _, _ in counters.opened} == {23}


def test_an_event_of_a_die_that_is_closed_leaves_no_sum(tmp_path):
    trees.write(power_pmu(tmp_path, ALL, "0,8"), {"proc/cpuinfo": made.AMD})
    for cpu, die in ((0, 0), (8, 1)):
        folder = f"{trees.SYS_CPU}/cpu{cpu}/topology"
        trees.write(tmp_path, {f"{folder}/physical_package_id": "0", f"{folder}/die_id": str(die)})
    trees.write(tmp_path, {f"{trees.SYS_CPU}/online": "0,8"})
    counters = Counters()

    def refuse(kind: int, config: int, cpu: int) -> int:
        if cpu == 8:
            raise OSError(errno.EBUSY, "busy")
        return counters(kind, config, cpu)

    whole, part = perf.find(tmp_path, counters), perf.find(tmp_path, refuse)
    assert pick(whole.channels, "package", sockets_of(tmp_path, whole), whole.named).reason == ""
    lost = pick(part.channels, "package", sockets_of(tmp_path, part), part.named).reason
    assert lost == "partial: package of package 0 die 1 is listed and cannot be read"


def test_amd_has_packages_only_whatever_is_listed(tmp_path):
    trees.write(power_pmu(tmp_path, ALL), {"proc/cpuinfo": made.AMD})
    assert [c.scope for c in perf.find(tmp_path, Counters()).channels] == ["package"]


def test_a_perf_counter_that_goes_negative_is_a_step_back(tmp_path):
    made.packages(power_pmu(tmp_path, ALL), 0)
    counters, clock = Counters(), made.Clock()
    found = perf.find(tmp_path, counters)
    meter = perf.PerfMeter("perf", "package", found.channels[:1], frozenset([0]), tmp_path, counters, clock)
    readings = []
    for counts in (10, -(2**31) * 4, 2**40):  # C20
        counters.put(2, 0, counts)
        readings += meter.read()
        clock.pass_s(1)
    meter.close()
    told = energy(log_of(meter, readings))
    assert readings[1].raw == [-(2**33)]
    assert "negative_step" in told.flags
    assert told.joules is None


@pytest.mark.parametrize(("number", "code"), [(errno.EACCES, "permission"), (errno.EPERM, "permission"),
                                              (errno.ENODEV, "vanished"), (errno.EINVAL, "read_error")])  # fmt: skip
def test_a_closed_event_says_how_to_open_it(tmp_path, number, code):
    def refuse(kind: int, config: int, cpu: int) -> int:
        raise OSError(number, os.strerror(number))

    found = perf.find(power_pmu(tmp_path, {"energy-pkg": ALL["energy-pkg"]}), refuse)
    assert [p.code for p in found.problems] == [code]
    assert ("perf_event_paranoid=0" in found.problems[0].hint) == (code == "permission")


@pytest.mark.parametrize("event", [("event=0x02,umask=1", SCALE), ("rubbish", SCALE), ("event=0x02", "nan"),
                                   ("event=0x02", "1e400"), ("event=0x02", "-1")])  # fmt: skip
def test_an_event_of_another_form_is_not_guessed(tmp_path, event):
    found = perf.find(power_pmu(tmp_path, {"energy-pkg": event}), Counters())
    assert ([p.code for p in found.problems], found.channels) == (["read_error"], [])


def test_a_real_event_is_opened_and_read(tmp_path):
    """The kernel's own clock event, as if it were energy: 1e-7 J each nanosecond are 100 W."""
    try:
        os.close(_native.perf_open(1, 0, 0))
    except OSError as error:
        pytest.skip(f"perf_event_open: {error.strerror}")
    made.packages(power_pmu(tmp_path, {"energy-pkg": ("event=0x00", "1e-7")}, kind=1), 0)
    (log,) = watch([open_meter("perf", tmp_path)], 0.3)
    told = energy(log)
    assert told.watts == pytest.approx(100, rel=0.05)
    assert told.covered == 1.0


def test_memory_of_two_interfaces_can_disagree(tmp_path):
    made.zone(made.zone(tmp_path, "0", "package-0"), "0:0", "dram")
    assert {c.scope for c in powercap.find(tmp_path).channels} == {"package", "dram"}
    assert {c.scope for c in perf.find(power_pmu(tmp_path, ALL), Counters()).channels} == {"package", "dram", "psys"}


def test_hsmp_tells_each_socket_and_ends_at_the_last(tmp_path):
    trees.write(made.packages(tmp_path, 0, 1), {"dev/hsmp": "", "proc/cpuinfo": made.AMD})

    def answer(message: int, socket: int) -> int:
        assert message == 4
        if socket > 1:
            raise OSError(errno.ENODEV, "No such device")
        return 210_500 + 1000 * socket

    host, clock = made.hsmp_host(tmp_path, answer), made.Clock()
    found = hsmp.find(host)
    assert [(c.scope, c.socket, c.unit) for c in found.channels] == [("package", 0, 1e-3), ("package", 1, 1e-3)]
    meter = hsmp.HsmpMeter("hsmp", "package", found.channels, frozenset([0, 1]), host, clock)
    (log,) = watch([meter], 1.0, clock.pass_s)
    assert energy(log).watts == pytest.approx(422)


def test_an_hsmp_that_does_not_answer_says_where_to_enable_it(tmp_path):
    trees.write(tmp_path, {"proc/cpuinfo": made.AMD})
    absent = hsmp.find_below(tmp_path)  # C65
    assert [p.code for p in absent.problems] == ["no_interface"]
    assert "HSMP Support" in absent.problems[0].hint
    trees.write(tmp_path, {"dev/hsmp": ""})
    found = hsmp.find_below(tmp_path)  # a plain file has no such ioctl: the real call, and a real errno
    assert (found.channels, [p.code for p in found.problems]) == ([], ["read_error"])
    assert hsmp.find_below(tmp_path / "intel").problems == []
