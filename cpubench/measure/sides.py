"""The sides of a run: one, or two builds or settings that take turns in its passes, each with a folder of its own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cpubench import SUITE_VERSION, _native
from cpubench.analysis.flags import block_flags
from cpubench.errors import UsageError
from cpubench.measure import build
from cpubench.measure.child import Installed
from cpubench.measure.folder import block_name
from cpubench.results.gather import TURNS
from cpubench.results.load import load_block
from cpubench.results.parse import check_text, parse, read, shown
from cpubench.results.records import Block, Plan
from cpubench.results.records import Side as Label

CAP = "as-is"
ASK_S = 60  # how long another build may take to say what it is
# -I as in child.py; a build from before one of these names existed fails here, in one line.
TELL = """
import json, pathlib, cpubench
from cpubench import SUITE_VERSION, _native
from cpubench.measure.build import build
print(json.dumps({"suite": SUITE_VERSION, "cpubench": cpubench.__version__, "build": build(),
                  "packages": str(pathlib.Path(cpubench.__file__).resolve().parents[1]),
                  "versions": {k["name"]: k["version"] for k in _native.kernels(True)}}))
"""

Json = dict[str, Any]


@dataclass
class Side:
    """A run folder that is being filled, at one of its cap levels."""

    folder: Path
    plan: Plan
    installed: Installed = field(default_factory=Installed)
    cap: str = CAP
    blocks: list[Block] = field(default_factory=list)  # of each pass the one that counts
    set_aside: dict[int, Block] = field(default_factory=dict)  # by pass: the one that was flagged, and measured again
    flagged: int = 0  # how many blocks were, of those that were measured first

    def block_file(self, index: int, again: bool = False) -> Path:
        return self.folder / block_name(index, self.cap, again)

    def add(self, block: Block) -> bool:
        """Adds the block of the next pass; whether it is flagged."""
        self.blocks.append(block)
        flagged = bool(block_flags(self.plan, block))
        self.flagged += flagged
        return flagged

    def replace(self, block: Block) -> None:
        """Sets the last block aside for this one, which was measured again."""
        self.set_aside[block.index], self.blocks[-1] = self.blocks[-1], block

    def load_finished(self) -> None:
        """Adds the blocks that the folder holds beyond those that are known."""
        while (file := self.block_file(len(self.blocks))).exists():
            self.add(self._load(file, len(self.blocks)))
        for at, first in enumerate(self.blocks):
            if at not in self.set_aside and (again := self.block_file(at, again=True)).exists():
                self.set_aside[at], self.blocks[at] = first, self._load(again, at)

    def _load(self, file: Path, index: int) -> Block:
        block = load_block(file, self.plan)
        if (block.index, block.cap) != (index, self.cap):
            text = f"holds the block of pass {block.index} at {block.cap}, which is another one: remove this file"
            raise UsageError("block", text, str(file))
        return block


def at_levels(folder: Path, plan: Plan) -> list[Side]:
    """The cap levels of one run folder."""
    return [Side(folder, plan, cap=cap) for cap in plan.caps]


def two_sides(folder: Path, plan: Plan, prefix: Path | None, settings: dict[str, str]) -> list[Side]:
    """Side A, this build as it is, and side B: the build below ``prefix`` (None: this one too) with these settings.

    UsageError where B cannot do the work of the plan.
    """
    other, told = _installed(prefix, settings)
    pair = secrets.token_hex(8)
    sides = []
    made = {"a": (Installed(), plan.build, plan.cpubench), "b": (other, told["build"], told["cpubench"])}
    for label, (where, built, version) in made.items():
        mark = Label(pair=pair, label=label, settings=where.settings)  # type: ignore[arg-type]
        own = msgspec.structs.replace(plan, id=secrets.token_hex(8), build=built, cpubench=version, side=mark)
        sides.append(Side(folder / label, own, where))
    _check_work(plan, told, prefix)
    return sides


def resumed_sides(folder: Path, load: Any) -> list[Side]:
    """The sides of a folder that holds some; ``load`` gives the plan of a file."""
    turns = folder / TURNS
    if not turns.exists():
        return at_levels(folder, load(folder / "plan.json"))
    try:
        told = parse(read(turns))
        prefix, settings = told["prefix"], {str(k): str(v) for k, v in told["settings"].items()}
    except (UsageError, KeyError, TypeError, AttributeError):
        raise UsageError("turns", "is not what run --ab wrote", str(turns)) from None
    plans = {label: load(folder / label / "plan.json") for label in "ab"}
    other, told = _installed(None if prefix is None else Path(prefix), settings)
    if plans["b"].build != told["build"]:
        raise UsageError("resume", "the other build is no longer the one that was measured: start anew", str(folder))
    planned = plans["b"].side.settings if plans["b"].side is not None else {}
    if settings != planned:
        text = f"its settings {settings} are not those of the plan, {planned}"
        raise UsageError("turns", shown(text, 200), str(turns))
    _check_differ(settings)
    return [Side(folder / "a", plans["a"]), Side(folder / "b", plans["b"], other)]


def turns_document(prefix: Path | None, settings: dict[str, str]) -> Json:
    """What ``turns.json`` holds."""
    return {"prefix": None if prefix is None else str(prefix.absolute()), "settings": settings}


def settings_of(texts: list[str] | tuple[str, ...]) -> dict[str, str]:
    """The variables of NAME=VALUE texts, as a person wrote them."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name) or "\0" in text:
            raise UsageError("usage", f"'{shown(text, 60)}' is not like NAME=VALUE", "--ab-set")
        if name.startswith("PYTHON"):
            raise UsageError("usage", f"{shown(name, 40)} does not reach the processes that measure", "--ab-set")
        check_text(text, "usage", "--ab-set")
        found[name] = value
    _check_differ(found)
    return found


