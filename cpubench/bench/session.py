"""The run that a pytest session shows: given by ``--cpubench-run`` or measured once, and played test by test."""

from __future__ import annotations

import warnings
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from cpubench.bench.clock import clock
from cpubench.bench.facts import facts_of_variant
from cpubench.bench.plugin import EXPECTED, SHOWN
from cpubench.bench.replay import (
    Row,
    cells_at,
    default_cap,
    failure,
    rows_of_kernels,
    rows_of_run,
    seconds_per_op,
    skip_reason,
)
from cpubench.errors import UsageError
from cpubench.host.topology import read_topology
from cpubench.measure.profiles import PROFILES
from cpubench.results.load import load_run
from cpubench.results.names import row_key
from cpubench.results.parse import shown

if TYPE_CHECKING:
    from cpubench.results.records import Cell, Run, Variant


@dataclass(frozen=True)
class Shown:
    """A run and what a test looks up in it, by variant key."""

    run: Run
    folder: Path
    cap: str
    measured: bool  # in this session
    variants: dict[str, Variant]
    cells: dict[str, list[tuple[int, Cell]]]

    def __str__(self) -> str:
        plan = self.run.plan
        what = f"{plan.id}, profile {plan.profile}, {len(self.run.passes)} passes, cap {self.cap}"
        return f"{self.folder} ({shown(what)})"


def expect_suites(config: pytest.Config) -> None:
    """Prepare a session in which our suites are collected; the others stay as they are."""
    if config.stash.get(EXPECTED, False):
        return
    config.stash[EXPECTED] = True
    config.addinivalue_line("python_files", "bench_*.py")
    if not config.pluginmanager.hasplugin("benchmark"):
        return
    from pytest_benchmark.logger import PytestBenchmarkWarning

    # "machine_info is different" is what comparing two candidates says; a project with `filterwarnings = error`,
    # such as our own checkout, would stop at it: while it is configured (first line) and later on (second).
    warnings.filterwarnings("default", category=PytestBenchmarkWarning)
    config.addinivalue_line("filterwarnings", "default::pytest_benchmark.logger.PytestBenchmarkWarning")


def load_shown(folder: Path, cap: str | None = None, *, measured: bool = False) -> Shown:
    """The run of a folder at one cap level; raises UsageError."""
    run = load_run(folder)
    if cap is not None and cap not in run.plan.caps:
        raise UsageError("cap", shown(f"there is no cap level {cap!r}, only {', '.join(run.plan.caps)}"), str(folder))
    cap = cap or default_cap(run)
    return Shown(run, folder, cap, measured, {v.key: v for v in run.plan.variants}, cells_at(run, cap))


def rows(config: pytest.Config) -> list[Row]:
    """The rows of the run to replay, or without one those that this build can measure."""
    if SHOWN in config.stash:
        return rows_of_run(config.stash[SHOWN].run)
    try:
        from cpubench._native import kernels
    except ImportError as error:
        how = "build the extension with `pip install -e .`, or give a finished run with --cpubench-run DIR"
        pytest.fail(f"cpubench cannot measure here ({error}): {how}", pytrace=False)
    topology, profile = read_topology(), PROFILES[config.getoption("--cpubench-profile")]
    return rows_of_kernels(kernels(), profile, bool(topology.smt.value), topology.cores)


def measure(session: pytest.Session, out: Path) -> Shown:
    """A run of what was collected, in or below the folder ``out``; raises UsageError."""
    from cpubench.measure.runner import measure_session

    config = session.config
    names, profile = _collected(session), config.getoption("--cpubench-profile")
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")
    # Minutes pass here: this line and the runner's own progress must reach the terminal meanwhile.
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        if terminal:
            terminal.write_line("")
            terminal.write_line(f"cpubench: measures {len(names)} variants, profile {profile}, into {out}")
        return load_shown(measure_session(names, profile, out), measured=True)


def _collected(session: pytest.Session) -> list[str]:
    """The keys of the variants that will be shown: what -k and -m left over, without what is skipped anyway."""
    calls = [
        item.callspec.params
        for item in session.items
        if isinstance(item, pytest.Function)
        and item.get_closest_marker("cpubench")
        and not item.get_closest_marker("skip")
    ]
    return list(dict.fromkeys(row_key(str(call["variant"]), str(call["copies"])) for call in calls))


def play(show: Shown, row: Row, benchmark: Any) -> None:
    """Let the benchmark fixture time a row's samples by the virtual clock, one round each."""
    variant, cells = show.variants.get(row.key), show.cells.get(row.key, [])
    if variant is None:
        pytest.skip(skip_reason(show.run, row))
    reason = failure(cells)
    if reason:
        fail(benchmark, reason)
    samples = seconds_per_op(cells)
    left = iter(samples)
    # pytest makes other node ids where the suites lie outside its rootdir, and compare matches by this name.
    benchmark.fullname, benchmark.name = row.fullname, row.test
    benchmark.extra_info["cpubench"] = facts_of_variant(show.run, variant, show.cap, cells)
    benchmark.pedantic(
        lambda: clock.advance(next(left, samples[-1])),  # --benchmark-cprofile calls it once more after the last round
        setup=clock.reset,
        rounds=len(samples),
        iterations=1,
    )
    if benchmark.stats is not None:  # there are none with --benchmark-disable
        benchmark.stats.iterations = variant.ops  # only shown: the times are per operation already


def fail(benchmark: Any, reason: str) -> NoReturn:
    """Fail the test in one line, and inside pedantic: an unused benchmark fixture would be a warning of its own."""

    def target() -> NoReturn:
        raise RuntimeError(reason)

    with suppress(RuntimeError):
        benchmark.pedantic(target)
    pytest.fail(reason, pytrace=False)
