"""Figures of power and caps; runs hold no watts yet, so these wait for their data.

A candidate's ``power`` is None, or ``{"source", "scope", "idle_w": Q, "levels": [{"cap", "cap_w", "watts": Q,
"per_core": Q, "per_watt": Q, "valid"}]}``; Q as in a score. Levels
whose cap did not hold (``valid`` false) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import Drawing, axes_of, drawn, label, look
from cpubench.report.html.words import interval
from cpubench.report.terminal import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
NO_METER = "no run holds watts: runs use no meter yet"
NO_CAPS = "no run was made under a power cap"
MIXED = "R4: the candidates' watts are of different sources or scopes, and are not drawn together"


def _levels(candidates: Sequence[Json]) -> dict[int, list[Json]]:
    """The levels that hold and have both figures, by the position of their candidate."""
    found = {}
    for at, one in enumerate(candidates):
        levels = [level for level in (one["power"] or {}).get("levels", [])
                  if level["valid"] and level["per_core"]["value"] and level["per_watt"]["value"]]  # fmt: skip
        if levels:
            found[at] = levels
    return found


def _mixed(candidates: Sequence[Json]) -> bool:
    return len({(one["power"]["source"], one["power"]["scope"]) for one in candidates if one["power"]}) > 1


def front(spots: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats in both directions, by falling first coordinate."""
    made: list[tuple[float, float]] = []
    for x, y in sorted(spots, key=lambda spot: (-spot[0], -spot[1])):
        if not made or y > made[-1][1]:
            made.append((x, y))
    return made


def pareto(candidates: Sequence[Json]) -> Drawing:
    """Points per core against points per watt of every candidate at every cap, and the line that none goes beyond."""
    name, title = "pareto", "Per core against per watt"
    levels = _levels(candidates)
    if not levels or _mixed(candidates):
        return Drawing(name, title, reason=MIXED if levels else NO_METER)
    spots = [(level["per_core"]["value"], level["per_watt"]["value"]) for own in levels.values() for level in own]
    edge = front(spots)
    finding = (
        f"{len(edge)} of {len(spots)} settings are beaten by no other in both points per core and points per watt."
    )
    rows = [[candidates[at]["label"], label(level["cap"]), points(level["per_core"]["value"]),
             interval(level["per_core"]), points(level["per_watt"]["value"]), interval(level["per_watt"])]
            for at, own in levels.items() for level in own]  # fmt: skip

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, own in levels.items():
            x, y = ([level[key]["value"] for level in own] for key in ("per_core", "per_watt"))
            one = candidates[at]
            axes.plot(x, y, markersize=6, linewidth=1, label=f"{one['label']}  {label(one['title'])}", **look(at))
            for level in own:
                axes.annotate(label(level["cap"], 12), (level["per_core"]["value"], level["per_watt"]["value"]),
                              xytext=(5, 5), textcoords="offset points")  # fmt: skip
        axes.step([x for x, _ in edge], [y for _, y in edge], where="pre", color="#000000", linewidth=1.1,
                  linestyle=":", label="not beaten")  # fmt: skip
        axes.set_xlabel("points per core")
        axes.set_ylabel("points per watt")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.8), draw)
    heads = ["candidate", "cap", ">per core", "95 % interval", ">per watt", "95 % interval"]
    return Drawing(name, title, finding, heads, rows, svg)


def power_curve(candidates: Sequence[Json]) -> Drawing:
    """Points per core over the watts that were drawn at each cap; idle is where the curve stands at no work."""
    name, title = "power-curve", "Work over watts, with idle"
    levels = {at: [level for level in own if level["watts"]["value"]] for at, own in _levels(candidates).items()}
    levels = {at: own for at, own in levels.items() if own}
    if not levels or _mixed(candidates):
        return Drawing(name, title, reason=MIXED if levels else f"{NO_METER}; {NO_CAPS}")
    watts = [level["watts"]["value"] for own in levels.values() for level in own]
    finding = f"{len(watts)} settings between {min(watts):.4g} and {max(watts):.4g} W."
    rows = [[candidates[at]["label"], label(level["cap"]), f"{level['watts']['value']:.4g}",
             points(level["per_core"]["value"])] for at, own in levels.items() for level in own]  # fmt: skip
    idle: dict[int, Any] = {at: (candidates[at]["power"]["idle_w"] or {}).get("value") for at in levels}
    rows += [[candidates[at]["label"], "idle", f"{value:.4g}", "0"] for at, value in idle.items() if value is not None]

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, own in levels.items():
            spots = sorted((level["watts"]["value"], level["per_core"]["value"]) for level in own)
            kind, one = look(at), candidates[at]
            axes.plot([x for x, _ in spots], [y for _, y in spots], markersize=5, linewidth=1.4,
                      label=f"{one['label']}  {label(one['title'])}", **kind)  # fmt: skip
            if idle[at] is not None:
                axes.plot([idle[at]], [0], marker=kind["marker"], color=kind["color"], fillstyle="none", markersize=8,
                          clip_on=False)  # fmt: skip
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("watts (hollow: idle)")
        axes.set_ylabel("points per core")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.4), draw)
    return Drawing(name, title, finding, ["candidate", "cap", ">watts", ">points per core"], rows, svg)
