"""T1b: a C project of 40 files is built, its test fails, the bug is fixed, and what depends on it is built again.

The builder is a small make in Python (``tools/build.py``): what is older than its sources or headers is compiled by
``cc -O2``, one process each, ``serial`` or as many at once as there are CPUs, and linked.
"""

from __future__ import annotations

import shlex

from cpubench.tasks.steps import Place, Step

VERSION = 1
WAYS = ("serial", "parallel")
UNITS, WIDE = 40, 10  # files, and those among them that include a second header
BROKEN = 7  # the unit with the bug
FOLDER = "project"


def steps(place: Place, way: str) -> list[Step]:
    def call(label: str, phase: str, argv: tuple[str, ...], **more: object) -> Step:
        command = (place.shell, "-c", f"{shlex.join(argv)}\nexit $?")
        settings = {"folder": FOLDER, "pythons": 1, "shells": 1, **more}
        return Step(label, label.partition(".")[0], phase, command, **settings)  # type: ignore[arg-type]

    def build(number: int, stale: int) -> Step:
        what = f"compiled {stale} of {UNITS + 1} files"
        return call(f"build.{number}", "build", place.tool("build", place.cc, way), expect=what)

    def test(number: int, failed: int) -> Step:
        expect, status = f"{UNITS} tests, {failed} failed", int(failed > 0)
        return call(f"test.{number}", "test", ("./run",), expect=expect, status=status, pythons=0)

    def edit(number: int, name: str, old: str, new: str) -> Step:
        return call(f"edit.{number}", "edit", place.tool("edit", "replace", name, old, new))

    return [
        call("copy", "fs.copy", place.tool("tree", "copy", f"{place.inputs}/c", FOLDER), folder=""),
        build(1, UNITS + 1),
        test(1, 1),
        call("search", "explore", place.tool("look", "search", f"unit_{BROKEN:02d}", ".")),
        call("read", "explore", place.tool("look", "read", f"unit_{BROKEN:02d}.c", "1", "80")),
        edit(1, f"unit_{BROKEN:02d}.c", "/* off by one */ + 1", "/* as expected */"),
        build(2, 1),
        test(2, 0),
        edit(2, "wide.h", "/* shared by some */", "/* shared by ten */"),
        build(3, WIDE),
        build(4, 0),
        test(3, 0),
        call("remove", "teardown", place.tool("tree", "delete", FOLDER), folder=""),
    ]
