"""Boot one: limits and meters of the real kernel. The last test leaves a capper that the end of the machine cuts off."""

from __future__ import annotations

import os
import signal
import stat

import pytest
from lab import guest
from lab.guest import ZONES, cpubench, knob, limits, zone

from cpubench.power import journal, registers
from cpubench.power.energy import energy
from cpubench.power.meters import open_meter
from cpubench.power.probe import watch
from cpubench.power.virus import burning

CAP = ("--watts", "400")
FOUND = {"constraint_0_power_limit_uw": 350_000_000, "constraint_1_power_limit_uw": 420_000_000, "enabled": 1}


@pytest.fixture(autouse=True)
def as_found(request):
    """The limits and no journal before each test, and after it."""
    guest.load()
    before = limits()
    assert {key: before[f"package-1 {key}"] for key in FOUND} == FOUND
    yield before
    if "leaves" not in request.node.name:
        for name, value in guest.SET_ASIDE.items():
            knob(name, value)
        assert (limits(), list(guest.JOURNALS.glob("cap-*"))) == (before, [])


def refused(path, text):
    with pytest.raises(OSError) as told:  # noqa: PT011
        registers.write_file(path, text)
    return told.value.strerror


def test_files_of_a_zone_are_as_the_kernel_makes_them():
    modes = {path.name: stat.filemode(path.stat().st_mode)[1:] for path in zone("package-0").iterdir() if path.is_file()}
    assert modes["energy_uj"] == "r--------"  # CVE-2020-8694
    assert {modes[name] for name in ("name", "max_energy_range_uj", "constraint_0_name", "constraint_0_max_power_uw")} == {
        "r--r--r--"}  # fmt: skip
    assert {modes[name] for name in ("enabled", "constraint_0_power_limit_uw", "constraint_0_time_window_us")} == {
        "rw-r--r--"}  # fmt: skip
    assert {"intel-rapl", "intel-rapl:1", "intel-rapl:1:0"} <= {path.name for path in ZONES.iterdir()}  # flat, subzones too


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


def test_energy_over_wraps_is_what_the_model_drew():
    guest.load(range_j=2400)
    with burning([0, 1]):
        before, (log,) = guest.drawn_j(), watch([open_meter("powercap:package")], 16)
        drawn = guest.drawn_j() - before
    told = energy(log)
    print(f"{told.joules:.1f} J read, {drawn:.1f} J drawn, {told.wraps} wraps, flags {told.flags}")
    assert told.wraps >= 2
    assert told.joules == pytest.approx(drawn, rel=0.02)


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


def capped():
    return limits()["package-1 constraint_1_power_limit_uw"] == 200_000_000


def test_a_killed_capper_is_followed_by_its_guardian_and_a_second_one_waits(as_found):
    with guest.started("power", "set", *CAP, "--", "sleep", "300") as first:
        guest.seconds_until(capped)
        second = cpubench("power", "set", "--watts", "300")
        assert (second.code, f"process {first.pid} caps this host" in second.err) == (2, True)
        first.kill()
        took = guest.seconds_until(lambda: limits() == as_found and journal.load(registers.ROOT) is None)
    print(f"given back {took:.3f} s after SIGKILL")
    assert took < 2


def test_a_terminated_capper_gives_back_by_itself(as_found):
    with guest.started("power", "set", *CAP, "--", "sleep", "300") as first:
        guest.seconds_until(capped)
        first.terminate()
        assert first.wait(30) == 130


def test_a_capper_that_was_killed_with_its_guardian_is_named_at_the_next_start(as_found):
    with guest.started("power", "set", *CAP, "--", "sleep", "300") as first:
        guest.seconds_until(capped)
        os.kill(guest.guardian_of(first.pid), signal.SIGKILL)
        first.kill()
    assert capped()
    assert cpubench("power", "show", "--json").json["journal"]["state"] == "stale"
    said = cpubench("power", "set", *CAP)
    assert (said.code, f"process {first.pid} ended without giving its limits back" in said.err) == (2, True)
    assert cpubench("power", "restore").code == 0


def test_leaves_a_capper_behind():
    """Nothing ends it but the machine: boot two looks at what is left."""
    guest.started("power", "set", *CAP, "--", "sleep", "300")
    guest.seconds_until(capped)
