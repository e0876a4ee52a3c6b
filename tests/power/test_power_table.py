"""CSV files of external meters: what they may look like, and one clear line for all that they may not."""

from __future__ import annotations

import hashlib

import pytest

from cpubench.errors import UsageError
from cpubench.power import table as room
from cpubench.power.table import Asked, read_table, unit_of

S = 10**9
T = 1_700_000_000  # 2023-11-14T22:13:20Z


def table(tmp_path, text, **asked):
    path = tmp_path / "pdu\x1b.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, Asked(**asked))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f"{T},250\n{T + 1}.5,251.5\n", {}),
        (f"\ufefftime,watts\n# outlet 7\n\n{T},250\r\n{T + 1}.5,251.5\r\n", {}),
        (f"{T} 250\n{T + 1}.5 251.5\n", {}),
        (f"{T};250\n{T + 1}.5;251.5\n", {}),
        (f"{T}, 250, W\n{T + 1}.5, 251.5, W\n", {}),
        (f"at\tpower\n{T}\t250\n{T + 1}.5\t2.515e2\n", {"unit": "W"}),
        ("time,Power (W)\n2023-11-14T22:13:20Z,250\n2023-11-15T00:13:21.5+0200,251.5\n", {}),
        ("time,W\n2023-11-15 00:13:20,250\n2023-11-15 00:13:21.500,251.5\n", {"offset_s": -7200}),
        (f"volts,when,amps,power_W\n230,{T},1,250\n230,{T + 1}.5,1,251.5\n", {"time": "when", "column": "power_W"}),
        (f"{T - 3},250\n{T - 2}.5,251.5\n", {"offset_s": 3.0}),
    ],
)  # fmt: skip
def test_times_and_watts_are_read_in_the_forms_that_loggers_write(tmp_path, text, asked):
    made = table(tmp_path, text, **asked)
    assert list(made.unix_ns) == [T * S, (T + 1) * S + S // 2]
    assert list(made.values) == [250, 251.5]
    assert (made.unit, made.channel("wall").kind, made.channel("wall").unit) == ("W", "power", 1.0)
    assert made.sha256 == hashlib.sha256((tmp_path / "pdu\x1b.csv").read_bytes()).hexdigest()


def test_units_are_those_that_are_told(tmp_path):
    assert table(tmp_path, "1,2,J\n2,3,J").channel("wall").kind == "energy"
    assert table(tmp_path, "1,2\n2,3", unit="kW").channel("package").unit == 1000
    assert table(tmp_path, "s,Active power [mW]\n1,2\n2,3").channel("wall").unit == 0.001
    names = {
        "watts": "W",
        "Power (kW)": "kW",
        "power_W": "W",
        "P[mW]": "mW",
        "Kilowatts": "kW",
        "joules": "J",
        "kJ": "kJ",
        "power": "",
        "volts": "",
        "kWh": "",
        "Wh": "",
        "watt-hours": "",
        "Energy (Watt-Hours)": "",
        "WATT-HOURS": "",
        "Watt Hours": "",
        "[W*h]": "",
        "W\u00b7h": "",
        "[W] h": "",
        "W-hr": "",
        "J/s": "",
        "J per s": "",
        "joules_per_second": "",
        "watt seconds": "",
        "kJ/W": "",
        "W/m^2": "",
        "WH": "",
        "KWH": "",
        "Power (W) of phase 1": "W",
        "watts_total": "W",
        "P / W": "W",
        "W (s. 3)": "W",
        "MW": "",
        "": "",
        "raw": "",
        "w": "W",
    }
    assert {name: unit_of(name) for name in names} == names


@pytest.mark.parametrize(
    ("text", "asked", "said"),
    [
        ("", {}, "holds no two readings"),
        ("time,watts\n", {}, "holds no two readings"),
        ("1,2\n", {}, "holds no two readings"),
        ("1,2\n3,x\n", {}, r"line 2: 'x' is no number of watts or joules"),
        ("1,2\n3,\n", {}, "line 2: '' is no number"),
        ("1,2\n3,-4\n", {}, "line 2: '-4' is no number"),
        ("1,2\n3,nan\n", {}, "line 2: 'nan' is no number"),
        ("1,2\n3,1e99\n4,1e999\n", {}, "line 3"),
        ("1;2,5\n", {}, "line 1: '2,5' is no number"),
        ("1,2\n3,4,J\n", {}, "line 2: '3 4 J' is not TIME,WATTS"),
        ("1,2,J\n3,4,W\n", {}, "line 2: 'W' is not the unit J"),
        ("1,2,J\n", {"unit": "W"}, "line 1: 'J' is not the unit W"),
        ("1,230,1.2\n", {}, r"line 1: '1\.2' is not the unit .*--column"),
        ("time,volts,amps,watts\n1,2,3,4\n", {}, "4 columns: say which"),
        ("time,volts\n1,230\n", {}, "'volts' names no watts or joules: give --unit"),
        ("time,energy (kWh)\n1,230\n", {}, "names no watts or joules"),
        ("time,watts\n1,2\n", {"column": "power"}, "no column is named 'power': time, watts"),
        ("time,W,W\n1,2,3\n", {"column": "W"}, "more than one column is named 'W'"),
        ("1,2\n2,3\n", {"column": "watts"}, "is no row of names"),
        ("t,x,W\n1,2\n", {"column": "W"}, "line 2: has 2 columns"),
        ("5,2\n4,2\n", {}, "line 2: its time goes back"),
        ("5,2\n5,3\n", {}, "line 2: its time is that of the row before"),
        (f"{T}000,2\n", {}, "is no Unix time in seconds"),  # milliseconds
        ("2023-11-14T22:13:20,2\n", {}, "has no zone: give --offset"),
        ("2023-13-14T22:13:20Z,2\n", {}, "is no date"),
        ("9999-01-01T00:00:00Z,2\n", {}, "no time of this century"),
        ("14/11/2023 22:13:20,2\n", {}, "no date like"),
        ("5,2\n6,2\n", {"offset_s": -100.0}, "no time of this century"),
        ("5,2\n6,2\n", {"offset_s": float("nan")}, "--offset"),
        ('1,"\x1b[2J', {}, "is no CSV|is no number"),
        ("1,\x1b[2J\n", {}, r"'\\x1b\[2J' is no number"),
        (b"1,2\n\xff\xfe\n", {}, "is not UTF-8 text"),
        (b"1,2\n2,\0\n", {}, "is no CSV|is no number"),
        ("1," + "9" * 200_000, {}, "is no CSV|is no number"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_its_line(tmp_path, text, asked, said):
    with pytest.raises(UsageError, match=said) as raised:
        table(tmp_path, text, **asked)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400


def test_no_file_and_more_than_is_read_are_refused(tmp_path, monkeypatch):
    large = tmp_path / "large"
    with large.open("wb") as out:
        out.truncate(10**9)  # sparse: it is refused by its size, before any of it is read
    for path in (tmp_path / "none", tmp_path, large):
        with pytest.raises(UsageError):
            read_table(path, Asked())
    monkeypatch.setattr(room, "MOST_ROWS", 3)
    with pytest.raises(UsageError, match="more than 3 rows: cut it to the time of the run"):
        table(tmp_path, "1,2\n2,2\n3,2\n4,2\n")
