"""Figures of a fleet: one dot per unit, in points by model, and against the median of its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from cpubench.report.fleet import level
from cpubench.report.html.figures.draw import COLOURS, GREY, Drawing, axes_of, drawn, label, of_kind
from cpubench.report.terminal import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
MOST_MODELS = 40  # lines that a page has room for
NAMED = 12  # odd units that a figure names
HEADS = ["model", "unit", "level", ">runs", ">points", ">to its median", "odd"]


def units(doc: Json, cap: str) -> list[Drawing]:
    """Both figures of one level; ``cap`` is its name with what it limits."""
    groups = {(one["model"], one["kind"]): one["median"] for one in doc["models"] if level(one) == cap}
    shown = dict(sorted(groups.items(), key=lambda item: -item[1])[:MOST_MODELS])
    dots = [one for one in doc["units"]
            if level(one) == cap and one["points"] and (one["model"], one["kind"]) in shown]  # fmt: skip
    odd = {one["unit"] for one in doc["odd"] if level(one) == cap}
    safe = "".join(c if c.isalnum() else "-" for c in cap)
    left = f" {len(groups) - len(shown)} models are not drawn." if len(groups) > len(shown) else ""
    if not dots:
        return [Drawing(f"units-{safe}", f"Units, {cap}", reason="no unit has points that may be published")]
    rows = [[of_kind(one["model"], one["kind"], 60), one["unit"], cap, str(one["runs"]),
             points(one["points"]), f"{_percent(one, shown):+.1f} %", "odd" if one["unit"] in odd else ""]
            for one in dots]  # fmt: skip
    low, high = min(one["points"] for one in dots), max(one["points"] for one in dots)
    away = [_percent(one, shown) for one in dots]
    per = f"points per {label(' or '.join(dict.fromkeys(kind for _, kind in shown)))}"
    absolute = f"{len(dots)} units of {len(shown)} models between {points(low)} and {points(high)} {per}.{left}"
    relative = f"Units lie between {min(away):+.1f} and {max(away):+.1f} % of the median of their model.{left}"
    odd_told = f" Odd for their model, larger and named here: {len(odd)}." if odd else ""
    return [
        _strip(f"units-{safe}", f"Units by model, {cap}", absolute + odd_told, f"{per}, one dot per unit",
               dots, list(shown), odd, rows, lambda one: float(one["points"])),
        _strip(f"against-{safe}", f"Units against their model, {cap}", relative + odd_told,
               "% off the median of the model, one dot per unit", dots, list(shown), odd, rows,
               lambda one: _percent(one, shown)),
    ]  # fmt: skip


def _percent(one: Json, medians: Mapping[tuple[str, str], float]) -> float:
    return 100 * (float(one["points"]) / medians[one["model"], one["kind"]] - 1)


def _strip(
    name: str, title: str, finding: str, axis: str, dots: Sequence[Json], models: Sequence[tuple[str, str]],
    odd: set[str], rows: list[list[str]], value: Callable[[Json], float],
) -> Drawing:  # fmt: skip
    places = {model: at for at, model in enumerate(models)}
    turns = {model: count() for model in models}
    heights = {id(one): places[key] + 0.28 * ((7 * next(turns[key]) + 5) % 11 - 5) / 5
               for one in dots for key in [(one["model"], one["kind"])]}  # fmt: skip

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for strange, size, marker in ((False, 4.5, "o"), (True, 7.5, "D")):
            some = [one for one in dots if (one["unit"] in odd) == strange]
            if not some:
                continue
            height = [heights[id(one)] for one in some]
            axes.plot([value(one) for one in some], height, linestyle="", marker=marker, markersize=size, alpha=0.75,
                      color=COLOURS[1 if strange else 0])  # fmt: skip
            for one, y in zip(some[:NAMED], height[:NAMED], strict=True) if strange else ():
                axes.annotate(label(one["unit"], 20), (value(one), y), xytext=(0, 7), textcoords="offset points",
                              ha="center", color=GREY)  # fmt: skip
        axes.set_yticks(range(len(models)), [of_kind(*model, 28) for model in models])
        axes.set_ylim(len(models) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(axis)

    svg = drawn(name, title, finding, (7.1, 1.1 + 0.5 * len(models)), draw)
    return Drawing(name, title, finding, HEADS, rows, svg)
