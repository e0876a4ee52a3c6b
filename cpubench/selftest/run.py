"""The self-test of a host: twins through an ordinary run, then a quota and a competitor on purpose."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cpubench.analysis.separable import BASE, TWINS, sentence, told_apart
from cpubench.errors import Unfinished, UsageError
from cpubench.host import quota as groups
from cpubench.measure.draft import Options
from cpubench.measure.folder import discard, host_lock, new_folder, write_json
from cpubench.measure.passes import State
from cpubench.measure.runner import run
from cpubench.results.load import load_run
from cpubench.results.records import Run
from cpubench.results.temporary import temporary
from cpubench.selftest import contended, quota
from cpubench.selftest.blocks import Settings, rounds_ns

Json = dict[str, Any]
Tell = Callable[..., None]  # (text, whether the line stays), for a person

STANDARD = Settings()
BUDGET_NS = 100_000_000_000
START_NS = 3_000_000_000  # imports, the facts of the host, calibration
FOLDER = "cpubench-selftest-"


def selftest(budget_ns: int | None, out: Path | None, tell: Tell, settings: Settings | None = None) -> Json:
    """The self-test's document. What it measured stays in ``out``, or in no place. UsageError, before anything is
    measured, where the time is too short."""
    how = settings or STANDARD
    parts = {"quota": quota.predicted_ns(how), "contended": contended.predicted_ns(how)}
    budget_ns = budget_ns or BUDGET_NS
    twins_ns = budget_ns - START_NS - sum(parts.values())
    pass_ns = rounds_ns(how.rounds * (1 + len(TWINS)))
    _check_budget(budget_ns, budget_ns - twins_ns + how.passes * pass_ns)
    began_ns = time.monotonic_ns()
    with host_lock(), _folder(out) as folder:
        _sweep()
        told = ", ".join(f"{name} {ns / 1e9:.0f} s" for name, ns in {"twins": twins_ns, **parts}.items())
        tell(f"about {budget_ns / 1e9:.0f} s: {told}")
        measured = _twins(folder / "twins", how, twins_ns + START_NS, tell)
        minutes = (time.monotonic_ns() - began_ns) / 60e9
        document = told_apart([one.blocks[0] for one in measured.passes])
        document["quota"] = quota.under_quota(measured.plan, folder / "quota", how, tell)
        document["contended"] = contended.beside_busy(measured.plan, folder / "contended", how, tell)
        document |= {"sentence": sentence(document, minutes), "minutes": minutes}
        document["took_s"] = (time.monotonic_ns() - began_ns) / 1e9
        tell(f"took {document['took_s']:.0f} s")
    return document


def keep(document: Json, out: Path) -> str | None:
    """Nothing, after writing the document into the folder of its self-test; else why it is not there. It took minutes:
    a disk that is full by then must not keep it from being shown."""
    try:
        write_json(out / "selftest.json", document)
    except UsageError as fault:
        return str(fault)
    return None


def _check_budget(budget_ns: int, need_ns: int) -> None:
    if budget_ns < need_ns:
        text = f"{budget_ns / 1e9:.0f} s are too short: a self-test takes {need_ns / 1e9 + 1:.0f} s at least"
        raise UsageError("budget_too_small", text, "--budget")


def _twins(folder: Path, how: Settings, budget_ns: int, tell: Tell) -> Run:
    """A run of the twins, with one copy each."""

    def passed(event: str, state: State) -> None:
        if event == "pass":
            tell(f"twins: pass {state.passes}, at most {state.most_left_ns / 1e9:.0f} s left", False)
        elif event.startswith("again: "):
            tell(f"twins: measured {event}")
        elif not event.startswith(("warning", "calibrating", "planned", "stopped")):
            tell(f"twins: pass {state.passes + 1} {event}")

    own = {"samples": how.rounds, "min_passes": how.passes, "max_passes": how.most_passes}
    options = Options("quick", keys=[BASE, *TWINS], out=folder, budget_ns=budget_ns, own=own, locked=True)
    try:
        return load_run(run(options, passed))
    except Unfinished as error:
        raise error.reason from None


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """A folder for what is measured: ``out``, or a temporary one that is gone afterwards."""
    if out is not None:
        folder, made = new_folder(out, None)
        try:
            yield folder
        finally:
            discard(folder, made)  # where nothing was measured; folders that hold something stay
        return
    with temporary(f"{FOLDER}{os.getpid()}-") as folder:
        yield folder


def _sweep() -> None:
    """Removes what earlier self-tests left that were killed: control groups and temporary folders."""
    with suppress(OSError):  # somebody else's: they may stay
        groups.sweep()
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        pid = left.name.removeprefix(FOLDER).partition("-")[0]
        with suppress(OSError):
            if pid.isdecimal() and not Path("/proc", pid).exists() and left.lstat().st_uid == os.geteuid():
                shutil.rmtree(left, ignore_errors=True)
