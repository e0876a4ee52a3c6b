"""The log of an external meter that was written meanwhile, as CSV, merged with a run afterwards."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.power.channel import Log, Reading
from cpubench.power.command import channel_of, parse_line

MOST_BYTES = 100_000_000
MOST_ROWS = 5_000_000


def merged(path: Path, unix_ns: int, mono_ns: int) -> Log:
    """The meter's log, on the clock of the samples: ``unix_ns`` and ``mono_ns`` are one moment on both clocks.

    Rows are UNIX_TIME, WATTS, or UNIX_TIME, JOULES, J; a first row of names is skipped, and so are empty rows and
    those that begin with #. Both clocks must agree to 0.2 s, which nothing in the file can show. UsageError names
    the line.
    """
    where = ascii(str(path))[1:-1]
    try:
        if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > MOST_BYTES:
            raise UsageError("meter_csv", f"is no file of at most {MOST_BYTES // 1_000_000} MB", where)
        with path.open(newline="", encoding="utf-8") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if _told(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            "meter_csv", f"cannot be read: {getattr(error, 'strerror', None) or 'no CSV'}", where
        ) from None
    if rows and not rows[0][1][0].strip()[:1].isdecimal():
        del rows[0]  # the names of the columns
    if len(rows) > MOST_ROWS:
        raise UsageError("meter_csv", f"more than {MOST_ROWS} rows", where)
    readings, unit, before = [], "", -1.0
    for number, row in rows:
        line = parse_line(" ".join(row).encode())
        if line is None or unit not in ("", line.unit):
            raise UsageError("meter_csv", f"{' '.join(row)[:40]!r} is not UNIX_TIME,WATTS", f"{where}: line {number}")
        if line.unix_s < before:
            raise UsageError("meter_csv", "its time goes back", f"{where}: line {number}")
        unit, before = line.unit, line.unix_s
        readings.append(Reading([round(line.unix_s * 1e9) - unix_ns + mono_ns], [line.value], [""]))
    if not readings:
        raise UsageError("meter_csv", "holds no reading", where)
    return Log("csv", "wall", (channel_of(unit, where),), None, tuple(readings))


def _told(row: list[str]) -> bool:
    return any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#")
