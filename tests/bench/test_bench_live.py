"""A session that measures first: the measurement is a made-up one, everything around it is real."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cpubench.suites
import pytest
from made import made_run, made_variants

from cpubench.errors import UsageError
from cpubench.host.facts import collect
from cpubench.results.files import sealed

pytest_plugins = ["pytester"]

SUITES = str(Path(cpubench.suites.__file__).parent)
QUIET = ("-p", "no:cacheprovider")


def kernels() -> list[dict[str, Any]]:
    """The kernels of the made-up variants, as the extension lists them."""
    found: dict[str, dict[str, Any]] = {}
    for variant in made_variants():
        kernel = found.setdefault(
            variant.kernel, {"name": variant.kernel, "family": variant.family, "flags": [], "params": []}
        )
        param = {"label": variant.params, "scored": variant.scored, "strict": False, "each": None}
        if param not in kernel["params"]:
            kernel["params"].append(param)
    return list(found.values())


class Runner:
    """Stands for ``cpubench.measure.runner``; remembers what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], str, Path]] = []
        self.error: str | None = None

    def measure_session(self, names: Sequence[str] | None, profile: str, out: Path) -> Path:
        assert names is not None
        self.calls.append((list(names), profile, out))
        print("progress of the runner", file=sys.stderr)
        if self.error:
            raise UsageError("busy", self.error)
        chosen = [v for v in made_variants() if v.key in names]
        document = made_run(2, variants=chosen, profile=profile)
        folder = out / "host-2026"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(sealed(document | {"host": collect()})))
        return folder


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """The fake runner and the fake registry, in the place of the real ones."""
    fake = Runner()
    native = types.ModuleType("cpubench._native")
    native.kernels = kernels  # type: ignore[attr-defined]
    module = types.ModuleType("cpubench.measure.runner")
    module.measure_session = fake.measure_session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cpubench._native", native)
    monkeypatch.setitem(sys.modules, "cpubench.measure.runner", module)
    return fake


def live(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(SUITES, *QUIET, *args)


def test_a_session_measures_once_and_says_where(pytester: pytest.Pytester, runner: Runner) -> None:
    result = live(pytester)
    result.assert_outcomes(passed=14, skipped=1)
    ((names, profile, out),) = runner.calls
    assert (len(names), profile) == (14, "quick")
    result.stdout.fnmatch_lines(
        [
            f"cpubench: measures 14 variants, profile quick, into {out}",
            f"cpubench: measured {out}/host-2026 (made-0, *",
            f"cpubench: --cpubench-run {out}/host-2026 shows it again*",
        ]
    )
    assert (out / "host-2026" / "run.json").exists()
    assert "progress of the runner" in result.stderr.str()  # not captured: it comes while minutes pass


def test_only_what_is_selected_is_measured(pytester: pytest.Pytester, runner: Runner) -> None:
    live(pytester, "-k", "spawn and cores").assert_outcomes(passed=1, deselected=14)
    assert runner.calls[0][0] == ["spawn_fork_exec[rss=384M]@cores"]


def test_the_profile_decides_what_is_collected(pytester: pytest.Pytester, runner: Runner) -> None:
    live(pytester, "--cpubench-profile=standard", "-k", "not cpus").assert_outcomes(passed=17, skipped=1)
    assert runner.calls[0][1] == "standard"


def test_names_are_those_of_a_replay_and_of_the_export(pytester: pytest.Pytester, runner: Runner) -> None:
    live(pytester, "--benchmark-json=live.json")
    folder = runner.calls[0][2] / "host-2026"
    live(pytester, "--benchmark-json=replay.json", f"--cpubench-run={folder}")
    assert len(runner.calls) == 1
    a, b = (json.loads((pytester.path / name).read_text()) for name in ("live.json", "replay.json"))
    assert a["benchmarks"] == b["benchmarks"]
    assert a["machine_info"] == b["machine_info"]
    assert a["cpubench"] == b["cpubench"]


@pytest.mark.parametrize("target", [[SUITES], ["--pyargs", "cpubench.suites"]])
def test_a_live_session_compares_with_a_saved_one_of_this_host(
    pytester: pytest.Pytester, runner: Runner, target: list[str]
) -> None:
    for option in ("--benchmark-save=base", "--benchmark-compare"):
        result = pytester.runpytest_inprocess(*target, *QUIET, option, "-k", "switch")
    result.stdout.fnmatch_lines(["*(0001_base)*", "*(NOW)*"])
    assert "machine_info is different" not in result.stdout.str() + result.stderr.str()


def test_a_refused_measurement_is_one_line_in_each_test(pytester: pytest.Pytester, runner: Runner) -> None:
    runner.error = "another run holds the lock of this host"
    result = live(pytester, "--benchmark-json=out.json")
    result.assert_outcomes(failed=14, skipped=1)
    assert len(runner.calls) == 1
    assert result.stdout.lines.count(f"there is no finished run: {runner.error}") == 14
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("option", ["--collect-only", "--benchmark-disable", "--benchmark-skip"])
def test_nothing_is_measured_where_nothing_is_shown(pytester: pytest.Pytester, runner: Runner, option: str) -> None:
    assert live(pytester, option).ret == pytest.ExitCode.OK
    assert runner.calls == []


def test_what_the_run_could_not_measure_is_skipped(
    pytester: pytest.Pytester, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [*kernels(), {"name": "lock_new", "family": "lock", "flags": [], "params": [
        {"label": "", "scored": True, "strict": False, "each": None}]}]  # fmt: skip
    monkeypatch.setattr(sys.modules["cpubench._native"], "kernels", lambda: more)
    result = live(pytester, "-k", "lock")
    result.assert_outcomes(passed=2, skipped=2, deselected=13)
    result.stdout.fnmatch_lines(["SKIPPED*not in the plan of this run (profile quick)"])


def test_without_the_extension_one_line_says_what_to_do(
    pytester: pytest.Pytester, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cpubench._native", None)
    result = live(pytester)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["cpubench cannot measure here*--cpubench-run DIR"])
    assert "Traceback" not in result.stdout.str()
