"""Scenarios: how much each family weighs, and how much of an agent's work no family measures."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.results.parse import shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_WEIGHT = 1e9  # far above any share; sums stay finite
FILE = Path(__file__).parents[1] / "data" / "scenarios.toml"


@dataclass(frozen=True)
class Scenario:
    """Path weights by family and by uncovered path; only their proportions matter."""

    name: str
    source: str
    families: dict[str, float]
    uncovered: dict[str, float]


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


def _scenario(name: str, table: object, path: Path) -> Scenario:
    if isinstance(table, dict):
        families, uncovered = table.get("families"), table.get("uncovered", {})
        if isinstance(families, dict) and isinstance(uncovered, dict):
            weights = [*families.values(), *uncovered.values()]
            # `type`, because TOML's true would count as 1; TOML knows nan and inf, too.
            numbers = all(type(w) in (int, float) and 0 <= w <= MAX_WEIGHT for w in weights)
            if numbers and any(families.values()):
                return Scenario(name, str(table.get("source", "")), dict(families), dict(uncovered))
    text = f"the scenario '{shown(name, 40)}' needs families with weights from 0 to {MAX_WEIGHT:g}, not all 0"
    raise UsageError("scenarios", text, shown(str(path), 120))
