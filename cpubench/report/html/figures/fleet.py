"""Many units of one model: a dot each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import GREY, Drawing, axes_of, drawn, label, look, of_kind
from cpubench.report.html.words import interval
from cpubench.report.terminal import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]


def fleet(candidates: Sequence[Json], kind: tuple[str, str] | None = None, name: str = "fleet") -> Drawing:
    """One dot per unit, by CPU model and what it is counted per; the outermost of each are named. Two of one at least.

    Points per core, vcpu or granted CPU; with a ``kind``, which is scope and provenance, per watt of the units whose
    watts are of it.
    """
    measure = "per_core" if kind is None else "per_watt"
    models: dict[tuple[str, str], list[tuple[float, Json]]] = {}
    hosts: dict[tuple[str, str], set[object]] = {}
    for one in candidates:
        if kind is not None and (one["power"] is None or kind != (one["power"]["scope"], one["power"]["provenance"])):
            continue
        model = one["facts"]["CPU"] or "unknown CPU", one["score"]["divisor"]["kind"]
        value = one["score"]["headline"][measure]["value"]
        hosts.setdefault(model, set()).add(one["facts"]["host id"] or one["label"])
        if value is not None:
            models.setdefault(model, []).append((value, one))
    words = "points per watt" if kind else f"points per {label(' or '.join(dict.fromkeys(per for _, per in models)))}"
    title = f"Units of one model, {words} ({label(', '.join(kind), 60)})" if kind else "Units of one model"
    if max(map(len, hosts.values()), default=0) < 2 or not models:
        return Drawing(name, title, reason="no model has two units here")
    told = []
    for model, units in models.items():
        own = [value for value, _ in units]
        told.append(f"{len(units)} of {of_kind(*model)}: {points(min(own))} to {points(max(own))}")
    finding = f"{'; '.join(told)} {words}."
    rows = [[model, per, one["label"], one["title"], points(value), interval(one["score"]["headline"][measure])]
            for (model, per), units in models.items() for value, one in units]  # fmt: skip

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for place, units in enumerate(models.values()):
            ordered = sorted(units, key=lambda unit: unit[0])
            height = [place + 0.24 * ((7 * i) % 5 - 2) / 2 for i in range(len(ordered))]
            axes.plot([value for value, _ in ordered], height, linestyle="", alpha=0.8, markersize=6, marker="o",
                      color=look(place)["color"])  # fmt: skip
            for at in dict.fromkeys((0, len(ordered) - 1)):
                value, one = ordered[at]
                axes.annotate(one["label"], (value, height[at]), xytext=(0, 7), textcoords="offset points", ha="center",
                              color=GREY)  # fmt: skip
        axes.set_yticks(range(len(models)), [of_kind(*model, 28) for model in models])
        axes.set_ylim(len(models) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{words}, one dot per unit")

    svg = drawn(name, title, finding, (7.1, 1.1 + 0.8 * len(models)), draw)
    heads = ["model", "counted per", "unit", "host", ">points", "95 % interval"]
    return Drawing(name, title, finding, heads, rows, svg)
