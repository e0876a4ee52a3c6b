"""Figures whose data no run holds yet, and those of large hosts: from made-up data of the documented shape."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from cpubench.report.html.figures.draw import Drawing, drawn
from cpubench.report.html.figures.matrix import matrix
from cpubench.report.html.figures.phases import phases
from cpubench.report.html.figures.power import front, pareto, power_curve


def q(value: float | None) -> dict[str, Any]:
    ends = {} if value is None else {"low": 0.98 * value, "high": 1.02 * value}
    return {"value": value, "low": None, "high": None, "passes": 16, "reason": None, **ends}


def capped(label: str, scale: float, source: str = "rapl", valid: bool = True) -> dict[str, Any]:
    levels = [
        {"cap": cap, "cap_w": watts, "watts": q(watts), "per_core": q(scale * watts**0.5 * 60),
         "per_watt": q(scale * 60 / watts**0.5), "valid": valid or cap == "as-is"}
        for cap, watts in (("150W", 148.0), ("250W", 247.0), ("as-is", 310.0))
    ]  # fmt: skip
    power = {"source": source, "scope": "package", "idle_w": q(90.0), "levels": levels}
    return {"label": label, "title": f"host {label}", "power": power, "tasks": None}


def texts(figure: Drawing) -> str:
    return " ".join(element.text or "" for element in ElementTree.fromstring(figure.svg).iter())


def test_the_front_holds_what_no_other_beats_in_both() -> None:
    assert front([(1, 9), (5, 5), (4, 4), (9, 1), (9, 0.5), (1, 8)]) == [(9, 1), (5, 5), (1, 9)]
    assert front([]) == []


def test_pareto_and_power_curve_show_every_level_and_idle() -> None:
    two = [capped("A", 1.0), capped("B", 1.1)]
    made = pareto(two)
    assert made.finding.startswith("3 of 6 settings")
    assert [row[:2] for row in made.rows[:3]] == [["A", "150W"], ["A", "250W"], ["A", "as-is"]]
    assert "as-is" in texts(made)
    curve = power_curve(two)
    assert ["A", "idle", "90", "0"] in curve.rows
    assert len(curve.rows) == 8


def test_a_cap_that_did_not_hold_is_left_out_and_sources_are_not_mixed() -> None:
    assert [row[1] for row in pareto([capped("A", 1.0, valid=False)]).rows] == ["as-is"]
    mixed = pareto([capped("A", 1.0), capped("B", 1.0, source="wall")])
    assert (mixed.svg, mixed.reason[:3]) == ("", "R4:")
    none = pareto([{"label": "A", "title": "x", "power": None, "tasks": None}])
    assert (none.svg, "meter" in none.reason) == ("", True)


def test_phases_are_stacked_and_what_is_missing_is_not_zero() -> None:
    task = {"task": "fix-a-bug", "phases": {"read": {"wall_s": q(2.0)}, "test": {"wall_s": q(None)}}}
    made = phases([{"label": "A", "title": "x", "tasks": [task], "power": None}])
    assert made.rows == [["A fix-a-bug", "read", "2"]]
    assert phases([{"label": "A", "title": "x", "tasks": None, "power": None}]).svg == ""


def test_a_matrix_of_a_large_host_is_small_and_keeps_its_range() -> None:
    lines = [(a, b, 50.0 + (a // 96 != b // 96) * 100) for a in range(192) for b in range(a + 1, 192)]
    made = matrix("lines-A", "A", lines)
    assert made.finding.startswith("18336 pairs of 192 CPUs: 50.0 ns to 150 ns")
    assert "2 neighbours share a cell" in made.finding
    assert len(made.svg) < 60_000  # one picture, not a rectangle for each pair
    few = matrix("lines-B", "B", [(0, 1, 79.3)])
    assert "79.3" in texts(few)
    assert few.finding.startswith("1 pair of 2 CPUs")


def test_ids_of_a_figure_begin_with_its_name_and_text_is_no_formula() -> None:
    def draw(canvas: Any) -> None:
        axes = canvas.add_subplot()
        axes.plot([0, 1], [0, 1], marker="o")
        axes.set_title(r"$\frac{1}{ &<b>")

    svg = drawn("mine", "a", "b", (3, 2), draw)
    root = ElementTree.fromstring(svg)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert ids
    assert all(name is not None and name.startswith("mine-") for name in ids)
    assert r"$\frac{1}{ &<b>" in [element.text for element in root.iter()]
    assert svg == drawn("mine", "a", "b", (3, 2), draw)
