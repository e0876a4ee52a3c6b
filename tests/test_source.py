"""Rules of the source tree: kernels without clock, allocation or Python, and a version for every change of work."""

import ast
import hashlib
import json
import re
from pathlib import Path

import pytest
from pools import KERNELS

from cpubench.analysis.scenarios import load_scenarios

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "ext" / "kernels").glob("*.c"))
RECORDED = Path(__file__).with_name("kernel_versions.json")
FORBIDDEN = (
    r"\b(clock_gettime|gettimeofday|time|clock|rdtsc|malloc|calloc|realloc|printf|fprintf|puts|assert)\s*\(|Python\.h"
)


def code(path):
    """A C file without comments, white space folded."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.S)
    return " ".join(text.split())


def recorded_now():
    return {
        path.stem: {"version": KERNELS[path.stem]["version"], "sha256": hashlib.sha256(code(path).encode()).hexdigest()}
        for path in SOURCES
    }


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_a_kernel_is_one_small_file_without_clock_allocation_or_printing(path):
    assert not re.search(FORBIDDEN, code(path))
    assert len(path.read_text().splitlines()) <= 80
    names = re.findall(r"\bcb_kernel_(\w+) =|\bCB_FILE_KERNEL\((\w+)", path.read_text())
    names = [name for one, two in names for name in ([one] if one else [f"file_{two}", f"storage_{two}"])]
    assert path.stem in names
    assert set(names) <= set(KERNELS)
    assert f"KERNEL({path.stem})" in (ROOT / "ext" / "kernels.def").read_text().splitlines()
    assert path.stem in KERNELS


def test_work_that_changed_has_a_new_version():
    """After a change that alters what a kernel does, raise its version; then write the file again:
    ``python tests/test_source.py``."""
    before, now = json.loads(RECORDED.read_text()), recorded_now()
    assert set(before) == set(now)
    for name, record in now.items():
        if record["version"] == before[name]["version"]:
            assert record["sha256"] == before[name]["sha256"], f"{name}: its code changed and its version did not"
    assert before == now


def test_the_documented_kernel_is_one_of_the_suite():
    (shown,) = re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "adding-a-kernel.md").read_text(), flags=re.S)
    assert shown in [path.read_text() for path in SOURCES]


def test_the_readme_counts_the_kernels():
    listed = [name for name, kernel in KERNELS.items() if "hidden" not in kernel["flags"]]
    assert f"{len(listed)} small C kernels" in (ROOT / "README.md").read_text()


def test_the_readme_shows_a_score_with_the_weights_of_today():
    assert f"\nweights {load_scenarios()['equal'].sha256}\n" in (ROOT / "README.md").read_text()


def test_python_files_are_short():
    files = [
        *(ROOT / "cpubench").rglob("*.py"),
        *(ROOT / "suites").glob("*.py"),
        ROOT / "setup.py",
        ROOT / "noxfile.py",
    ]
    assert {path.name: n for path in files if (n := len(path.read_text().splitlines())) > 250} == {}


def test_programs_that_tests_start_end_with_the_test():
    """One that a failed test drops warns when the collector finds it, which fails another test."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        held = {id(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items}
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "Popen" in ast.unparse(node.func)]
        assert [node.lineno for node in calls if id(node) not in held] == [], path


def test_imports_point_down():
    """analysis, host and results know nothing of what is above them; plan and variants touch no operating system."""
    rooms = {
        "results": {"results", "errors"},
        "host": {"host", "errors"},
        "analysis": {"analysis", "power", "results", "errors"},
        "power": {"power", "host", "results", "errors", "_native"},
        "report": {"report", "results", "errors"},
        "fleet": {"fleet", "measure", "analysis", "power", "host", "results", "errors", "_native"},
        "measure": {"measure", "analysis", "power", "host", "results", "errors", "_native"},
        "selftest": {"selftest", "measure", "analysis", "host", "results", "errors", "_native"},
        "traces": {"traces", "analysis", "results", "errors"},
        "tasks": {"tasks", "measure", "analysis", "power", "host", "results", "errors", "_native"},
    }
    for room, allowed in rooms.items():
        for path in (ROOT / "cpubench" / room).rglob("*.py"):
            found = set(re.findall(r"from cpubench\.(\w+)", path.read_text()))
            found |= set(re.findall(r"from cpubench import (_native|host|measure)", path.read_text()))
            assert found <= allowed, path
    pure = {"channel", "energy", "mirrors", "verdict"}  # of the room of meters: what is computed of a log
    for path in (ROOT / "cpubench" / "analysis").glob("*.py"):
        assert set(re.findall(r"from cpubench\.power\.(\w+)", path.read_text())) <= pure, path
        assert "from cpubench.power import" not in path.read_text(), path
    for name in ("plan", "levels", "variants", "profiles"):
        text = (ROOT / "cpubench" / "measure" / f"{name}.py").read_text()
        assert not re.search(r"^import (os|subprocess|socket)|pathlib", text, flags=re.M)


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(recorded_now(), indent=1) + "\n")
