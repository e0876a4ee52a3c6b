"""Scenarios weigh families and say what no family covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpubench.analysis.scenarios import PATHS, Scenario, covers, load_scenarios, of_paths, pick
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


def test_path_weights_are_those_of_the_method() -> None:
    found = {name: scenario.paths for name, scenario in load_scenarios().items()}
    assert list(PATHS) == [f"M{number}" for number in range(1, 18)]
    assert found["chat"] == {"M10": 26, "M9": 8, "M8": 10, "M6": 4, "M7": 8, "M12": 28, "M13": 4, "M17": 12}
    assert found["coding"] == {
        "M10": 34, "M2": 14, "M3": 10, "M4": 8, "M5": 4, "M1": 5, "M9": 7, "M15": 6, "M16": 3, "M11": 3, "M8": 3,
        "M6": 2,
        "M7": 1,
    }  # fmt: skip
    assert found["tools"] == {
        "M10": 18, "M2": 14, "M3": 4, "M4": 8, "M1": 8, "M9": 3, "M11": 6, "M8": 2, "M6": 5, "M7": 2, "M12": 14,
        "M13": 16,
    }  # fmt: skip
    assert found["multitenant"] == {
        "M10": 10, "M2": 10, "M3": 7, "M4": 7, "M5": 8, "M1": 10, "M9": 10, "M8": 14, "M6": 2, "M7": 4, "M12": 2,
        "M14": 16,
    }  # fmt: skip
    assert load_scenarios()["coding"].families == {"spawn": 5, "file": 22, "switch": 5, "lock": 1, "memory": 7}


def test_the_hash_is_of_the_weights_alone() -> None:
    coding = load_scenarios()["coding"]
    assert of_paths("mine", "for no reason", coding.paths, coding.tasks).sha256 == coding.sha256
    assert len({scenario.sha256 for scenario in load_scenarios().values()}) == 5
    assert of_paths("coding", coding.source, coding.paths, None).sha256 != coding.sha256
    assert Scenario("a", "", {"file": 1.0}, {}).sha256 != Scenario("a", "", {"lock": 1.0}, {}).sha256


def test_unknown_scenario_lists_the_known() -> None:
    with pytest.raises(UsageError, match="'code' is unknown; known are equal, chat, coding, tools, multitenant"):
        pick(load_scenarios(), "code")


@pytest.mark.parametrize(
    "text",
    ["x = 1", "[x]\nfamilies = {file = -1}", "[x]\nfamilies = {file = nan}", "[x]\nfamilies = {file = true}",
     "[x]\nfamilies = {file = 1e308}", "[x]\nfamilies = {file = 1" + "0" * 400 + "}",
     "[x]\nfamilies = {file = 0}", "[x]", "[x", "[x]\npaths = {M1 = '100'}", "[x]\nfamilies = {file = 99}",
     "[x]\npaths = {M1 = 101, M2 = -1}", "[x]\npaths = {M18 = 100}", "[x]\npaths = {M1 = 100}\ntasks = {T1 = 1}",
     "[x]\npaths = {M1 = 100}\ntasks = 3"],
)  # fmt: skip
def test_broken_tables_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "weights.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"weights\.toml: "):
        load_scenarios(file)
