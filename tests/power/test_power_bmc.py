"""Meters of the BMC: ipmitool as a program on PATH, Redfish as a server; no value is ever made of nothing."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import time

import pytest
from host import trees
from power import bmc
from power import meter_trees as made

from cpubench.errors import UsageError
from cpubench.power import dcmi, redfish
from cpubench.power.energy import energy
from cpubench.power.meters import open_meter
from cpubench.power.probe import watch


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Sets what ipmitool does; the device node is below the test's root."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    trees.write(tmp_path, {"dev/ipmi0": ""})
    return lambda script: bmc.ipmitool(tmp_path / "bin", script)


@pytest.fixture
def login(monkeypatch):
    monkeypatch.setenv("CPUBENCH_REDFISH_USER", bmc.USER)
    monkeypatch.setenv("CPUBENCH_REDFISH_PASSWORD", bmc.PASSWORD)
    monkeypatch.setenv("CPUBENCH_REDFISH_INSECURE", "1")
    monkeypatch.delenv("CPUBENCH_REDFISH_URL", raising=False)
    return monkeypatch


def saying(watts, state="activated"):
    return f"cat <<'END'\n{bmc.READING.format(watts=watts, state=state)}END"


def test_watts_are_parsed_and_the_state_is_no_proof():
    assert dcmi.parse_dcmi(bmc.READING.format(watts=214, state="activated")) == (214, frozenset())
    assert dcmi.parse_dcmi(bmc.READING.format(watts=245, state="deactivated")) == (245, {"deactivated"})  # C49
    newer = "Instantaneous power reading              : 214      Watts\nPower reading state is        : activated\n"
    assert dcmi.parse_dcmi(newer).watts == 214
    for text in ("", "garbage", "Instantaneous power reading: many Watts", "Instantaneous power reading: -5 Watts"):
        assert dcmi.parse_dcmi(text).watts is None


def test_a_bmc_that_says_0_is_no_meter_and_one_that_says_deactivated_may_be(tmp_path, tool):
    clock = made.Clock()
    for watts, state, expected in ((0, "activated", "zero"), (245, "deactivated", "")):  # C49
        tool(saying(watts, state))
        meter = open_meter("dcmi", tmp_path)
        meter._clock = clock
        (log,) = watch([meter], 1.0, lambda s: clock.pass_s(s))
        told = energy(log)
        assert (told.code, told.watts) == (expected, None if expected else pytest.approx(245))
        assert ("deactivated" in told.flags) == (state == "deactivated")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo 'Could not open device at /dev/ipmi0: Permission denied' >&2; exit 1", "permission"),
        ("echo 'DCMI request failed because: Invalid command (c1)' >&2; exit 1", "read_error"),
        ("printf 'rub\\033[2Jbish'", "read_error"),
        ("exit 0", "read_error"),
        ("kill -9 $$", "read_error"),
        (saying(99) + "\nexit 3", "read_error"),
    ],
)
def test_what_ipmitool_says_in_place_of_watts_is_a_problem(tmp_path, tool, script, code):
    tool(script)
    found = dcmi.find(tmp_path)
    assert (found.channels, [p.code for p in found.problems]) == ([], [code])
    assert "\x1b" not in found.problems[0].hint
    with pytest.raises(UsageError, match=code):
        open_meter("dcmi", tmp_path)


def test_an_ipmitool_that_hangs_is_ended_with_all_that_it_started(tmp_path, tool, monkeypatch):
    monkeypatch.setattr(dcmi, "TIMEOUT_S", 0.3)
    tool(f"sleep 600 & echo $! > {tmp_path}/child; wait")
    assert [p.code for p in dcmi.find(tmp_path).problems] == ["timeout"]
    child = int((tmp_path / "child").read_text())
    made.until(lambda: made.gone(child))


def test_its_language_is_set_and_a_missing_program_or_device_is_told(tmp_path, tool, monkeypatch):
    tool(f'echo "$LC_ALL $*" > {tmp_path}/asked; {saying(214)}')
    assert [c.id for c in dcmi.find(tmp_path).channels] == ["dcmi:system"]
    assert (tmp_path / "asked").read_text() == "C dcmi power reading\n"
    monkeypatch.setenv("PATH", "/nowhere")
    assert [p.code for p in dcmi.find(tmp_path).problems] == ["no_program"]
    assert [p.code for p in dcmi.find(tmp_path / "other").problems] == ["no_interface"]


@pytest.mark.parametrize(
    ("documents", "watts"),
    [
        (bmc.chassis({"PowerControl": [bmc.control(344)]}), 344),
        (bmc.chassis(environment={"PowerWatts": {"Reading": 231.5, "DataSourceUri": "x"}}), 231.5),
        (bmc.chassis({"PowerControl": [bmc.control(344)]}, {"PowerWatts": {"Reading": None}}), 344),
        (bmc.chassis({"PowerControl": [bmc.control(344)]}, {"EnergykWh": {"Reading": 7.1}}), 344),
    ],
)
def test_redfish_watts_of_both_resources(login, documents, watts):
    with bmc.server(documents) as (url, asked):
        meter = open_meter(f"redfish:{url}")
        assert meter.read()[0].raw == [watts]
        assert meter.channels[0].scope == "wall"
        assert asked[0] == "/redfish/v1/Chassis"
        assert open_meter(f"redfish:{url}{bmc.CHASSIS}/").read()[0].raw == [watts]


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        (bmc.chassis({"PowerControl": [bmc.control(None)]}), "no_data"),  # C50
        (bmc.chassis({"PowerControl": None}), "no_data"),
        (bmc.chassis({"PowerControl": [None]}), "no_data"),
        (bmc.chassis({"PowerControl": [bmc.control("344")]}), "no_data"),
        (bmc.chassis({"PowerControl": [bmc.control(True)]}), "no_data"),
        (bmc.chassis({"PowerControl": []}, {"PowerWatts": None}), "no_data"),
        (bmc.chassis({"PowerControl": [bmc.control(900), bmc.control(300)]}), "ambiguous"),
        (bmc.chassis({"PowerControl": [bmc.control(344)]}, members=2), "ambiguous"),
        (bmc.chassis(), "no_data"),
        ({"/redfish/v1/Chassis": {"Members": "none"}}, "ambiguous"),
        ({"/redfish/v1/Chassis": 302}, "read_error"),
        ({"/redfish/v1/Chassis": 500}, "read_error"),
        ({"/redfish/v1/Chassis": b"<html>\x1b[2J"}, "read_error"),
        ({"/redfish/v1/Chassis": b"[" * 100_000}, "read_error"),
        ({"/redfish/v1/Chassis": b"[]"}, "read_error"),
        ({"/redfish/v1/Chassis": {"Members": [{"@odata.id": "//evil.example/x"}]}}, "read_error"),
    ],
)
def test_nulls_doubts_and_rubbish_are_no_watts(login, documents, code):
    with bmc.server(documents) as (url, _), pytest.raises(UsageError) as raised:
        open_meter(f"redfish:{url}")
    assert raised.value.text.startswith(f"{code}: ")
    assert str(raised.value).isprintable()


def test_a_wrong_password_is_told_and_never_shown(login, capsys):
    login.setenv("CPUBENCH_REDFISH_PASSWORD", "wr0ng-one")
    documents = bmc.chassis({"PowerControl": [bmc.control(344)]})
    with bmc.server(documents) as (url, _), pytest.raises(UsageError, match="permission: HTTP 401") as raised:
        open_meter(f"redfish:{url}")
    assert "wr0ng-one" not in repr(raised.value) + str(capsys.readouterr())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "CPUBENCH_REDFISH_URL"),
        ("ftp://bmc", "https://BMC"),
        ("bmc", "https://BMC"),
        ("https://root:hunter2@bmc", "no password in a URL"),
        ("http://bmc", "http shows the password"),
    ],
)
def test_addresses_that_are_refused(login, url, said):
    login.delenv("CPUBENCH_REDFISH_INSECURE")
    with pytest.raises(UsageError, match=said) as raised:
        open_meter(f"redfish:{url}")
    assert "hunter2" not in str(raised.value)


def test_a_value_that_comes_back_is_read_again_and_one_that_goes_has_a_code(login):
    documents = bmc.chassis({"PowerControl": [bmc.control(344)]})
    with bmc.server(documents) as (url, _):
        meter = open_meter(f"redfish:{url}")
        documents[f"{bmc.CHASSIS}/Power"] = {"PowerControl": [bmc.control(None)]}
        assert meter.read()[0][1:] == ([None], ["no_data"])
        documents[f"{bmc.CHASSIS}/Power"] = {"PowerControl": [bmc.control(345)]}
        assert meter.read()[0][1:] == ([345.0], [""])
    assert meter.read()[0].errors == ["read_error"]  # the BMC is gone


def test_a_bmc_that_hangs_is_given_up(login, monkeypatch):
    monkeypatch.setattr(redfish, "TIMEOUT_S", 0.2)
    documents = bmc.chassis({"PowerControl": [bmc.control(344)]})
    documents["/redfish/v1/Chassis"] = lambda: time.sleep(0.6) or {}
    with bmc.server(documents) as (url, _), pytest.raises(UsageError, match="timeout"):
        open_meter(f"redfish:{url}")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_certificate_must_be_trusted_unless_told_otherwise(login, tmp_path, monkeypatch):
    made_by = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"]
    subprocess.run([*made_by.split(), *more], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    real = bmc.ThreadingHTTPServer

    def secured(*arguments):
        made_ = real(*arguments)
        made_.socket = context.wrap_socket(made_.socket, server_side=True)
        return made_

    monkeypatch.setattr(bmc, "ThreadingHTTPServer", secured)
    login.delenv("CPUBENCH_REDFISH_INSECURE")
    with bmc.server(bmc.chassis({"PowerControl": [bmc.control(344)]})) as (url, _):
        name = "redfish:" + url.replace("http://127.0.0.1", "https://localhost")
        with pytest.raises(UsageError, match="certificate is not trusted"):
            open_meter(name)
        login.setenv("CPUBENCH_REDFISH_CA", str(tmp_path / "cert"))
        assert open_meter(name).read()[0].raw == [344.0]
        login.setenv("CPUBENCH_REDFISH_CA", str(tmp_path / "nothing"))
        with pytest.raises(UsageError, match="CPUBENCH_REDFISH_CA cannot be read"):
            open_meter(name)
