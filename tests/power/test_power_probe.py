"""``cpubench power``: what a host can measure, in one shape and on one page, whatever its files say."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest
from host import trees
from power import bmc
from power import meter_trees as made

from cpubench.entry import main
from cpubench.power.probe import probe
from cpubench.report.power import show_probe

PROBLEM = {"code", "path", "hint"}


@pytest.fixture(autouse=True)
def no_bmc(monkeypatch):
    monkeypatch.delenv("CPUBENCH_REDFISH_URL", raising=False)


def looked(root: Path, rise: dict[str, float] | None = None):
    """The probe of a tree whose zones take so many watts; its second does not pass."""
    passed = [0]

    def sleep(seconds: float) -> None:
        passed[0] += 1
        for id_, watts in (rise or {}).items():
            made.joule(root, id_, passed[0] * 0.2 * watts)

    found = probe(root, 1.2, sleep)
    assert set(found) == {"meters", "caps", "problems"}
    for row in found["meters"]:
        assert set(row) >= {"name", "scope", "provenance", "channels", "usable", "problems"}
        assert all(set(problem) == PROBLEM for problem in row["problems"])
        assert row["usable"] == (row["watts"] is not None and row["provenance"] != "estimated")
    assert all(set(problem) == PROBLEM for problem in found["problems"])
    assert bool(found["problems"]) != any(row["usable"] for row in found["meters"])
    return found


def page(document) -> str:
    out = io.StringIO()
    show_probe(document, out)
    assert max(map(len, out.getvalue().splitlines())) <= 80
    return out.getvalue()


def test_a_guest_without_anything_says_so_and_what_to_do(tmp_path):
    trees.x86_cpuinfo(tmp_path, hypervisor=True)  # C73
    trees.write(tmp_path, {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "proc/self/cgroup": "4:cpu:/"})
    found = looked(tmp_path)
    assert [p["code"] for p in found["problems"]] == ["no_interface"]
    assert {row["name"] for row in found["meters"]} == {"powercap", "perf", "hwmon", "dcmi", "redfish"}
    assert all(row["watts"] is None for row in found["meters"])
    assert "a virtual machine" in found["problems"][0]["hint"]
    text = page(found)
    assert "No power can be measured here" in text
    assert " 0.0 W" not in text


def test_this_machine_is_probed_without_a_fault(capsys):
    assert main(["power", "probe", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"meters", "caps", "problems"}
    usable = any(row["usable"] for row in found["meters"])
    assert main(["power", "probe", "--require-power"]) == (0 if usable else 1)  # C4
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    assert main(["power", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert bool(shown["watts"]) == usable
    assert {"limits", "journal", "problems"} <= set(shown)
    assert main(["power", "show"]) == 0
    assert ("No power can be measured here" in capsys.readouterr().out) != usable


def xeon(root: Path) -> Path:
    trees.x86_cpuinfo(made.packages(root, 0, 1))
    for n in (0, 1):
        made.zone(root, str(n), f"package-{n}")
        made.zone(root, f"{n}:0", "core")
        made.zone(root, f"{n}:1", "dram", range_=made.DRAM_RANGE)
    return made.zone(root, "2", "psys")


def test_a_server_lists_each_scope_with_its_watts(tmp_path):
    rows = {row["name"]: row for row in looked(xeon(tmp_path))["meters"] if row["channels"]}
    assert set(rows) == {"powercap:package", "powercap:package+dram", "powercap:dram", "powercap:psys"}
    assert [c["id"] for c in rows["powercap:package+dram"]["channels"]] == [
        "powercap:package-0", "powercap:package-1", "powercap:package-0/dram", "powercap:package-1/dram"
    ]  # fmt: skip
    for row in rows.values():
        assert row["problems"][0]["code"] == "short"  # the sleep is simulated, the clock is not


def test_a_real_second_tells_watts_and_doubts(tmp_path):
    xeon(tmp_path)
    watts = {"0": 200.0, "1": 150.0, "0:0": 300.0, "1:0": 80.0, "0:1": 20.0, "1:1": 18.0, "2": 450.0}
    begin = made.time.monotonic()

    def sleep(seconds: float) -> None:
        made.time.sleep(seconds)
        for id_, w in watts.items():
            made.joule(tmp_path, id_, (made.time.monotonic() - begin) * w)

    found = probe(tmp_path, 1.2, sleep)
    rows = {row["name"]: row for row in found["meters"]}
    assert rows["powercap:package"]["watts"] == pytest.approx(350, rel=0.2)
    assert rows["powercap:package+dram"]["watts"] > rows["powercap:package"]["watts"]
    assert "child_exceeds_parent" in [p["code"] for p in rows["powercap:package"]["problems"]]
    assert found["problems"] == []
    text = page(found)
    assert "This host can measure power: --meter powercap:package; also" in " ".join(text.split())


def test_a_counter_that_stands_still_is_not_usable(tmp_path):
    made.zone(made.packages(tmp_path, 0), "0", "package-0", 0)
    found = probe(tmp_path)  # C22; a real second
    row = found["meters"][0]
    assert (row["usable"], row["watts"]) == (False, None)
    assert row["problems"][0]["code"] == "constant"
    assert {"constant", "zero"} <= set(row["flags"])
    assert found["problems"][0]["code"] == "constant"


def test_what_is_closed_is_told_before_what_is_missing(tmp_path):
    (tmp_path / made.P).mkdir(parents=True)
    (tmp_path / made.P / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl:0")
    assert looked(tmp_path)["problems"][0]["code"] == "masked"  # C5


def test_a_bmc_by_environment_is_a_row(tmp_path, monkeypatch):
    for name, value in (("USER", bmc.USER), ("PASSWORD", bmc.PASSWORD), ("INSECURE", "1")):
        monkeypatch.setenv(f"CPUBENCH_REDFISH_{name}", value)
    with bmc.server(bmc.chassis({"PowerControl": [bmc.control(344)]})) as (url, _):
        monkeypatch.setenv("CPUBENCH_REDFISH_URL", url)
        row = next(r for r in probe(tmp_path)["meters"] if r["name"] == "redfish")
        assert (row["usable"], row["watts"], row["scope"]) == (True, pytest.approx(344), "wall")
        monkeypatch.setenv("CPUBENCH_REDFISH_PASSWORD", "wr0ng-one")
        refused = probe(tmp_path)
        row = next(r for r in refused["meters"] if r["name"] == "redfish")
        assert [p["code"] for p in row["problems"]] == ["permission"]
        assert "wr0ng-one" not in json.dumps(refused)


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b]0;owned\x07", "[bold red]x[/]", "a\nb", "\udcff\u202e", "x" * 5000])
def test_hostile_text_of_files_is_never_printed_as_it_is(tmp_path, hostile):
    made.zone(tmp_path, "0", "package-0", energy_uj=hostile)
    made.zone(tmp_path, "1", hostile)
    made.hwmon(
        tmp_path, 0, "ACPI000D:00", {"name": "power_meter", "power1_average": hostile, "power1_oem_info": hostile}
    )
    made.hwmon(tmp_path, 1, "smpro", {"name": hostile, "power1_input": "5", "power1_label": hostile})
    trees.write(tmp_path, {"sys/bus/event_source/devices/power/type": hostile})
    found = looked(tmp_path)
    assert not any(row["usable"] for row in found["meters"])
    text = page(found)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "\x1b" not in json.dumps(found)


@pytest.mark.parametrize("meter", ["frobnicate", "cmd:echo hello", "powercap:wall", "redfish", "\x1b[2J"])
def test_a_meter_that_is_none_is_one_line_and_exit_2(capsys, monkeypatch, meter):
    assert main(["power", "probe", "--meter", meter, "--json"]) == 2
    told = capsys.readouterr()
    assert set(json.loads(told.out)["error"]) == {"code", "text", "where"}
    assert told.err.count("\n") == 1
    assert told.err[:-1].isprintable()


RUBBISH = ["", "0", "-1", "1e9", "nan", "9" * 21, "18446744073709551615", "a\x00b", "\x1b[2J", "0-7", "x" * 300,
           "package-0", "package-99999999999999999999", "event=0x02", "Joules", "power_meter", "amd_energy",
           "36"]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_no_tree_makes_it_fail_or_tell_0_watts(tmp_path, seed):
    rng = random.Random(seed)
    xeon(tmp_path)
    power = "sys/bus/event_source/devices/power"
    for name in ("type", "cpumask", "events/energy-pkg", "events/energy-pkg.scale", "events/energy-pkg.unit"):
        trees.write(tmp_path, {f"{power}/{name}": "1"})
    made.hwmon(tmp_path, 0, "a", {"name": "smpro", "power1_input": "1", "power1_label": "SOC"})
    made.hwmon(tmp_path, 1, "b", {"name": "power_meter", "power1_average": "1", "power1_oem_info": "x"}, "device/")
    for path in sorted(p for p in tmp_path.rglob("*") if p.is_file() and not p.is_symlink()):
        fate = rng.random()
        if fate < 0.3:
            path.write_text(rng.choice(RUBBISH))
        elif fate < 0.35:
            path.unlink()
        elif fate < 0.4:
            path.unlink()
            path.mkdir()
        elif fate < 0.45:
            path.unlink()
            path.symlink_to("/nowhere")
        elif fate < 0.5:
            path.write_bytes(bytes(rng.randrange(256) for _ in range(40)))
    found = looked(tmp_path)
    assert all(row["watts"] is None or row["watts"] > 0 for row in found["meters"])
    page(found)
    json.dumps(found, allow_nan=False)
