"""After measuring: the file for pytest-benchmark and the score; and whatever goes wrong names the run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cpubench.analysis.reference import load_reference
from cpubench.analysis.score import score
from cpubench.bench.export import to_pytest_benchmark
from cpubench.errors import Unfinished, UsageError
from cpubench.measure.folder import write_json
from cpubench.report.html.page import can_report
from cpubench.report.output import as_text
from cpubench.report.terminal import show_score
from cpubench.results.gather import TURNS
from cpubench.results.load import load_run
from cpubench.results.parse import shown
from cpubench.results.records import Run
from cpubench.results.signature import sign
from cpubench.vendor import make_report
from cpubench.versus import compared, tell

Json = dict[str, Any]


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Errors from inside say where the run is kept: by then it took minutes, and nothing of it is lost."""
    try:
        yield
    except UsageError as error:
        raise UsageError(error.code, f"{error.text}; the run is kept in {folder}", error.where) from None
    except KeyboardInterrupt:
        raise UsageError("interrupted", f"interrupted; the finished run is kept in {folder}") from None
    except Exception:  # ours: its traceback follows
        print(f"cpubench: the run is kept in {shown(str(folder), 4096)}", file=sys.stderr)
        raise


def finished(folder: Path) -> tuple[Run, Json]:
    """The run of a folder, which gets its pytest-benchmark file, and the run's score document."""
    run = load_run(folder)
    write_json(folder / "pytest-benchmark.json", to_pytest_benchmark(run))
    return run, score(run, load_reference())


def unfinished(error: Unfinished, key: Path | None = None) -> None:
    """Nothing; the folder of a run that ended early gets its pytest-benchmark file and its signature, if there are
    passes to be in it."""
    if error.passes:
        with suppress(UsageError), naming(error.folder):  # such as a full disk: how the run ended is the thing to say
            signed(error.folder, key)
            for folder in folders(error.folder):
                write_json(folder / "pytest-benchmark.json", to_pytest_benchmark(load_run(folder)))


def signed(folder: Path, key: Path | None) -> None:
    """Nothing; signs the run of a folder, or those of its two sides, where there is a key."""
    if key is not None:
        for one in folders(folder):
            sign(one / "run.json", key)


def folders(folder: Path) -> list[Path]:
    """The run folders of a run: itself, or those of its two sides."""
    return [folder / label for label in "ab"] if (folder / TURNS).exists() else [folder]


def show(folder: Path, json_: bool) -> bool:
    """Whether a finished run may be published, after printing it: a score, or the comparison of two sides."""
    made = [(one, *finished(one)) for one in folders(folder)]
    documents = [run_document(run, one, scored) for one, run, scored in made]
    publishable = all(document["publishable"] for document in documents)
    if len(made) == 1:
        if json_:
            print(as_text(documents[0]))
        else:
            show_score(made[0][2], sys.stdout)
    else:
        compared_sides = compared([folder], None, "equal", None)
        if json_:
            sides = dict(zip("ab", documents, strict=True))
            whole = {"run": str(folder), "publishable": publishable, "sides": sides, "compare": compared_sides}
            print(as_text(whole))
        else:
            tell(compared_sides, json_=False, markdown=False)
    report = leave_report(folder)
    if not json_:
        print(f"\nrun folder: {shown(str(folder), 4096)}")
        if report is not None:
            print(f"report: {shown(str(report), 4096)}")
    return publishable


def leave_report(folder: Path) -> Path | None:
    """The report that a run folder gets, where the libraries for one are installed; a run is not less without it."""
    if not can_report():
        return None
    output = folder / "report.html"
    try:
        make_report(folders(folder), output)
    except (UsageError, OSError) as error:  # matplotlib wants a place for its cache, and a host may have none
        print(f"cpubench: no report: {shown(str(error), 2000)}", file=sys.stderr)
        return None
    return output


def run_document(run: Run, folder: Path, scored: Json) -> Json:
    """What ``cpubench run --json`` prints."""
    blocks = [block for one in run.passes for block in one.blocks]
    failed = {cell.key: cell.error for block in blocks for cell in block.cells if cell.error}
    parts = [cell for block in blocks for window in block.windows for cell in window.cells]
    failed |= {cell.key: cell.error for cell in parts if cell.error}
    width = run.stopped.half_width_ppm
    return {
        "run": str(folder),
        "stopped": {
            "by": run.stopped.by,
            "passes": run.stopped.passes,
            "half_width": None if width is None else width / 1e6,
        },
        "publishable": scored["publishable"],
        "failed": [{"variant": key, "reason": reason} for key, reason in failed.items()],
        "skipped": [{"variant": missing.variant, "reason": missing.reason} for missing in run.plan.skipped],
    }
