"""Every pytest of the environment loads the plugin: what those without our suites see of it, which is nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

QUIET = ("-p", "no:cacheprovider")
PLAIN = """
def test_nothing(): pass
def test_timed(benchmark): benchmark.pedantic(lambda: None)
"""


def test_other_sessions_stay_as_they_are(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN, bench_not_ours="def test_never(): assert False")
    result = pytester.runpytest_inprocess(*QUIET, "--benchmark-json=out.json", "-W", "error", "--strict-markers")
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("cpubench: *")
    document = json.loads((pytester.path / "out.json").read_text())
    assert "cpubench" not in document
    assert "python_version" in document["machine_info"]
    result = pytester.runpytest_inprocess(*QUIET, "-p", "no:benchmark", "-k", "nothing")
    result.assert_outcomes(passed=1, deselected=1)


def test_the_plugin_loads_nothing_before_it_is_needed() -> None:
    code = """
import sys, time, pytest
start = time.perf_counter()
import cpubench.bench.plugin
print(time.perf_counter() - start)
print([m for m in sys.modules if m.startswith("cpubench.") or m in ("numpy", "msgspec", "psutil")])
"""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    seconds, modules = zip(*(r.stdout.splitlines() for r in runs), strict=True)
    assert set(modules) == {"['cpubench.bench', 'cpubench.bench.plugin']"}
    assert min(map(float, seconds)) < 0.005
