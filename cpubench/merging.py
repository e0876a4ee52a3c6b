"""``cpubench power merge``: a run that was measured with the meter ``csv`` gets its watts, in a folder of its own.

Raw rows of the CSV take the place of logs that hold the two clocks alone; ``docs/decisions/0022-*`` says why so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from msgspec import UnsetType

from cpubench.bench.export import to_pytest_benchmark
from cpubench.errors import UsageError
from cpubench.finish import signed
from cpubench.measure import folder as place
from cpubench.power.channel import Log, Ties, dump
from cpubench.power.clocks import unix_of, was_set
from cpubench.power.energy import energy
from cpubench.power.merged import Span, doubt, placed, zone_hint
from cpubench.power.table import Asked, Table, read_table
from cpubench.recheck import validated
from cpubench.results.files import sealed
from cpubench.results.load import load_run, reading, run_file
from cpubench.results.parse import located, parse, read
from cpubench.results.records import Run
from cpubench.results.signature import check_key

Json = dict[str, Any]
REST_COVERED = 0.5  # of a rest by rows inside of it: one a second lacks up to two of ten
UNITS_TOLD = {"zero", "implausible_high"}  # what a wrong unit looks like


@dataclass(frozen=True)
class _Place:
    """A log that watts are merged into: where it stands in the document, and from when to when it is read."""

    holder: Json
    key: str
    name: str
    ties: Ties
    span: Span  # on the clock of the samples
    rest: bool

    @property
    def unix(self) -> Span:
        return unix_of(self.ties, self.span[0]), unix_of(self.ties, self.span[1])


def merge(run: Path, csv: Path, asked: Asked, output: Path | None, partial: bool, key: Path | None) -> Json:
    """What was merged into the folder that holds the run with its watts; the run and its folder stay as they are.

    UsageError, and nothing is written, where the file is not of this run or lacks a part of it; of ``partial`` it may
    lack some, which then has no watts.
    """
    if key is not None:
        check_key(key)
    file = run_file(run)
    measured = load_run(file)
    _check_waits(file, measured)
    validated(run)
    table = read_table(csv, asked)
    document = parse(read(file))
    with reading(file):
        places = list(_places(document))
    try:
        logs = [placed(table, asked.scope, one.ties, one.span, beside=0 if one.rest else 1) for one in places]
        lacking = _lacking(table, places, logs, partial)
        flags = _checked_times(table, places, asked)
    except UsageError as fault:
        raise located(csv, fault) from None
    for one, log in zip(places, logs, strict=True):
        one.holder[one.key] = dump(log) | {"flags": flags}
    merged = {"sha256": table.sha256, "rows": len(table.unix_ns), "unit": table.unit, "offset_s": asked.offset_s,
              "run_sha256": measured.sha256}  # fmt: skip
    document["plan"]["power"] |= {"scope": asked.scope, "provenance": "external", "merged": merged}
    for block in _blocks(document):
        block |= sealed(block)
    folder = output or file.absolute().parent.with_name(f"{file.absolute().parent.name}-watts")
    _write(folder, sealed(document), file.parent, key)
    windows = sum(not one.rest for one in places)
    return {"run": str(folder), "csv": str(csv), **merged, "scope": asked.scope, "windows": windows,
            "without_watts": lacking, "flags": flags}  # fmt: skip


def _check_waits(file: Path, run: Run) -> None:
    power = run.plan.powered
    if power is None or not power.comes_later:
        text = "has no place for watts of a CSV: measure with `cpubench run --meter csv`"
        raise located(file, UsageError("merge", text, "plan.power"))
    if not isinstance(power.merged, UnsetType):
        raise located(file, UsageError("merge", "has its watts: merge with the run it was made of", "plan.power"))


def _blocks(document: Json) -> Iterator[Json]:
    for one in document["passes"]:
        yield from (*one["blocks"], *one.get("set_aside", ()))


def _places(document: Json) -> Iterator[_Place]:
    """The logs of a run, in the order of the file."""
    power = document["plan"]["power"]
    if "idle" in power:
        yield _rest(power, "idle", "the rest before the passes")
    for block in _blocks(document):
        for window in block["windows"]:
            name = f"{window['family']} in pass {block['index'] + 1} at {block['cap']}"
            yield _Place(window, "log", name, _ties(window.get("log"), name), (window["t0_ns"], window["t1_ns"]), False)
    if "idle_after" in document:
        yield _rest(document, "idle_after", "the rest after the passes")


def _rest(holder: Json, key: str, name: str) -> _Place:
    ties = _ties(holder[key], name)
    return _Place(holder, key, name, ties, (ties[0][0], ties[-1][0]), True)


def _ties(log: Json | None, name: str) -> Ties:
    ties = tuple((t_ns, unix_ns) for t_ns, unix_ns in (log or {}).get("clock", ()))
    if len(ties) < 2 or ties[0][0] >= ties[-1][0]:
        raise UsageError("merge", "its clocks were not read at two moments", name)
    return ties


def _lacking(table: Table, places: Sequence[_Place], logs: Sequence[Log], partial: bool) -> int:
    """How many windows get no watts; UsageError where one does, but for ``partial`` only where all do."""
    why = [(one, reason) for one, log in zip(places, logs, strict=True) if (reason := _reason(one, log))]
    windows, lacking = sum(not one.rest for one in places), sum(not one.rest for one, _ in why)
    if not why or (partial and lacking < windows):
        return lacking
    first, reason = why[0]
    told = [one.unix for one in places if not was_set(one.ties)] or [(0, 0)]
    span = (min(begin for begin, _ in told), max(end for _, end in told))
    if reason.startswith("gap") and (table.unix_ns[0] > span[0] or table.unix_ns[-1] < span[1]):
        said = (f"its times are from {_utc(table.unix_ns[0])} to {_utc(table.unix_ns[-1])}, the run's from "
                f"{_utc(span[0])} to {_utc(span[1])}{zone_hint(table, span)}")  # fmt: skip
    else:
        unit = "; is --unit another?" if reason.partition(":")[0] in UNITS_TOLD else ""
        said = f"no watts for {len(why)} of {len(places)} parts of the run; {first.name}: {reason}{unit}"
    raise UsageError("meter_csv", said + ("" if partial or lacking == windows else "; --partial takes the others"))


def _reason(one: _Place, log: Log) -> str:
    """Why there are no watts, as "code: sentence"; "" where there are."""
    told = energy(log) if one.rest else energy(log, *one.span)
    seconds = (one.span[1] - one.span[0]) / 1e9
    if not log.lost and one.rest and told.seconds < REST_COVERED * seconds:
        return f"gap: rows cover {told.seconds:.3g} s of {seconds:.3g} s"
    return "" if told.watts is not None else f"{told.code}: {told.reason}"


def _checked_times(table: Table, places: Sequence[_Place], asked: Asked) -> list[str]:
    """The flags of all logs. UsageError where the power does not rise and fall with the run, which a wrong clock or
    another host's file would look like; a small shift is left to who says by how much the times are off."""
    whole = [one for one in places if not was_set(one.ties)]
    why = doubt(table, [one.unix for one in whole if one.rest], [one.unix for one in whole if not one.rest])
    code = why.partition(":")[0]
    if code == "unresponsive" or (code == "clock_skew" and asked.offset_s is None):
        raise UsageError("meter_csv", why)
    return [code] if why else []


def _utc(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns // 10**9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(folder: Path, document: Json, source: Path, key: Path | None) -> None:
    """Writes the folder of a run under another name, and gives it its own once all of it is valid."""
    folder, made = place.new_folder(folder, None)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        place.make(temporary)
        plan = document["plan"]
        place.write_json(temporary / "plan.json", plan)
        for one in document["passes"]:
            first = {block["cap"] for block in one.get("set_aside", ())}
            for block in (*one["blocks"], *one.get("set_aside", ())):
                again = block["cap"] in first and block in one["blocks"]
                place.write_json(temporary / place.block_name(block["index"], block["cap"], again), block)
        place.write_json(temporary / "run.json", document)
        if (source / "log.jsonl").is_file():
            shutil.copyfile(source / "log.jsonl", temporary / "log.jsonl")
        place.log(temporary, "merged", **plan["power"]["merged"])
        place.write_json(temporary / "pytest-benchmark.json", to_pytest_benchmark(load_run(temporary)))
        validated(temporary)
        signed(temporary, key)
        temporary.replace(folder)
    except OSError as error:
        raise UsageError("write", f"cannot be written: {error.strerror}", str(folder)) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if not (folder / "run.json").exists():
            place.discard(folder, made)
