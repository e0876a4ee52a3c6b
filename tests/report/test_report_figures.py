"""Figures of watts, tasks and large hosts, from made-up data of the documented shape."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from cpubench.report.html.figures.draw import Drawing, drawn
from cpubench.report.html.figures.matrix import matrix
from cpubench.report.html.figures.phases import phases
from cpubench.report.html.figures.power import front, kinds, pareto, power_curve


def q(value: float | None) -> dict[str, Any]:
    ends = {} if value is None else {"low": 0.98 * value, "high": 1.02 * value}
    return {"value": value, "low": None, "high": None, "passes": 16, "reason": None, **ends}


def capped(label: str, scale: float, scope: str = "package", state: str = "verified") -> dict[str, Any]:
    levels = [
        {"level": cap, "watts": q(watts), "per_core": q(scale * watts**0.5 * 60),
         "per_watt": q(scale * 60 / watts**0.5), "state": state if cap == "150W" else "verified"}
        for cap, watts in (("150W", 148.0), ("250W", 247.0), ("as-is", 310.0))
    ]  # fmt: skip
    power = {"meter": "m", "scope": scope, "provenance": "measured", "levels": levels,
             "idle": {"before_watts": 88.0, "after_watts": 92.0, "reason": None}}  # fmt: skip
    return {"label": label, "title": f"host {label}", "power": power, "tasks": []}


def texts(figure: Drawing) -> str:
    return " ".join(element.text or "" for element in ElementTree.fromstring(figure.svg).iter())


def test_the_front_holds_what_no_other_beats_in_both() -> None:
    assert front([(1, 9), (5, 5), (4, 4), (9, 1), (9, 0.5), (1, 8)]) == [(9, 1), (5, 5), (1, 9)]
    assert front([]) == []


def test_pareto_and_power_curve_show_every_level_and_idle() -> None:
    two = [capped("A", 1.0), capped("B", 1.1)]
    (kind,) = kinds(two)
    made = pareto(two, kind)
    assert made.finding.startswith("3 of 6 settings")
    assert [row[:2] for row in made.rows[:3]] == [["A", "150W"], ["A", "250W"], ["A", "as-is"]]
    assert "as-is" in texts(made)
    curve = power_curve(two, kind)
    assert ["A", "idle", "90", "0"] in curve.rows
    assert len(curve.rows) == 8


def test_a_cap_that_did_not_hold_is_left_out_and_scopes_are_not_mixed() -> None:
    package, wall = ("package", "measured"), ("wall", "measured")
    loose = pareto([capped("A", 1.0, state="over_cap")], package)
    assert [row[1] for row in loose.rows] == ["250W", "as-is"]
    assert loose.finding.endswith("1 level is left out: its cap was not shown to hold and bind.")
    mixed = [capped("A", 1.0), capped("B", 1.0, scope="wall"), {**capped("C", 1.0), "power": None}]
    assert kinds(mixed) == [package, wall]
    assert {row[0] for row in pareto(mixed, package).rows} == {"A"}
    assert {row[0] for row in power_curve(mixed, wall).rows} == {"B"}
    assert "not beaten" in texts(pareto(mixed, wall))


def test_phases_are_stacked_and_what_is_missing_is_not_zero() -> None:
    def of(task: str) -> dict[str, Any]:
        return {"task": task, "phases": {"read": {"wall_s": q(2.0)}, "test": {"wall_s": q(None)}}}

    tasks = [of("T0"), of("T1[a]"), of("T2[b]"), of("T4[agents=2]")]
    one = {"label": "A", "title": "x", "tasks": [{"tasks": []}, {"tasks": tasks}], "power": None}
    assert phases([one]).rows == [["A  T1[a]", "read", "2"]]
    assert phases([one], "T2").rows == [["A  T2[b]", "read", "2"]]
    assert phases([{"label": "A", "title": "x", "tasks": [], "power": None}]).svg == ""


def test_more_phases_than_colours_are_told_apart() -> None:
    parts = {f"phase{at}": {"wall_s": q(1.0 + at)} for at in range(20)}
    one = {"label": "A", "title": "x", "power": None, "tasks": [{"tasks": [{"task": "T1", "phases": parts}]}]}
    made = phases([one])
    assert len(made.rows) == 20
    assert all(f"phase{at}" in texts(made) for at in range(20))
    fills = re.findall(r'style="fill: (url\(#[^)]*\)); fill-opacity[^"]*"|style="fill: (url\(#[^)]*\))', made.svg)
    hatches = {one or other for one, other in fills}
    assert len(hatches) >= 8


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
