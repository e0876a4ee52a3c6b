"""Which limits are found on odd hosts, and why some are not offered: rows of the collected cases."""

import errno
import os
import struct

import pytest
from host.trees import SYS_CPU, write
from power import limit_trees as trees

from cpubench.power import caps, proxies, show
from cpubench.power.bmc_limits import BmcLimit, parse_dcmi_limit, parse_redfish_limit
from cpubench.power.controls import Problem
from cpubench.power.levels import parse_level
from cpubench.power.registers import Host


def chosen(root):
    return caps.choose(trees.host(root))


def test_packages_are_found_by_name_at_hex_indexes_between_psys_and_dram(tmp_path):
    trees.xeon(tmp_path)
    controls, problems = chosen(tmp_path)
    assert [(one.zone, one.socket, one.window_us) for one in controls] == [
        ("package-0", 0, 999424),
        ("package-1", 1, 999424),
    ]
    assert [x.constraint for x in controls[0].capped] == ["long_term", "short_term"]
    assert (controls[0].ceiling, problems) == (350_000_000, [])
    offered = {row["zone"] for row in show.limits(trees.host(tmp_path))["limits"] if row["offered"]}
    assert offered == {"package-0", "package-1"}  # never DRAM (C58), never psys


def test_twelve_packages_are_counted_in_hex(tmp_path):
    trees.base(tmp_path, 12)
    for n in range(12):
        trees.zone(tmp_path, f"intel-rapl:{n:x}", f"package-{n}")
    assert [one.socket for one in chosen(tmp_path)[0]] == list(range(12))


def test_dies_of_a_package_are_zones_of_one_socket(tmp_path):
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0-die-0")
    trees.zone(tmp_path, "intel-rapl:1", "package-0-die-1")
    assert [one.socket for one in chosen(tmp_path)[0]] == [0, 0]


def test_a_constraint_is_known_by_its_name_and_not_its_number(tmp_path):
    trees.base(tmp_path, 1)
    folder = trees.zone(tmp_path, "intel-rapl:0", "package-0", None, 420)
    (control,), _ = chosen(tmp_path)
    assert [(x.constraint, x.place) for x in control.capped] == [
        ("short_term", f"{folder}/constraint_0_power_limit_uw")
    ]
    (tmp_path / folder / "constraint_0_name").unlink()
    assert chosen(tmp_path)[1][0].code == "unsupported"
    assert "without a name" in chosen(tmp_path)[1][0].hint


@pytest.mark.parametrize(
    ("highest", "ceiling"), [("3409250000", 350), ("0", 350), ("nonsense", 350), (None, 350), ("300000000", 300)]
)
def test_the_highest_power_is_a_hint(tmp_path, highest, ceiling):
    """thermald#45 and #113: 3409 W; thermald#315: none, or 0. No cap raises what is in force."""
    trees.base(tmp_path, 1)
    folder = trees.zone(tmp_path, "intel-rapl:0", "package-0", highest_uw=highest or "")
    for file in (tmp_path / folder).glob("constraint_*_max_power_uw") if highest is None else ():
        file.unlink()
        file.mkdir()  # a read fails, as of a driver that has no such value (ENODATA)
    assert chosen(tmp_path)[0][0].ceiling == ceiling * 10**6


def test_a_zone_that_is_off_and_at_0_has_no_limit_in_force(tmp_path):
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0", 0, 0, enabled="0", highest_uw="0")
    (control,), _ = chosen(tmp_path)
    assert (control.enabled, control.ceiling) == (False, None)


def test_amd_zones_without_limits_are_no_cap_of_0(tmp_path):
    trees.base(tmp_path, 1, "AuthenticAMD")
    trees.zone(tmp_path, "intel-rapl:0", "package-0", None, None, "0")
    controls, problems = chosen(tmp_path)
    assert controls == []
    assert {problem.code for problem in problems} == {"unsupported"}
    assert any("amd_hsmp" in problem.hint and "BIOS" in problem.hint for problem in problems)
    assert show.limits(trees.host(tmp_path))["limits"] == []


