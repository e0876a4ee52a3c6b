"""A CSV of watts or joules over time, as two arrays: bounded, and each of its rows is understood or none is."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from cpubench.errors import UsageError
from cpubench.power.channel import WALL_MAX_W, Channel
from cpubench.results.parse import located, read, shown

MOST_BYTES = 100_000_000  # 5 million rows: a day at fifty a second
MOST_ROWS = 5_000_000
MOST_NS = 2**62  # in the year 2116
S = 1_000_000_000
UNITS: dict[str, tuple[Literal["energy", "power"], float]] = {
    "W": ("power", 1.0), "kW": ("power", 1000.0), "mW": ("power", 0.001),
    "J": ("energy", 1.0), "kJ": ("energy", 1000.0),
}  # fmt: skip
# The clock of a counter of whole joules may be slow: its readings are joined over a minute, watts over five seconds.
GAP_S = {"power": 5.0, "energy": 60.0}
NAMED = re.compile(r"(?<![A-Za-z])(?:((?i:kilo|milli))?((?i:watt|joule))(?i:s)?|(k|m)?(W|w|J))(?![A-Za-z])", re.ASCII)
# What makes another unit of the one before it: hours and seconds, a product, a quotient, a power, a rate.
MORE = re.compile(r"[\s\])]*(?:[*/^\u00b7\u22c5\u00d7]|(?:[\s_]*per|[\s_.-]*(?:h|hrs?|min|minutes?|s|secs?|seconds?))"
                  r"(?![A-Za-z0-9]))", re.IGNORECASE)  # fmt: skip
UNIX = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,12}))?", re.ASCII)
DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]{1,9}))? ?"
                  r"(Z|[+-][0-9]{2}:?[0-9]{2})?", re.ASCII)  # fmt: skip
VALUE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True)
class Asked:
    """What a person says of a CSV: names of columns, "" for the first two; "" as unit for what the file says."""

    time: str = ""
    column: str = ""
    unit: str = ""
    scope: str = "wall"
    offset_s: float | None = None  # added to its times; None: they are right


@dataclass(frozen=True)
class Table:
    """Values over Unix time, which grows."""

    unix_ns: array[int]
    values: array[float]
    unit: str
    sha256: str

    def channel(self, scope: str) -> Channel:
        kind, factor = UNITS[self.unit]
        id_ = "joules" if kind == "energy" else "watts"
        return Channel(f"external:{id_}", scope, kind, factor, max_w=WALL_MAX_W, gap_s=GAP_S[kind],
                       provenance="external")  # fmt: skip


class _Columns(NamedTuple):
    time: int
    value: int
    unit: str  # "": each row may say it
    plain: bool  # rows are TIME, VALUE or TIME, VALUE, UNIT


def read_table(path: Path, asked: Asked) -> Table:
    """The table of a file; UsageError names the line.

    Times are Unix seconds, or dates with a zone. A first row of names is skipped unless columns are asked for by them;
    so are empty rows and those that begin with #.
    """
    try:
        data = read(path, MOST_BYTES)
        return _table(data, asked)
    except UsageError as fault:
        raise located(path, fault) from None
    except (csv.Error, UnicodeDecodeError) as error:
        why = f"is no CSV: {error}" if isinstance(error, csv.Error) else "is not UTF-8 text"
        raise located(path, UsageError("meter_csv", why)) from None


def _table(data: bytes, asked: Asked) -> Table:
    times, values, unit, before = array("q"), array("d"), asked.unit, -1
    if asked.offset_s is not None and not abs(asked.offset_s) < 1e9:
        raise UsageError("usage", "is no number of seconds", "--offset")
    columns: _Columns | None = None
    width = 0
    for line, row in _rows(data):
        if columns is None:
            columns = _columns(row, asked, line)
            unit = columns.unit
            if not row[0][:1].isdecimal():
                continue  # their names
        width = width or len(row)
        _check_width(columns, row, width, line)
        if columns.plain and width == 3:
            if row[2] not in UNITS or unit not in ("", row[2]):
                _refuse(
                    f"'{shown(row[2], 20)}' is not the unit {unit or ' or '.join(UNITS)}: is --column missing?", line
                )
            unit = row[2]
        at, value = _time(row[columns.time], asked.offset_s, line), row[columns.value]
        if not VALUE.fullmatch(value) or not math.isfinite(float(value)):
            _refuse(f"'{shown(value, 40)}' is no number of watts or joules", line)
        if at <= before:
            _refuse("its time goes back" if at < before else "its time is that of the row before", line)
        if len(times) == MOST_ROWS:
            raise UsageError("too_large", f"holds more than {MOST_ROWS} rows: cut it to the time of the run")
        before = at
        times.append(at)
        values.append(float(value))
    if len(times) < 2:
        raise UsageError("meter_csv", "holds no two readings")
    return Table(times, values, unit or "W", hashlib.sha256(data).hexdigest())


def _refuse(text: str, line: int) -> NoReturn:
    raise UsageError("meter_csv", text, f"line {line}")


def _rows(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """The rows that say something, with their lines."""
    head = data[: 1 << 16].decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in head if line.strip() and not line.lstrip().startswith("#")), "")
    delimiter = next((one for one in "\t;, " if one in first.strip()), ",")
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=True)
    for row in reader:
        cells = [cell.strip() for cell in row]
        if any(cells) and not cells[0].startswith("#"):
            yield reader.line_num, cells


def _columns(row: Sequence[str], asked: Asked, line: int) -> _Columns:
    """Where time and value stand, by the first row."""
    named, plain = not row[0][:1].isdecimal(), not asked.column
    if not named:
        if asked.time or asked.column:
            _refuse("is no row of names, of which one could be asked for", line)
        return _Columns(0, 1, asked.unit, plain)
    at = [_at(row, name, line) if name else number for number, name in enumerate((asked.time, asked.column))]
    if plain and (len(row) not in (2, 3) or at[0]):
        _refuse(f"{len(row)} columns: say which by --time and --column", line)
    unit = asked.unit or unit_of(row[at[1]])
    if not unit and not (plain and len(row) == 3):
        _refuse(f"the column '{shown(row[at[1]], 40)}' names no watts or joules: give --unit", line)
    return _Columns(at[0], at[1], unit, plain)


def _at(row: Sequence[str], name: str, line: int) -> int:
    if row.count(name) != 1:
        known = shown(", ".join(row), 100)
        _refuse(f"{'no' if name not in row else 'more than one'} column is named '{shown(name, 40)}': {known}", line)
    return row.index(name)


def _check_width(columns: _Columns, row: Sequence[str], width: int, line: int) -> None:
    if columns.plain and (len(row) != width or width not in (2, 3)):
        _refuse(f"'{shown(' '.join(row), 40)}' is not TIME,WATTS{',UNIT' if width == 3 else ''}", line)
    if len(row) <= max(columns.time, columns.value):
        _refuse(f"has {len(row)} columns", line)


def unit_of(name: str) -> str:
    """The unit that the name of a column tells, such as "Power (kW)"; "" where it is none that can be taken."""
    found = list(NAMED.finditer(name))
    units = {_unit(one) for one in found}
    if len(units) != 1 or re.search(r"hour|wh\b", name, re.IGNORECASE) or any(MORE.match(name, m.end()) for m in found):
        return ""
    (unit,) = units
    return unit if unit in UNITS else ""


def _unit(found: re.Match[str]) -> str:
    word, prefix = (found[2] or "").lower(), {"kilo": "k", "milli": "m"}.get((found[1] or "").lower(), found[3] or "")
    return prefix + ({"watt": "W", "joule": "J"}[word] if word else found[4].upper())


def _time(text: str, offset_s: float | None, line: int) -> int:
    """Unix time in ns."""
    shift_ns = 0 if offset_s is None else round(offset_s * S)
    if found := UNIX.fullmatch(text):
        return _kept(int(found[1]) * S + int((found[2] or "0").ljust(9, "0")[:9]) + shift_ns, text, line)
    if not (found := DATE.fullmatch(text)):
        _refuse(f"'{shown(text, 40)}' is no Unix time in seconds, and no date like 2026-01-02T03:04:05Z", line)
    if found[4] is None and offset_s is None:
        _refuse("its time has no zone: give --offset, the seconds from it to UTC (-7200 for UTC+2)", line)
    zone = {None: "+00:00", "Z": "+00:00"}.get(found[4], found[4])
    zone = zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
    try:
        whole = round(datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}").timestamp())
    except ValueError:
        _refuse(f"'{shown(text, 40)}' is no date", line)
    return _kept(whole * S + int((found[3] or "0").ljust(9, "0")) + shift_ns, text, line)


def _kept(unix_ns: int, text: str, line: int) -> int:
    if not 0 <= unix_ns < MOST_NS:
        _refuse(f"'{shown(text, 40)}' is no time of this century", line)
    return unix_ns
