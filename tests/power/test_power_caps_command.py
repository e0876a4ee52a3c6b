"""`cpubench power set`, `verify`, `restore` and `show`, on trees of files."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from pools import lived
from power import limit_trees as trees
from power import live_tree
from started import started

from cpubench.entry import main
from cpubench.power import journal


@pytest.fixture
def xeon(tmp_path):
    return trees.xeon(tmp_path)


def power(capsys, root, *arguments):
    """(exit code, stdout, stderr)"""
    name, *rest = map(str, arguments)
    code = main(["power", name, "--root", str(root), *rest])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_cap_stays_until_restore_and_show_tells_it(capsys, xeon):
    before = trees.limits(xeon)
    code, out, err = power(capsys, xeon, "set", "--watts", "500", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "state": "set_unverified", "watts": 500, "each_watts": 250, "zones": 2, "backend": "intel-rapl",
        "scope": "package",
        "read_watts": {f"intel-rapl/package-{n}/{c}": 250 for n in (0, 1) for c in ("long_term", "short_term")},
    }  # fmt: skip
    document = json.loads(power(capsys, xeon, "show", "--json")[1])
    assert set(document) >= {"limits", "journal"}
    assert {"backend", "zone", "constraint", "watts", "enabled", "locked"} <= set(document["limits"][0])
    assert document["journal"]["state"] == "kept"
    assert {row["watts"] for row in document["limits"] if row["offered"]} == {250}
    code, _, err = power(capsys, xeon, "set", "--watts", "400")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "`cpubench power restore` gives the limits back" in err
    code, out, _ = power(capsys, xeon, "restore", "--json")
    assert (code, {row["state"] for row in json.loads(out)["limits"]}) == (0, {"given back"})
    assert trees.limits(xeon) == before
    assert power(capsys, xeon, "restore")[:2] == (0, "nothing to give back\n")
    assert json.loads(power(capsys, xeon, "show", "--json")[1])["journal"] is None


@pytest.mark.parametrize("code", [0, 3])
def test_a_cap_for_a_program_ends_with_it(capfd, xeon, code):
    before = trees.limits(xeon)
    limit = xeon / trees.POWERCAP / "intel-rapl:1/constraint_0_power_limit_uw"
    program = f"import sys; print(open({str(limit)!r}).read()); sys.exit({code})"
    assert power(capfd, xeon, "set", "--watts", "500", "--", sys.executable, "-c", program)[:2] == (
        code,
        "250000000\n\n",
    )
    assert trees.limits(xeon) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_cap_for_a_program_ends_with_the_command_itself(xeon, number):
    before = trees.limits(xeon)
    waits = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-I", "-m", "cpubench", "power", "set", "--root", str(xeon), "--watts", "500", "--"]
    with subprocess.Popen(
        [*command, sys.executable, "-c", waits],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        assert child.stdout.readline() == b"up\n"
        during = trees.limits(xeon)
        child.send_signal(number)
        child.wait(20)
        child.stdin.close()
    os.close(journal.lock(xeon, 20))  # which the guardian holds until it has given back
    assert child.returncode == (-9 if number == signal.SIGKILL else 130)
    assert (during != before, trees.limits(xeon)) == (True, before)


def loads(parent):
    found = set()
    for one in psutil.Process(parent).children():
        with contextlib.suppress(psutil.Error):  # one that has just ended
            found |= {one.pid} if "blake2b" in " ".join(one.cmdline()) else set()
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_cap_that_is_being_verified_ends_with_the_command_and_so_does_the_load(xeon, number):
    before, seen = trees.limits(xeon), set()
    command = [sys.executable, "-I", "-m", "cpubench", "power", "verify", "--root", xeon, "--cap", "500W",
               "--seconds", "0.2", "--settle", "2"]  # fmt: skip
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 60
        while trees.limits(xeon) == before or not seen:  # with a cap, under load
            seen = loads(child.pid)
            assert child.poll() is None
            assert time.monotonic() < end
        child.send_signal(number)
        _, complaint = child.communicate(timeout=30)
    os.close(journal.lock(xeon, 20))  # which the guardian holds until it has given back
    assert child.returncode == (-9 if number == signal.SIGKILL else 130), complaint
    assert trees.limits(xeon) == before
    while [pid for pid in seen if lived(pid)]:  # one that outlives it sees that its parent is gone
        assert time.monotonic() < end + 30
        time.sleep(0.01)


def test_a_program_that_is_not_there_leaves_no_cap(capsys, xeon):
    before = trees.limits(xeon)
    code, _, err = power(capsys, xeon, "set", "--watts", "500", "--", "/no/such/program")
    assert (code, "cannot be started" in err) == (2, True)
    assert trees.limits(xeon) == before


@pytest.mark.parametrize("watts", ["0", "-1", "nan", "inf", "", "70%", "as-is", "9999", "701", "0.1", "\x1b[2J"])
def test_bad_watts_are_one_line_and_nothing_changes(capsys, xeon, watts):
    before = trees.limits(xeon)
    code, out, err = power(capsys, xeon, "set", "--json", f"--watts={watts}")
    assert (code, len(err.splitlines())) == (2, 1)
    assert set(json.loads(out)["error"]) == {"code", "text", "where"}
    assert err.strip().isprintable()
    assert trees.limits(xeon) == before
    assert not (xeon / "run/cpubench").exists() or not list((xeon / "run/cpubench").glob("*.json"))


def test_limits_that_cannot_be_given_back_are_exit_70_with_the_commands(capsys, xeon):
    power(capsys, xeon, "set", "--watts", "500")
    place = xeon / trees.POWERCAP / "intel-rapl:1/constraint_0_power_limit_uw"
    place.write_text("123000000\n")
    code, out, err = power(capsys, xeon, "restore", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (70, "not_given_back")
    assert f"echo 350000000 > {place}" in err
    assert place.read_text() == "123000000\n"
    assert power(capsys, xeon, "restore", "--force")[0] == 0
    assert place.read_text() == "350000000\n"


def test_what_somebody_else_set_can_be_accepted(capsys, xeon):
    power(capsys, xeon, "set", "--watts", "500")
    during = trees.limits(xeon)
    assert power(capsys, xeon, "restore", "--force", "--accept")[0] == 2
    assert power(capsys, xeon, "restore", "--accept")[0] == 0
    assert trees.limits(xeon) == during
    assert journal.load(xeon) is None


def test_the_journal_of_another_boot_is_removed_without_a_write(capsys, xeon):
    power(capsys, xeon, "set", "--watts", "500")
    during = trees.limits(xeon)
    trees.write(xeon, {"proc/sys/kernel/random/boot_id": trees.BOOT.replace("1", "9")})
    code, out, _ = power(capsys, xeon, "restore")
    assert (code, "of another boot" in out) == (0, True)
    assert trees.limits(xeon) == during


@pytest.mark.parametrize("command", [("restore",), ("set", "--watts", "300")])
def test_a_spoiled_journal_is_exit_2_and_told_by_show(capsys, xeon, command):
    power(capsys, xeon, "set", "--watts", "500")
    path, during = journal.place(xeon, trees.BOOT), trees.limits(xeon)
    path.write_bytes(path.read_bytes()[:-9])
    code, _, err = power(capsys, xeon, *command)
    assert (code, len(err.splitlines()), "cut or spoiled" in err) == (2, 1, True)
    assert trees.limits(xeon) == during
    assert json.loads(power(capsys, xeon, "show", "--json")[1])["journal"]["state"] == "unreadable"


def test_a_host_without_limits_says_what_to_do(capsys, tmp_path):
    trees.base(tmp_path, 1)
    code, _, err = power(capsys, tmp_path, "set", "--watts", "100")
    assert (code, len(err.splitlines()), "no cap can be set" in err) == (2, 1, True)
    code, out, _ = power(capsys, tmp_path, "show")
    assert (code, "no_interface" in out) == (0, True)


@pytest.mark.parametrize("name", ["show", "set", "verify", "restore"])
def test_every_command_has_help_and_json(capsys, name):
    assert main(["power", name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--json" in out
    assert max(map(len, out.splitlines())) <= 100


def test_show_fits_80_columns(capsys, xeon):
    power(capsys, xeon, "set", "--watts", "500")
    code, out, _ = power(capsys, xeon, "show")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "a cap is set by intel-rapl" in out


def test_verify_tells_states_and_gives_back(capsys, xeon):
    for window in (xeon / trees.POWERCAP).glob("*/constraint_*_time_window_us"):
        window.write_text("976\n")  # or it would wait five seconds
    before = trees.limits(xeon)
    code, out, _ = power(capsys, xeon, "verify", "--cap", "500W", "--seconds", "0.2", "--settle", "0", "--json")
    (row,) = json.loads(out)["levels"]
    assert (code, row["state"], trees.limits(xeon)) == (1, "set_unverified", before)
    assert power(capsys, xeon, "verify")[0] == 2
    assert power(capsys, xeon, "verify", "--cap", "70%")[0] == 2
    assert power(capsys, xeon, "verify", "--cap", "as-is")[0] == 2
    code, out, _ = power(capsys, xeon, "verify", "--cap-external", "300W", "--seconds", "0.2", "--settle", "0")
    assert (code, "external_claim" in out) == (1, True)


def test_a_cap_from_outside_is_judged_by_a_meter_of_its_own_scope(capsys, tmp_path):
    root = live_tree.host(tmp_path / "host")
    times = ("--seconds", "1", "--settle", "0.2", "--json")
    with live_tree.drawing(root):
        told = [power(capsys, root, "verify", "--cap-external", cap, *times) for cap in ("160W:package", "160W")]
    rows = [json.loads(out)["levels"][0] for _, out, _ in told]
    # The host draws 150 W by itself: watts below a cap of 160 W do not show that there is one.
    assert [(row["state"], row["evidence"]) for row in rows] == [
        ("external_claim", ["no_uncapped"]), ("external_claim", ["no_meter"])]  # fmt: skip
    assert [code for code, _, _ in told] == [1, 1]