def test_epyc_is_capped_by_the_hwmon_files_of_hsmp(tmp_path):
    trees.epyc(tmp_path)
    controls, _ = chosen(tmp_path)
    assert [(one.backend, one.scope, one.ceiling) for one in controls] == [("amd_hsmp", "package", 360_000_000)] * 2


def test_hwmon_limits_keep_their_names_when_chips_are_numbered_anew(tmp_path):
    keys = []
    for name, numbers in (("a", (3, 4)), ("b", (4, 3))):
        root = trees.base(tmp_path / name)
        for socket, number in enumerate(numbers):
            files = {"power1_cap": f"{300 + socket}000000", "power1_cap_max": "400000000"}
            trees.hwmon(root, number, "amd_hsmp_hwmon", f"platform/AMDI0097:0{socket}", files)
        keys.append({one.limits[0].key: one.limits[0].value for one in chosen(root)[0]})
    assert keys[0] == keys[1]
    assert len(keys[0]) == 2


def test_a_fixed_limit_and_those_of_other_chips_are_not_offered(tmp_path):
    trees.base(tmp_path, 1)
    cap = {"power1_cap": "100000000", "power1_cap_min": "100000000", "power1_cap_max": "100000000"}
    trees.hwmon(tmp_path, 0, "power_meter", "acpi/ACPI000D:00", cap, "device/")
    trees.hwmon(tmp_path, 1, "amdgpu", "pci/0000:03:00.0", {"power1_cap": "1"})
    controls, problems = chosen(tmp_path)
    assert (controls, [problem.hint for problem in problems]) == ([], ["fixed: least and most are both 100 W"])
    assert all("amdgpu" not in one.key for one in caps.find(trees.host(tmp_path))[0])


def test_hostile_labels_are_not_taken(tmp_path):
    trees.base(tmp_path, 1)
    files = {"power1_cap": "300000000", "power1_label": "\x1b[2Jx"}
    trees.hwmon(tmp_path, 0, "power_meter", "acpi/ACPI000D:00", files)
    trees.hwmon(tmp_path, 1, "a\x07b", "acpi/ACPI000D:01", files)
    (control,), _ = chosen(tmp_path)
    assert control.zone == "power_meter/sys/devices/acpi/ACPI000D:00"


def test_grace_is_capped_at_the_one_meter_that_takes_a_limit(tmp_path):
    trees.base(tmp_path, 1)
    for n, what in enumerate(("Module", "Grace", "CPU", "SysIO")):
        files = {"power1_oem_info": f"{what} Power Socket 0", "power1_cap": "300000000", "power1_cap_min": "100000000",
                 "power1_cap_max": "500000000", "power1_average_interval": "1000"}  # fmt: skip
        trees.hwmon(tmp_path, n, "power_meter", f"acpi/ACPI000D:0{n}", files, "device/")
    ((control,), _) = chosen(tmp_path)
    assert (control.zone, control.scope, control.low, control.window_us) == (
        "Grace Power Socket 0", "module", 100_000_000, 1_000_000)  # fmt: skip


def test_a_host_of_which_one_socket_has_a_zone_is_not_capped_by_half(tmp_path):
    trees.base(tmp_path, 2)
    trees.zone(tmp_path, "intel-rapl:0", "package-0")
    controls, problems = chosen(tmp_path)
    assert (controls, problems[-1].code) == ([], "partial_sockets")


def test_two_zones_of_one_name_are_not_guessed_between(tmp_path):
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0")
    trees.zone(tmp_path, "intel-rapl:1", "package-0")
    assert (chosen(tmp_path)[0], chosen(tmp_path)[1][0].code) == ([], "ambiguous")


