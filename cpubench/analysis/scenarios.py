"""Scenarios: how much each path and task weighs, and how much of an agent's work no family measures."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.files import canonical
from cpubench.results.parse import shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).parents[1] / "data" / "scenarios.toml"
WHOLE = 100.0
TOLERANCE = 0.01  # of a sum, for weights that were rounded
# The paths of agents' CPU work: what each is called, and the family of kernels that measures it.
PATHS: dict[str, tuple[str, str | None]] = {
    "M1": ("process creation", "spawn"), "M2": ("interpreter start", None), "M3": ("metadata", "file"),
    "M4": ("small files", "file"), "M5": ("trees of files", "file"), "M6": ("IPC", "switch"), "M7": ("locks", "lock"),
    "M8": ("bursts and scheduling", "switch"), "M9": ("memory", "memory"), "M10": ("interpreter", None),
    "M11": ("scan", None), "M12": ("network", None), "M13": ("database", None), "M14": ("sandbox", None),
    "M15": ("compile", None), "M16": ("codec", None), "M17": ("tokenising and vectors", None),
}  # fmt: skip
FAMILIES = tuple(dict.fromkeys(family for _, family in PATHS.values() if family))
TASKS = ("T1", "T1b", "T2", "T3", "T4", "T5", "T6")


@dataclass(frozen=True)
class Scenario:
    """Weights by family and by the name of an uncovered path, which follow from ``paths`` where there are some; and by
    task, None where it has no opinion on tasks. Only their proportions matter."""

    name: str
    source: str
    families: dict[str, float]
    uncovered: dict[str, float]
    paths: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, float] | None = None
    tasks_source: str = ""

    @property
    def sha256(self) -> str:
        """Hash of the weights alone: two scenarios that weigh alike have the same one, whatever they are called."""
        paths = {"paths": self.paths} if self.paths else {"families": self.families, "uncovered": self.uncovered}
        return hashlib.sha256(canonical({**paths, "tasks": self.tasks})).hexdigest()


def load_scenarios(path: Path = FILE) -> dict[str, Scenario]:
    """The scenarios of a table by name; by default those that are shipped."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError("scenarios", f"cannot be read: {shown(str(error), 120)}", shown(str(path), 120)) from None
    return {name: _scenario(name, table, path) for name, table in tables.items()}


def pick(scenarios: Mapping[str, Scenario], name: str) -> Scenario:
    """The scenario of that name."""
    if name not in scenarios:
        known = ", ".join(shown(one, 30) for one in scenarios)
        raise UsageError("scenario", f"the scenario '{shown(name, 40)}' is unknown; known are {known}", "--scenario")
    return scenarios[name]


def covers(scenario: Scenario, families: Collection[str]) -> float:
    """Share (0..1) of the scenario's path weight that ``families`` cover."""
    total = math.fsum(scenario.families.values()) + math.fsum(scenario.uncovered.values())
    return math.fsum(weight for family, weight in scenario.families.items() if family in families) / total


def of_paths(
    name: str, source: str, paths: Mapping[str, float], tasks: Mapping[str, float] | None, tasks_source: str = ""
) -> Scenario:
    """The scenario with these path weights: what they say of families, and of what no family measures."""
    families: dict[str, float] = {}
    uncovered: dict[str, float] = {}
    for path, (words, family) in PATHS.items():
        weight = paths.get(path, 0.0)
        if family and weight:
            families[family] = families.get(family, 0.0) + weight
        elif weight:
            uncovered[words] = weight
    own = None if tasks is None else dict(tasks)
    return Scenario(name, source, families, uncovered, dict(paths), own, tasks_source)


def weights_of(table: object, known: Collection[str], where: str) -> dict[str, float]:
    """The weights of a table from a file; they must be of ``known`` names and sum to 100."""
    if not isinstance(table, dict) or not table:
        raise UsageError("weights", f"must be a table of weights that sum to {WHOLE:g}", where)
    for name, weight in table.items():
        if name not in known:
            raise UsageError("weights", f"'{shown(str(name), 40)}' is none of {', '.join(known)}", where)
        # `type`, because TOML's true would count as 1; TOML knows nan and inf, too.
        if type(weight) not in (int, float) or not 0 <= weight <= WHOLE + TOLERANCE:
            raise UsageError("weights", f"the weight of {name} is no number from 0 to {WHOLE:g}", where)
    total = math.fsum(table.values())
    if abs(total - WHOLE) > TOLERANCE:
        raise UsageError("weights", f"sum to {total:.6g}, and not to {WHOLE:g}", where)
    return {name: float(weight) for name, weight in table.items()}


def _scenario(name: str, table: object, path: Path) -> Scenario:
    where = f"{shown(str(path), 120)}: {shown(name, 40)}"
    if not isinstance(table, dict):
        raise UsageError("scenarios", "is no table of a scenario", where)
    evidence, confidence = _texts(table.get("evidence", {})), str(table.get("confidence", "unknown"))
    source, of_tasks = (f"{evidence.get(key, 'no evidence')}; confidence {confidence}" for key in ("paths", "tasks"))
    tasks = None if "tasks" not in table else weights_of(table["tasks"], TASKS, f"{where}.tasks")
    if "families" in table:
        families = weights_of(table["families"], FAMILIES, f"{where}.families")
        return Scenario(name, source, families, {}, {}, tasks, of_tasks)
    return of_paths(name, source, weights_of(table.get("paths"), PATHS, f"{where}.paths"), tasks, of_tasks)


def _texts(value: Any) -> dict[str, str]:
    return {key: str(text) for key, text in value.items()} if isinstance(value, dict) else {}
