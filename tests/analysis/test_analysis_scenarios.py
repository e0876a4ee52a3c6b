"""Scenarios weigh families and say what no family covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpubench.analysis.scenarios import covers, load_scenarios, pick
from cpubench.errors import UsageError

FAMILIES = ("spawn", "file", "switch", "lock", "memory")


def test_shipped_weights_sum_to_100_and_cover_what_the_method_says() -> None:
    scenarios = load_scenarios()
    assert list(scenarios) == ["equal", "chat", "coding", "tools", "multitenant"]
    for scenario in scenarios.values():
        assert sum(scenario.families.values()) + sum(scenario.uncovered.values()) == 100
        assert set(scenario.families) <= set(FAMILIES)
        assert scenario.source
    shares = {name: covers(scenario, FAMILIES) for name, scenario in scenarios.items()}
    assert shares == pytest.approx({"equal": 1, "chat": 0.30, "coding": 0.40, "tools": 0.32, "multitenant": 0.62})
    assert covers(scenarios["coding"], ["file"]) == pytest.approx(0.22)
    assert covers(scenarios["equal"], []) == 0


def test_unknown_scenario_lists_the_known() -> None:
    with pytest.raises(UsageError, match="'code' is unknown; known are equal, chat, coding, tools, multitenant"):
        pick(load_scenarios(), "code")


@pytest.mark.parametrize(
    "text",
    ["x = 1", "[x]\nfamilies = {file = -1}", "[x]\nfamilies = {file = nan}", "[x]\nfamilies = {file = true}",
     "[x]\nfamilies = {file = 1e308}", "[x]\nfamilies = {file = 1" + "0" * 400 + "}",
     "[x]\nfamilies = {file = 0}", "[x]", "[x", "[x]\nfamilies = {file = 1}\nuncovered = {a = '1'}"],
)  # fmt: skip
def test_broken_tables_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "weights.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"weights\.toml: "):
        load_scenarios(file)