def test_a_masked_tree_is_told_apart_from_none(tmp_path):
    trees.base(tmp_path, 1)
    assert [problem.code for problem in chosen(tmp_path)[1]] == ["no_interface"]
    (tmp_path / trees.POWERCAP).mkdir(parents=True)
    assert [problem.code for problem in chosen(tmp_path)[1]] == ["no_interface"]
    (tmp_path / trees.POWERCAP / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    assert [problem.code for problem in chosen(tmp_path)[1]] == ["masked"]


def test_the_mmio_twin_is_shown_and_not_written(tmp_path):
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0")
    trees.zone(tmp_path, "intel-rapl-mmio:0", "package-0", 200)
    assert [one.backend for one in chosen(tmp_path)[0]] == ["intel-rapl"]
    rows = show.limits(trees.host(tmp_path))["limits"]
    assert [(r["backend"], r["watts"], r["offered"]) for r in rows if r["constraint"] == "long_term"] == [
        ("intel-rapl-mmio", 200.0, False), ("intel-rapl", 350.0, True)]  # fmt: skip


@pytest.mark.parametrize("name", ["../../etc", "package 0", "", "\x1b[2J", "x" * 100])
def test_a_zone_with_a_hostile_name_is_a_problem(tmp_path, name):
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", name)
    assert [problem.code for problem in chosen(tmp_path)[1]] == ["read_error"]


class Mailbox:
    """/dev/hsmp: limits of sockets in mW, clipped to their highest, as the firmware does."""

    def __init__(self, sockets=2, refused=0):
        self.limits, self.refused, self.calls = dict.fromkeys(range(sockets), 360_000), refused, []

    def __call__(self, file, request, message):
        number, given, wanted, *words, socket = struct.unpack("=IHH8IH2x", message)
        assert (request, len(message)) == (0xC02CF800, 44)
        self.calls.append((number, socket, words[0]))
        if self.refused:
            raise OSError(self.refused, os.strerror(self.refused))
        if number == 5:
            assert (given, wanted) == (1, 0)
            self.limits[socket] = min(words[0], 400_000)
        answer = {5: 0, 6: self.limits[socket], 7: 400_000}[number]
        return struct.pack("=IHH8IH2x", number, given, wanted, answer, *words[1:], socket)


def test_hsmp_is_asked_by_its_device_where_hwmon_has_no_files(tmp_path):
    trees.base(tmp_path, 2, "AuthenticAMD")
    write(tmp_path, {"dev/hsmp": ""})
    controls, _ = caps.choose(Host(tmp_path, ioctl=Mailbox()))
    assert [(one.zone, one.limits[0].value, one.high) for one in controls] == [
        ("socket-0", 360_000_000, 400_000_000), ("socket-1", 360_000_000, 400_000_000)]  # fmt: skip
    controls, problems = caps.choose(Host(tmp_path, ioctl=Mailbox(refused=errno.ENOMSG)))
    assert (controls, problems[0].code) == ([], "unsupported")


def test_what_limits_frequency_and_time_is_called_a_proxy(tmp_path):
    trees.base(tmp_path, 1)
    assert proxies.in_force(trees.host(tmp_path)) == []
    policy = f"{SYS_CPU}/cpufreq/policy0"
    write(tmp_path, {f"{policy}/scaling_max_freq": "2000000", f"{policy}/scaling_min_freq": "800000",
                     f"{policy}/cpuinfo_max_freq": "3500000", f"{SYS_CPU}/intel_pstate/no_turbo": "1"})  # fmt: skip
    write(tmp_path, {"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "50000 100000",
                     "proc/self/mountinfo": "30 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"})  # fmt: skip
    assert [one["name"] for one in proxies.in_force(trees.host(tmp_path))] == [
        "proxy:freq",
        "proxy:freq",
        "proxy:quota",
    ]
    controls = proxies.frequency_controls(trees.host(tmp_path))
    assert caps.value_of(parse_level("proxy:freq=2.5GHz"), controls) == 2_500_000


DCMI = """
    Current Limit State: {state}
    Exception actions:   Hard Power Off & Log Event to SEL
    Power Limit:         {watts} Watts
    Correction time:     1000 milliseconds
    Sampling period:     1 seconds
"""


def test_the_limit_of_a_bmc_is_read_and_its_power_off_told():
    active = DCMI.format(state="Power Limit Active", watts=500)
    assert parse_dcmi_limit(active) == BmcLimit("dcmi", 500, True, True)
    idle = DCMI.format(state="No Active Power Limit", watts=500)
    assert parse_dcmi_limit(idle) == BmcLimit("dcmi", None, False, True)
    assert isinstance(parse_dcmi_limit("banana"), Problem)
    refused = parse_dcmi_limit("", 1, "Request data length invalid\nmore")
    assert (refused.code, refused.hint) == ("refused", "'Request data length invalid'")


@pytest.mark.parametrize(
    ("answer", "watts", "code"),
    [
        (DCMI.format(state="Power Limit Active", watts=500), 500, None),
        ("", None, "refused"),
    ],
)
def test_show_asks_ipmitool_where_there_is_a_bmc(tmp_path, monkeypatch, answer, watts, code):
    trees.base(tmp_path, 1)
    program = tmp_path / "bin/ipmitool"
    trees.write(
        tmp_path, {"bin/ipmitool": f"#!/bin/sh\ncat <<'E'\n{answer}\nE\n[ $LC_ALL = C ] && exit {int(not answer)}"}
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert show.limits(trees.host(tmp_path))["limits"] == []
    trees.write(tmp_path, {"dev/ipmi0": ""})
    document = show.limits(trees.host(tmp_path))
    assert [(r["watts"], r["offered"], "off" in r["reason"]) for r in document["limits"]] == [
        (watts, False, True)
    ] * bool(watts)
    assert [p["code"] for p in document["problems"] if "ipmitool" in p["path"]] == [code] * bool(code)


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        ({"PowerControl": [{"PowerLimit": {"LimitInWatts": None}}]}, BmcLimit("redfish", None, False, False)),
        ({"PowerControl": [{"PowerLimit": {"LimitInWatts": 450, "LimitException": "HardPowerOff"}}]},
         BmcLimit("redfish", 450.0, True, True)),
        ({"PowerLimitWatts": {"SetPoint": 400, "ControlMode": "Automatic", "AllowableMin": 200, "AllowableMax": 900}},
         BmcLimit("redfish", 400.0, True, False, 200.0, 900.0)),
        ({"PowerLimitWatts": {"SetPoint": 400, "ControlMode": "Disabled"}}, BmcLimit("redfish", None, False, False)),
    ],
)  # fmt: skip
def test_redfish_limits(document, limit):
    assert parse_redfish_limit(document) == limit


@pytest.mark.parametrize(
    "document", [{}, {"PowerControl": []}, {"PowerControl": None}, {"PowerControl": [None]}, {"PowerControl": {}}]
)
def test_redfish_without_a_limit_is_a_problem(document):
    assert parse_redfish_limit(document).code == "no_data"


@pytest.mark.parametrize("watts", [True, "400", float("nan"), -1, 0, [400]])
def test_redfish_watts_that_are_none(watts):
    assert parse_redfish_limit({"PowerLimitWatts": {"SetPoint": watts}}).watts is None


def test_the_golden_guest_without_any_interface(tmp_path):
    (tmp_path / SYS_CPU / "cpufreq").mkdir(parents=True)
    write(tmp_path, {"proc/cpuinfo": "vendor_id\t: AuthenticAMD\nflags\t: fpu hypervisor",
                     "proc/self/cgroup": "4:cpu,cpuacct:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                     "proc/self/mountinfo": "30 1 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"})  # fmt: skip
    document = show.limits(Host(tmp_path))
    assert (document["limits"], document["capped_by"], document["proxies"], document["journal"]) == ([], None, [], None)
    assert [problem["code"] for problem in document["problems"]] == ["no_interface"]
