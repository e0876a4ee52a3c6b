"""The pytest plugin: suites that replay a finished run, or measure one once per session and replay that.

Every pytest of the environment loads this module, so it imports nothing of ours before it is needed, and each hook
leaves a session alone that has no suite of ours and no ``--cpubench-run``. The hooks of pytest-benchmark are optional:
otherwise ``pytest -p no:benchmark`` would stop at an unknown hook in every project of the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cpubench.bench.session import Shown

SHOWN: pytest.StashKey[Shown] = pytest.StashKey()  # the run of this session, once there is one
EXPECTED: pytest.StashKey[bool] = pytest.StashKey()  # our suites are collected


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cpubench", "cpubench: CPU benchmark suites")
    group.addoption(
        "--cpubench-run",
        metavar="DIR",
        type=Path,
        help="Replay this finished run (a run folder or its run.json) instead of measuring.",
    )
    group.addoption(
        "--cpubench-cap",
        metavar="LEVEL",
        help="The cap level to show of a run that has several. Default: as-is, or else the first of the plan.",
    )
    group.addoption(
        "--cpubench-profile",
        choices=("quick", "standard", "strict"),
        default="quick",
        help="How much to measure where no finished run is given. Default: %(default)s",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before pytest-benchmark's own, which already asks for the machine where it is to compare."""
    config.addinivalue_line("markers", "cpubench(family): show every variant of this family of kernels.")
    by_name = config.getoption("pyargs") and any(arg.startswith("cpubench.suites") for arg in config.args)
    folder = config.getoption("--cpubench-run")
    if folder is None and not by_name:
        return
    from cpubench.bench.session import expect_suites, load_shown
    from cpubench.errors import UsageError

    expect_suites(config)  # where they are collected by name, pytest loads their conftest too late for this
    if folder is None:
        return
    try:
        config.stash[SHOWN] = load_shown(folder, config.getoption("--cpubench-cap"))
    except UsageError as error:
        raise pytest.UsageError(f"--cpubench-run: {error}") from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each row of the family that the marker names."""
    marker = metafunc.definition.get_closest_marker("cpubench")
    if marker is None:
        return
    from cpubench.bench.clock import clock
    from cpubench.bench.session import rows

    (family,) = marker.args
    params = [
        pytest.param(row.name, row.copies, id=row.param, marks=pytest.mark.benchmark(timer=clock, group=row.group))
        for row in rows(metafunc.config)
        if row.family == family
    ]
    nothing = pytest.param("", "", id="none", marks=pytest.mark.skip(reason=f"there is no variant of {family}"))
    metafunc.parametrize(("variant", "copies"), params or [nothing])


@pytest.fixture(scope="session")
def cpubench_shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown | str:
    """The run of this session, measured now if none was given; a reason where that is not possible."""
    from cpubench.bench.session import measure
    from cpubench.errors import UsageError

    stash = request.config.stash
    if SHOWN not in stash:
        try:
            stash[SHOWN] = measure(request.session, tmp_path_factory.mktemp("cpubench"))
        except UsageError as error:
            return f"there is no finished run: {error}"
    return stash[SHOWN]


@pytest.fixture
def cpubench_replay(request: pytest.FixtureRequest, benchmark: Any) -> Callable[[str, str], None]:
    """A function that shows a variant and copies; the first call of a session measures if no run was given."""
    from cpubench.bench.replay import Row
    from cpubench.bench.session import fail, play

    def replay(variant: str, copies: str) -> None:
        if benchmark.disabled and SHOWN not in request.config.stash:
            pytest.skip("nothing is measured where benchmarks are disabled (--benchmark-disable, xdist)")
        shown = request.getfixturevalue("cpubench_shown")
        if isinstance(shown, str):
            fail(benchmark, shown)
        play(shown, Row(request.node.get_closest_marker("cpubench").args[0], variant, copies), benchmark)

    return replay


def pytest_report_header(config: pytest.Config) -> str | None:
    shown = config.stash.get(SHOWN, None)
    return f"cpubench: shows {shown}" if shown else None


@pytest.hookimpl(trylast=True)  # below the tables
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shown = config.stash.get(SHOWN, None)
    if shown is None:
        return
    terminalreporter.write_line("cpubench: times and OPS are of one copy; extra_info has ops_per_s of all copies")
    if shown.measured:
        terminalreporter.write_line(f"cpubench: measured {shown}")
        terminalreporter.write_line(f"cpubench: --cpubench-run {shown.folder} shows it again; copy it to keep it")


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_benchmark_generate_machine_info(config: pytest.Config) -> dict[str, Any] | None:
    """The host of the run; pytest-benchmark's own answer holds the clock rate of the moment and is never the same."""
    from cpubench.bench.facts import machine_info

    if SHOWN in config.stash:
        return machine_info(config.stash[SHOWN].run.host)
    if not config.stash.get(EXPECTED, False):
        return None
    from cpubench.host.facts import collect  # --benchmark-compare asks before anything is measured

    return machine_info(collect())


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Called for --benchmark-json and again for --benchmark-save."""
    from cpubench.bench.facts import facts_of_run

    if SHOWN in config.stash:
        output_json["cpubench"] = facts_of_run(config.stash[SHOWN].run, config.stash[SHOWN].cap)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_benchmark_scale_unit(
    config: pytest.Config, unit: str, benchmarks: Any, best: Any, worst: Any, sort: str
) -> tuple[str, float] | None:
    from cpubench.bench.scale import scale_unit

    return scale_unit(config, unit, benchmarks, best, worst, sort) if SHOWN in config.stash else None
