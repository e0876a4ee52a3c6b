"""The index of a fleet's results: figures of thousands of runs in one SQLite file that may be deleted at any time.

The run files are the truth. The file is written in one transaction, which is also the lock between two collectors: a
kill leaves the index as it was.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from cpubench.analysis.briefly import Figure
from cpubench.errors import UsageError
from cpubench.results.parse import located, shown
from cpubench.results.states import BASE_CAP

Json = dict[str, Any]
FILE = "index.sqlite"
APPLICATION = 0x63707562  # "cpub": what tells ours from any other SQLite file
TABLES = """
CREATE TABLE mark (text TEXT);
CREATE TABLE run (
  path TEXT PRIMARY KEY, sum TEXT, host TEXT, cap TEXT, repeat INTEGER, suite TEXT, seal TEXT, id TEXT, machine TEXT,
  model TEXT, kind TEXT, created TEXT, passes INTEGER, facts TEXT
) WITHOUT ROWID;
CREATE TABLE level (path TEXT, cap TEXT, cap_scope TEXT, faults TEXT, PRIMARY KEY (path, cap)) WITHOUT ROWID;
CREATE TABLE figure (
  path TEXT, cap TEXT, family TEXT, measure TEXT, value REAL, low REAL, high REAL, passes INTEGER, reason TEXT,
  PRIMARY KEY (path, cap, family, measure)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Row:
    """A run as it is indexed; ``path`` is under the fleet's folder, ``sum`` the SHA-256 of its packed file."""

    path: str
    sum: str
    host: str
    cap: str
    repeat: int
    suite: str
    seal: str
    id: str
    machine: str
    model: str
    kind: str
    created: str
    passes: int
    cap_scope: str  # what its caps limit
    facts: dict[str, str]
    figures: list[Figure] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=dict)  # by level


class Index:
    """An open index, in the middle of its transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def sums(self) -> dict[str, str]:
        """The sum of each indexed run by its path."""
        return dict(self._db.execute("SELECT path, sum FROM run"))

    def put(self, row: Row) -> None:
        """Adds a run, or takes the place of what its path had before."""
        self.drop([row.path])
        facts = json.dumps(row.facts)
        self._db.execute("INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", (
            row.path, row.sum, row.host, row.cap, row.repeat, row.suite, row.seal, row.id, row.machine, row.model,
            row.kind, row.created, row.passes, facts))  # fmt: skip
        levels = ((row.path, cap, "" if cap == BASE_CAP else row.cap_scope, json.dumps(faults))
                  for cap, faults in row.faults.items())  # fmt: skip
        self._db.executemany("INSERT INTO level VALUES (?,?,?,?)", levels)
        columns = ("value", "low", "high", "passes", "reason")
        figures = ((row.path, one.cap, one.family, one.measure, *(one.made[name] for name in columns))
                   for one in row.figures)  # fmt: skip
        self._db.executemany("INSERT INTO figure VALUES (?,?,?,?,?,?,?,?,?)", figures)

    def drop(self, paths: Iterable[str]) -> None:
        """Forgets the runs of these paths."""
        for path in paths:
            for table in ("run", "level", "figure"):
                self._db.execute(f"DELETE FROM {table} WHERE path = ?", (path,))

    def runs(self) -> list[Json]:
        """What is known of each run, without its figures, in the order of the paths."""
        names = "path, host, cap, repeat, suite, seal, machine, model, kind, created, passes"
        rows = self._db.execute(f"SELECT {names} FROM run ORDER BY path")
        return [dict(zip(names.split(", "), row, strict=True)) for row in rows]

    def facts(self) -> dict[str, dict[str, str]]:
        """The facts of the host that each run was made on, by its path."""
        return {path: json.loads(text) for path, text in self._db.execute("SELECT path, facts FROM run")}

    def headlines(self, measure: str = "per_core") -> list[Json]:
        """The whole of each run at each of its levels, with what the cap limits and what stands against publishing."""
        names = ("path", "cap", "cap_scope", "value", "low", "high", "reason")
        rows = self._db.execute(
            "SELECT f.path, f.cap, l.cap_scope, f.value, f.low, f.high, f.reason, l.faults FROM figure f JOIN level l"
            " ON l.path = f.path AND l.cap = f.cap WHERE f.family = '' AND f.measure = ? ORDER BY f.path", (measure,),
        )  # fmt: skip
        return [dict(zip(names, row[:-1], strict=True)) | {"faults": json.loads(row[-1])} for row in rows]

    def medians(self, paths: Collection[str], measure: str = "per_core", family: str = "") -> list[Json]:
        """By model, level and what its cap limits the median of those of these runs that may be published, and how
        many they are.

        A run counts at the level of its folder, which is what it was planned for.

        Of runs, not of hosts: what a host is worth is found from its runs first (``cpubench.analysis.units``).
        """
        values: dict[tuple[str, str, str, str], list[float]] = {}
        for path, *key, value in self._db.execute(
            "SELECT r.path, r.model, r.kind, f.cap, l.cap_scope, f.value FROM figure f"
            " JOIN run r ON r.path = f.path AND r.cap = f.cap JOIN level l ON l.path = f.path AND l.cap = f.cap"
            " WHERE f.family = ? AND f.measure = ? AND f.value IS NOT NULL AND l.faults = '[]'"
            " ORDER BY r.model, r.kind, f.cap, l.cap_scope", (family, measure),
        ):  # fmt: skip
            if path in paths:
                values.setdefault((key[0], key[1], key[2], key[3]), []).append(value)
        return [{"model": model, "kind": kind, "cap": cap, "cap_scope": scope, "runs": len(found),
                 "median": median(found)} for (model, kind, cap, scope), found in values.items()]  # fmt: skip


@contextmanager
def open_index(folder: Path, mark: str) -> Iterator[Index]:
    """The index of a folder, emptied where it was made by other rules than ``mark`` tells; written at the end.

    UsageError where the folder cannot be written, the file is none of ours, or another collector has it.
    """
    file = folder / FILE
    try:
        connection = sqlite3.connect(file, timeout=0.2, isolation_level=None)
    except sqlite3.Error as error:
        raise _fault(file, error) from None
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
            _prepare(connection, file, mark)
        except sqlite3.Error as error:
            raise _fault(file, error) from None
        yield Index(connection)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _fault(file, error) from None
    finally:
        with suppress(sqlite3.Error):
            connection.close()  # takes back what was not committed


def _prepare(connection: sqlite3.Connection, file: Path, mark: str) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if tables and application != APPLICATION:
        raise located(file, UsageError("index", "is a database, and no index of cpubench: move it away"))
    found = connection.execute("SELECT text FROM mark").fetchone() if "mark" in tables else None
    if found == (mark,):
        return
    for name in tables:
        connection.execute(f'DROP TABLE "{name}"')
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    for statement in filter(str.strip, TABLES.split(";")):
        connection.execute(statement)
    connection.execute("INSERT INTO mark VALUES (?)", (mark,))


def _fault(file: Path, error: sqlite3.Error) -> UsageError:
    text = shown(str(error), 120)
    if "locked" in text:
        return located(file, UsageError("busy", "is being written by another collector: wait until that is done"))
    if any(word in text for word in ("not a database", "malformed", "disk image")):
        return located(file, UsageError("index", f"is damaged ({text}): delete it, and collect again"))
    return located(file, UsageError("write", f"cannot be written: {text}"))
