"""Figures of points: bars with intervals, their passes, and the drift over a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import Drawing, axes_of, bar_look, drawn, label, look
from cpubench.report.html.words import interval, ratio
from cpubench.report.terminal import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
WHOLE = "whole"
MOST_POINTS = 50  # of a candidate: beyond that dots hide each other, and a box says more


def bars(candidates: Sequence[Json], reference: str) -> Drawing:
    """Points per core relative to the reference, by family in the order of the suite; never sorted by who wins."""
    name, title = "bars", "Per core, relative to the reference"
    groups: list[tuple[str, list[Json]]] = [(WHOLE, [one["score"]["headline"]["per_core"] for one in candidates])]
    for family in candidates[0]["score"]["families"]:
        groups.append((family, [one["score"]["families"][family]["per_core"] for one in candidates]))
    there = [made["value"] for _, row in groups for made in row if made["value"] is not None]
    if not there:
        return Drawing(name, title, reason="no family of any candidate has a figure")
    finding = (
        f"Between {ratio(min(there) / 1000)} and {ratio(max(there) / 1000)} times the reference {label(reference)}; "
        "whiskers are 95 % intervals."
    )
    rows = [[group, one["label"], ratio(made["value"] / 1000) if made["value"] else "-", interval(made, 1000)]
            for group, row in groups for one, made in zip(candidates, row, strict=True)]  # fmt: skip
    thick = 0.8 / len(candidates)

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, one in enumerate(candidates):
            for place, (_, row) in enumerate(groups):
                made = row[at]
                if made["value"] is None:
                    continue
                y, value = place + (at - (len(candidates) - 1) / 2) * thick, made["value"] / 1000
                error = None
                if made["low"] is not None:
                    error = [[value - made["low"] / 1000], [made["high"] / 1000 - value]]
                axes.barh(y, value, thick * 0.9, xerr=error, **bar_look(at),
                          error_kw={"elinewidth": 1.4, "capsize": 2.5, "ecolor": "#000000"},
                          label=f"{one['label']}  {label(one['title'])}" if not place else None)  # fmt: skip
        axes.axvline(1, color="#000000", linewidth=1.2, linestyle="--")
        axes.set_yticks(range(len(groups)), [group for group, _ in groups])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"times the reference {label(reference)} (dashed), higher is better")
        canvas.legend(loc="outside upper left", ncols=2 if len(candidates) < 5 else 3)

    height = 1.2 + len(groups) * max(0.42, 0.17 * len(candidates)) + 0.2 * len(candidates) / 2
    svg = drawn(name, title, finding, (7.1, height), draw)
    return Drawing(name, title, finding, ["path", "candidate", ">ratio", "95 % interval"], rows, svg)


def _series(candidates: Sequence[Json]) -> list[tuple[int, Json, Json, list[tuple[float, float]]]]:
    """(position of the candidate, it, a run, its hours and points): of every run that has complete passes."""
    found = []
    for at, one in enumerate(candidates):
        for run in one["runs"]:
            told = run["portrait"]
            pairs = [(hour, value) for hour, value in zip(told["hours"], told["per_core"], strict=False)
                     if value is not None]  # fmt: skip
            if pairs:
                found.append((at, one, run, pairs))
    return found


def _passes_table(series: Sequence[tuple[int, Json, Json, list[tuple[float, float]]]]) -> list[list[str]]:
    return [[one["label"], run["folder"], str(len(pairs)), points(min(v for _, v in pairs)),
             points(max(v for _, v in pairs))] for _, one, run, pairs in series]  # fmt: skip


HEADS = ["candidate", "run", ">passes", ">lowest", ">highest"]


def passes(candidates: Sequence[Json]) -> Drawing:
    """How the points of the passes lie: a box over their quartiles, and the passes themselves where they are few."""
    name, title = "passes", "Points of the passes"
    series = _series(candidates)
    if not series:
        return Drawing(name, title, reason="no run has complete passes")
    values = [value for *_, pairs in series for _, value in pairs]
    finding = f"{len(values)} passes between {points(min(values))} and {points(max(values))} points per core."

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for place, (at, _, _, pairs) in enumerate(series):
            own = [value for _, value in pairs]
            axes.boxplot([own], positions=[place], widths=0.5, orientation="horizontal", showfliers=len(own) > 50,
                         medianprops={"color": "#000000", "linewidth": 1.6})  # fmt: skip
            if len(own) <= MOST_POINTS:
                height = [place + 0.16 * ((7 * i) % 5 - 2) / 2 for i in range(len(own))]
                kind = look(at)
                axes.plot(own, height, linestyle="", marker=kind["marker"], markersize=4.5, color=kind["color"],
                          alpha=0.75)  # fmt: skip
        names = [f"{one['label']}  {label(run['folder'], 24)}" for _, one, run, _ in series]
        axes.set_yticks(range(len(series)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("points per core in one pass")

    svg = drawn(name, title, finding, (7.1, 0.9 + 0.55 * len(series)), draw)
    return Drawing(name, title, finding, HEADS, _passes_table(series), svg)


def drift(candidates: Sequence[Json]) -> Drawing:
    """The points of each pass in the order of the run: a slope is drift, a step something that happened."""
    name, title = "drift", "Points over the run"
    series = _series(candidates)
    if not series:
        return Drawing(name, title, reason="no run has complete passes")
    longest = max(pairs[-1][0] for *_, pairs in series)
    values = [value for *_, pairs in series for _, value in pairs]
    finding = f"Over up to {60 * longest:.3g} minutes, between {points(min(values))} and {points(max(values))} points."

    def draw(canvas: Canvas) -> None:
        axes, named = axes_of(canvas), set()
        for at, one, _, pairs in series:
            axes.plot([60 * hour for hour, _ in pairs], [value for _, value in pairs], markersize=4, linewidth=1.3,
                      label=None if at in named else f"{one['label']}  {label(one['title'])}", **look(at))  # fmt: skip
            named.add(at)
        axes.set_xlabel("minutes since the first pass of the run")
        axes.set_ylabel("points per core")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.2), draw)
    return Drawing(name, title, finding, HEADS, _passes_table(series), svg)
