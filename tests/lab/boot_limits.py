"""Inside: files of zones, setting, refusals, and giving back, as the real kernel has it."""

from __future__ import annotations

import stat

import pytest
from lab import guest
from lab.guest import CAP, FOUND, ZONES, cpubench, knob, limits, zone

from cpubench.power import registers
from cpubench.power.meters import open_meter

pytestmark = pytest.mark.usefixtures("as_found")


def refused(path, text):
    with pytest.raises(OSError) as told:  # noqa: PT011
        registers.write_file(path, text)
    return told.value.strerror


def test_files_of_a_zone_are_as_the_kernel_makes_them():
    modes = {
        path.name: stat.filemode(path.stat().st_mode)[1:] for path in zone("package-0").iterdir() if path.is_file()
    }
    assert modes["energy_uj"] == "r--------"  # CVE-2020-8694
    readable = ("name", "max_energy_range_uj", "constraint_0_name", "constraint_0_max_power_uw")
    assert {modes[name] for name in readable} == {"r--r--r--"}
    writable = ("enabled", "constraint_0_power_limit_uw", "constraint_0_time_window_us")
    assert {modes[name] for name in writable} == {"rw-r--r--"}
    assert {"intel-rapl", "intel-rapl:1", "intel-rapl:1:0"} <= {
        path.name for path in ZONES.iterdir()
    }  # flat, subzones too


def test_what_the_kernel_answers_to_bad_writes_and_reads():
    limit, switch = zone("package-1") / "constraint_0_power_limit_uw", zone("package-1") / "enabled"
    assert refused(limit, "much") == refused(limit, "-1") == "Invalid argument"
    assert refused(switch, "2") == "Invalid argument"
    assert refused(zone("package-1") / "energy_uj", "0") == "Permission denied"
    registers.write_file(limit, "5000000000")  # 15 bits: not clamped but masked
    assert int(limit.read_text()) == 904_000_000
    registers.write_file(limit, "350000000")
    knob("locked", 2)
    assert (refused(limit, "200000000"), refused(switch, "1")) == ("No data available", "Function not implemented")
    assert (switch.read_text(), limit.read_text()) == ("0\n", "350000000\n")
    knob("failing", "Y")
    with pytest.raises(OSError, match="Invalid argument"):
        (zone("package-1") / "energy_uj").read_text()


def test_the_probe_finds_every_meter_and_what_can_be_capped():
    said = cpubench("power", "probe", "--json", "--require-power")
    rows = {row["name"]: row for row in said.json["meters"]}
    assert (said.code, said.json["problems"]) == (0, [])
    packages = rows["powercap:package"]
    assert (packages["usable"], packages["provenance"], packages["flags"]) == (True, "measured", [])
    assert 180 <= packages["watts"] <= 660
    assert packages["watts"] < rows["powercap:package+dram"]["watts"] < packages["watts"] + 60
    (cap,) = said.json["caps"]
    assert [one["socket"] for one in cap["controls"] if one["scope"] == "package"] == [0, 1]
    assert cap["usable"]
    knob("failing", "Y")
    closed = cpubench("power", "probe", "--json", "--require-power")
    assert (closed.code, closed.json["problems"][0]["code"]) == (1, "read_error")


def test_a_user_without_rights_is_told_what_to_do_and_changes_nothing():
    said = guest.as_nobody("power", "probe", "--json")
    (problem,) = said.json["problems"]
    assert (said.code, problem["code"]) == (0, "permission")
    assert "udev" in problem["hint"]
    said = guest.as_nobody("power", "set", *CAP)
    assert (said.code, "run as root" in said.err) == (2, True)


def test_a_zone_that_goes_away_under_a_meter_is_told():
    meter = open_meter("powercap:package")
    guest.unload()
    (reading,) = meter.read()
    meter.close()
    guest.load()
    assert reading.errors == ["vanished", "vanished"]


def test_numbers_of_zones_are_hexadecimal():
    guest.load(skip=10)
    assert [zone(name).name for name in ("psys", "package-0", "package-1")] == [f"intel-rapl:{x}" for x in "abc"]
    said = cpubench("power", "show", "--json").json
    assert [row["zone"] for row in said["limits"] if row["offered"]] == ["package-0"] * 2 + ["package-1"] * 2
    assert {row["path"].split("/")[4] for row in said["limits"] if row["offered"]} == {"intel-rapl:b", "intel-rapl:c"}
    guest.load()


def test_a_cap_stands_while_a_program_runs_and_no_longer(tmp_path):
    out = tmp_path / "out"
    files = " ".join(str(zone(f"package-{n}") / f"constraint_{m}_power_limit_uw") for n in (0, 1) for m in (0, 1))
    assert cpubench("power", "set", *CAP, "--", "sh", "-c", f"cat {files} >{out}; exit 7").code == 7
    assert out.read_text().split() == ["200000000"] * 4


def test_a_kept_cap_is_shown_and_given_back(as_found):
    assert cpubench("power", "set", *CAP).code == 0
    assert {key for key, value in limits().items() if value != as_found[key]} == {
        f"package-{n} constraint_{m}_power_limit_uw" for n in (0, 1) for m in (0, 1)}  # fmt: skip
    assert cpubench("power", "show", "--json").json["journal"]["state"] == "kept"
    again = cpubench("power", "set", "--watts", "300")
    assert (again.code, "power restore" in again.err) == (2, True)
    assert cpubench("power", "restore").code == 0


def test_a_zone_that_is_off_is_on_for_the_cap_only(tmp_path):
    switch = zone("package-1") / "enabled"
    registers.write_file(switch, "0")
    assert cpubench("power", "set", *CAP, "--", "cp", str(switch), str(tmp_path / "during")).code == 0
    assert ((tmp_path / "during").read_text(), switch.read_text()) == ("1\n", "0\n")
    registers.write_file(switch, "1")


@pytest.mark.parametrize(
    ("knob_", "value", "watts", "state"),
    [("locked", 2, "400", "locked"), ("locked", 3, "400", "locked"), ("floor_w", 150, "200", "clamped"),
     ("ignore", "Y", "400", "ignored")],
)  # fmt: skip
def test_zones_that_refuse_are_called_so_and_all_is_as_before(knob_, value, watts, state):
    knob(knob_, value)
    said = cpubench("power", "set", "--watts", watts, "--json")
    assert (said.code, said.json["error"]["code"]) == (2, state), said


def test_a_conflict_is_left_alone_until_it_is_forced():
    cpubench("power", "set", *CAP)
    theirs = zone("package-0") / "constraint_0_power_limit_uw"
    registers.write_file(theirs, "123000000")
    said = cpubench("power", "restore")
    assert (said.code, int(theirs.read_text())) == (70, 123_000_000)
    assert f"echo 350000000 > {theirs}" in said.err
    assert cpubench("power", "restore", "--force").code == 0


def test_zones_that_came_back_under_other_numbers_are_found_by_name():
    cpubench("power", "set", *CAP)
    guest.load(skip=10, long_w=200, short_w=200)
    assert cpubench("power", "restore").code == 0
    assert {key: limits()[f"package-1 {key}"] for key in FOUND} == FOUND
    guest.load()


def test_zones_that_are_gone_cannot_be_given_back_and_the_journal_stays():
    cpubench("power", "set", *CAP)
    guest.unload()
    said = cpubench("power", "restore")
    assert (said.code, "is not there any more" in said.err) == (70, True)
    guest.load()
    assert cpubench("power", "restore").out.count("holds 350000000") == 2
