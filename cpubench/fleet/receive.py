"""What came from a host: a result is checked against its sum, its own seals and the plan before it counts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.fleet.layout import FAILURE, RUN, SUM, UNRETURNED, Cell, cell_folder, incoming, outcome_file
from cpubench.fleet.state import given_back, write, write_failure
from cpubench.results.load import run_of
from cpubench.results.packed import unpacked
from cpubench.results.parse import MAX_BYTES, parse, read, read_raw, shown
from cpubench.results.records import Run

Json = dict[str, Any]
MOST_BYTES = 100_000  # of an outcome


def verdict(outcome: Json) -> tuple[str, str] | None:
    """The class and the text of a run that left no result, or did not give back a limit; None for one that is good."""
    error = outcome.get("error") if isinstance(outcome.get("error"), dict) else {}
    code, text = str((error or {}).get("code", "")), str((error or {}).get("text", ""))
    restore = outcome.get("restore") if isinstance(outcome.get("restore"), dict) else {}
    if outcome.get("exit") == 70 or (restore or {}).get("exit") == 70:
        return UNRETURNED, text or str((restore or {}).get("text", ""))
    if outcome.get("state") == "gone":
        return "bad result", "the run is gone: it was killed, or the host was started anew"
    if outcome.get("state") == "running" or (outcome.get("timed_out") and "sha256" not in outcome):
        return "timed out", "the run did not end before its deadline, and was ended"
    if "sha256" in outcome:
        return None
    if code == "busy":
        return "busy", text
    kind = "bad result" if outcome.get("measured") else "preflight refused"
    return kind, text or f"no result: the run ended with {outcome.get('exit')}"


def taken(outcome: Json, file: Path, cell: Cell, plan: Json, fleet: Path) -> tuple[str, str] | None:
    """How a run failed, or None, after its result, if it has one, became that of the cell; both may be.

    UsageError only where the results cannot be written: then nothing more can be told there.
    """
    failed = verdict(outcome)
    if "sha256" in outcome:
        try:
            receive(file, str(outcome["sha256"]), cell, plan, fleet)
        except UsageError as error:
            if error.code == "results":
                raise
            failed = failed or ("bad result", str(error))
    restore = outcome.get("restore")
    if isinstance(restore, dict) and restore.get("exit") == 0 and outcome.get("exit") != 70:
        given_back(fleet, cell.host)
    return failed


def receive(file: Path, sha256: str, cell: Cell, plan: Json, fleet: Path) -> None:
    """Nothing; the file becomes the cell's result. UsageError where it is not what was sent, or not what was asked."""
    data = read_raw(file, MAX_BYTES)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UsageError("changed", "the result is not what the host sent: its sum differs")
    check(run_in(data), cell, plan)
    folder = cell_folder(fleet, cell)
    write(folder / RUN, data)
    write(folder / SUM, f"{sha256}  {RUN}\n".encode())  # last: a result without it does not count
    (folder / FAILURE).unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def salvage(cells: Sequence[Cell], plan: Json, fleet: Path) -> None:
    """Takes what a controller that was killed had fetched and not yet checked, and stores limits not given back.

    Where it was killed before the host's outcome was kept, gzip and the seals of the run show a cut or changed result,
    and whether a limit was given back is not known. What is still missing then is measured, so no other failure counts.
    """
    for cell in cells:
        file = incoming(fleet, cell)
        said = _kept(outcome_file(file))
        if said is None and not file.exists():
            continue
        told = {"sha256": _sum(file)} if said is None else said
        failed = taken(told, file, cell, plan, fleet) if file.exists() else verdict(told)
        if said is None and cell.cap != "as-is":
            failed = UNRETURNED, "not known whether the limit was given back: the controller was stopped meanwhile"
        if failed and failed[0] == UNRETURNED:
            write_failure(fleet, cell, UNRETURNED, failed[1] or "no reason was told")
        file.unlink(missing_ok=True)
        outcome_file(file).unlink(missing_ok=True)


def _kept(file: Path) -> Json | None:
    """The outcome that a host told; None where there is none, or it cannot be read."""
    try:
        return parse(read(file, MOST_BYTES))
    except UsageError:
        return None


def _sum(file: Path) -> str:
    try:
        return hashlib.sha256(read_raw(file, MAX_BYTES)).hexdigest()
    except UsageError:  # ``receive`` says why
        return ""


def run_in(data: bytes) -> Run:
    """The run of a ``run.json.gz``; the place inside it is told with what is wrong there."""
    try:
        return run_of(unpacked(data, MAX_BYTES))
    except UsageError as fault:
        text = f"{fault.where}: {fault.text}" if fault.where else fault.text
        raise UsageError(fault.code, text) from None


def check(run: Run, cell: Cell, plan: Json) -> None:
    """None if the run is of the plan's suite and of the cell's level, and was not cut short."""
    if run.plan.suite != plan["suite"]:
        raise UsageError("suite", f"the result is of suite {run.plan.suite}, the plan of {plan['suite']}")
    other = [one.key for one in run.plan.variants if plan["kernels"].get(one.kernel) != one.version]
    if other:
        raise UsageError("suite", f"{shown(other[0], 60)} is of another version than the plan's")
    if run.stopped.by in ("interrupted", "failed"):
        raise UsageError("unfinished", f"the run was {run.stopped.by} before its stop: what it has is no result")
    if run.plan.caps != [cell.cap]:
        raise UsageError("cap", f"the result is at {shown(', '.join(run.plan.caps), 60)}, not at {cell.cap}")
