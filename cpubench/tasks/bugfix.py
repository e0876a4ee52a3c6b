"""T1: one agent fixes a bug in a project of 400 files, from the copy of the tree to its removal.

``verify-heavy`` and ``read-heavy`` have the shares of steps that two models had in 2,920 public trajectories (per cent,
read / search / edit / verify / test suite): 22/25/10/30/10.5 and 36/22/15/5/1.4. ``light`` tests write 2 KB at a time
and start 6 shells; ``heavy`` ones write 120 KB and start 150, as traces of an ML project had it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

from cpubench.tasks import inputs
from cpubench.tasks.steps import Place, Step

VERSION = 1
PROFILES = ("verify-heavy", "read-heavy")
REGIMES = ("light", "heavy")
VPY = ".venv/bin/python"
BEGIN = "copy note venv install build"
PREPARED = len(BEGIN.split())  # steps whose work can be copied to another folder
# s search, r read, e edit, p snippet, t targeted test; the full runs are named by what they must give.
ORDERS = {
    "verify-heavy": "s s r s r s r r s s r s r p s r add red p p s r e p s r patch t p t green p e t p s r t p s r t "
    "green",
    "read-heavy": "s r r s r r s r r r s r e s r r s r r add red s r r e s r e p s r r patch t s r e r e green",
}
SEARCHES = [
    ("search", r"def clamp", "."), ("find", ".py", "."), ("search", r"clamp\(", "tests"), ("list", "ledger"),
    ("search", r"refund_\d+: ", "docs"), ("find", ".c", "."), ("search", r"mod_07", "."), ("list", "tests"),
    ("search", r"invoice .* batch", "docs"), ("search", r"import (json|re)$", "ledger"),
    ("search", r"settle_[0-9]*7: ", "docs"), ("search", r"FACTOR", "ledger"), ("list", "docs"),
]  # fmt: skip
READS = [
    ("ledger/mod_07.py", 1, 60), ("tests/test_mod_07.py", 1, 70), ("docs/area_00/part_0/page_001.md", 1, 60),
    ("ledger/native.py", 1, 40), ("native/mix.c", 1, 40), ("docs/area_01/part_2/page_040.md", 1, 120),
    ("tests/support.py", 1, 80), ("ledger/mod_03.py", 1, 60), ("docs/area_02/part_5/page_085.md", 1, 90),
    ("native/part_1.c", 1, 150), ("docs/area_04/part_1/page_134.md", 20, 120), ("ledger/mod_11.py", 10, 60),
    ("docs/area_06/part_3/page_205.md", 1, 100), ("tests/test_mod_11.py", 1, 60),
]  # fmt: skip
EDITS = [
    ("ledger/mod_07.py", '"""Accounts of group 07."""', '"""Accounts of group 07, bounded."""'),
    ("ledger/__init__.py", '"""A ledger."""', '"""A ledger of nineteen groups."""'),
    ("ledger/native.py", '"""The C library of the project."""', '"""The C library."""'),
    ("tests/support.py", "# bytes of a write", "# bytes of each write"),
    ("ledger/mod_03.py", '"""The rows as JSON, rated."""', '"""The rows as JSON, each rated."""'),
]  # fmt: skip
SNIPPETS = [
    "import json, re\nfrom ledger import mod_07\nprint([mod_07.clamp(n, 0, 3) for n in range(-1, 5)])",
    "from ledger import mod_07\nprint(mod_07.mix(range(20000)))",
    "import collections, decimal, ledger.mod_01 as m\nprint(m.grouped([('a', n) for n in range(3000)]))",
    "import sqlite3, json, urllib.parse\nfrom ledger import mod_02 as m\nprint(m.tokens('note_5 ' * 3000))",
    "import inspect\nfrom ledger import mod_07\nprint(len(inspect.getsource(mod_07.clamp)))",
    "from ledger import mod_07, native\nprint(native.mix(7, list(range(5000))))",
]  # fmt: skip
ADDED = 10  # tests
FAILING = 2  # of them, before the fix


def steps(place: Place, profile: str, regime: str, tools: Sequence[str] = ()) -> list[Step]:
    """The steps of the task; ``tools`` may hold "git" and "pip", which then do what else our own programs do."""
    counts: dict[str, int] = {}
    made: list[Step] = []
    moves = _moves(place, regime, tools)
    end = ["status", "remove"]
    for move in [*BEGIN.split(), *ORDERS[profile].split(), *end]:
        one = moves[move]()
        counts[one.kind] = number = counts.get(one.kind, 0) + 1
        made.append(replace(one, label=f"{one.kind}.{number}"))
    return made


def variables(regime: str) -> dict[str, str]:
    """What the environment of the steps has beside."""
    return {"LEDGER_REGIME": regime}


def _moves(place: Place, regime: str, tools: Sequence[str]) -> dict[str, Callable[[], Step]]:
    searches, reads, edits, snippets = cycle(SEARCHES), cycle(READS), iter(EDITS), cycle(SNIPPETS)
    wheels = f"{place.inputs}/wheels"

    def call(kind: str, phase: str, argv: Sequence[str], **more: Any) -> Step:
        """A shell that runs one command, in the tree; `exit` keeps every shell from executing it in its own place."""
        command = (place.shell, "-c", f"{shlex.join(argv)}\nexit $?")
        return replace(Step("", kind, phase, command, folder="tree", pythons=1, shells=1), **more)

    def look(what: tuple[str, ...]) -> Step:
        return call("search", "explore", place.tool("look", *what), pure=True)

    def read(what: tuple[str, int, int]) -> Step:
        return call("read", "explore", place.tool("look", "read", what[0], str(what[1]), str(what[2])), pure=True)

    def tests(kind: str, names: Sequence[str], expect: str, status: int = 0) -> Step:
        argv = [VPY, "-m", "unittest", *names]
        shells = 1 if len(names) == 1 else 151 if regime == "heavy" else 7
        return call(kind, "test", argv, expect=expect, status=status, fixed=False, pure=True, shells=shells)

    full = inputs.TESTS + ADDED
    every = [f"tests.test_mod_{group:02d}" for group in range(inputs.GROUPS)] + ["tests.test_regression"]
    moves: dict[str, Callable[[], Step]] = {
        "copy": lambda: call("copy", "fs.copy", place.tool("tree", "copy", f"{place.inputs}/repo", "tree"), folder=""),
        "note": lambda: call("note", "fs.copy", place.tool("tree", "manifest", ".", "build/before.json")),
        "venv": lambda: call("venv", "env.setup", (place.python, "-m", "venv", "--without-pip", ".venv"), fixed=False),
        "install": lambda: call("install", "deps.install", (VPY, *place.tool("wheels", wheels)[1:])),
        "build": lambda: call("build", "build", (place.cc, "-O2", "-shared", "-fPIC", "-o", "build/_native.so",
                              "native/mix.c", *(f"native/part_{n}.c" for n in range(3))), fixed=False, pythons=0),
        "s": lambda: look(next(searches)),
        "r": lambda: read(next(reads)),
        "e": lambda: call("edit", "edit", place.tool("edit", "replace", *next(edits))),
        "p": lambda: call("snippet", "snippet", (VPY, "-c", next(snippets)), pure=True),
        "add": lambda: call("edit", "edit", place.tool("edit", "add", "tests/test_regression.py",
                                                       f"{place.inputs}/patches/test_regression.py")),
        "patch": lambda: call("edit", "edit", place.tool("edit", "patch", ".", f"{place.inputs}/patches/fix.diff")),
        "red": lambda: tests("test", every, rf"Ran {full} tests(.|\n)*FAILED \(failures={FAILING}\)", status=1),
        "t": lambda: tests("target", ["tests.test_regression"], rf"Ran {ADDED} tests(.|\n)*^OK$"),
        "green": lambda: tests("test", every, rf"Ran {full} tests(.|\n)*^OK$"),
        "status": lambda: call("status", "explore", place.tool("tree", "status", ".", "build/before.json")),
        "remove": lambda: call("remove", "teardown", place.tool("tree", "delete", "tree"), folder=""),
    }  # fmt: skip
    if "pip" in tools:
        names = [f"dep_{number:02d}" for number in range(inputs.WHEELS)]
        argv = [place.python, "-m", "pip", "--python", VPY, "--disable-pip-version-check", "--no-cache-dir", "install",
                "-q", "--no-index", "--find-links", wheels, *names]  # fmt: skip
        moves["install"] = lambda: call("install", "deps.install", argv, fixed=False)
    if "git" in tools:
        name = ["-c", "user.name=agent", "-c", "user.email=agent@localhost"]
        first = f"git init -q . && git add -A && git {shlex.join(name)} commit -q -m start\nexit $?"
        moves["note"] = lambda: Step(
            "", "note", "fs.copy", (place.shell, "-c", first), folder="tree", shells=1, fixed=False
        )
        moves["status"] = lambda: call("status", "explore", ("git", "status", "--porcelain", "--", ".", ":!build",
                                       ":!.venv", ":!**/__pycache__/**"), pythons=0, fixed=False,
                                       expect=r"^ M ledger/mod_07\.py$")  # fmt: skip
    return moves