def _check_differ(settings: dict[str, str]) -> None:
    """UsageError where side A has a setting of side B already, in the environment of this process."""
    for name, value in settings.items():
        if os.environ.get(name) == value:
            text = f"{shown(name, 40)} has that value already: both sides would be alike"
            raise UsageError("usage", text, "--ab-set")


def _installed(prefix: Path | None, settings: dict[str, str]) -> tuple[Installed, Json]:
    """Another build, and what it says of itself."""
    if prefix is None:
        versions = {kernel["name"]: kernel["version"] for kernel in _native.kernels(hidden=True)}
        own = Installed(settings=settings)
        return own, {"suite": SUITE_VERSION, "build": build.build(), "versions": versions,
                     "cpubench": build.imported()["cpubench"]}  # fmt: skip
    check_text(str(prefix), "ab", "--ab")
    python = prefix / "bin" / "python"
    if not python.exists():
        raise UsageError("ab", "is no prefix of a cpubench: it has no bin/python", str(prefix))
    try:
        done = subprocess.run(
            [str(python.absolute()), "-I", "-c", TELL], capture_output=True, text=True, errors="replace", check=False,
            timeout=ASK_S, stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        told = json.loads(done.stdout)
        found = Installed(str(python.absolute()), Path(told["packages"]), settings)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        lines = done.stderr.strip().splitlines() if isinstance(error, ValueError) else [str(error)]
        why = shown(lines[-1] if lines else "says nothing", 200)
        raise UsageError("ab", f"holds no cpubench that can take turns with this one: {why}", str(prefix)) from None
    return found, told


def _check_work(plan: Plan, told: Json, prefix: Path | None) -> None:
    """UsageError where another build means other work: another suite, or another version of a kernel of the plan."""
    where = sys.prefix if prefix is None else str(prefix)
    if told["suite"] != plan.suite:
        raise UsageError("suite", f"measures suite {told['suite']}, this build suite {plan.suite}", where)
    for name, version in {v.kernel: v.version for v in plan.variants}.items():
        there = told["versions"].get(name)
        if there != version:
            has = "does not have" if there is None else f"has version {there} of"
            raise UsageError("version", f"{has} {name}, which is version {version} here: that is other work", where)
