"""Figures of power and caps, from the ``power`` of candidates, which is that of a score.

Watts of another scope or another kind are another quantity: a figure shows those of one (``Kind``). Levels whose cap
was not shown to hold are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import Drawing, axes_of, drawn, label, look
from cpubench.report.html.words import interval
from cpubench.report.terminal import points
from cpubench.results.states import CLAIMED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
Kind = tuple[str, str]  # scope and provenance of watts
Levels = dict[int, list[Json]]  # by the position of their candidate
NO_METER = "no run read a meter (`cpubench run --meter auto`, where `power probe` finds one)"


def kinds(candidates: Sequence[Json]) -> list[Kind]:
    """The scopes and kinds of watts that candidates have, in their order."""
    every = [one["power"] for one in candidates if one["power"] is not None and one["power"]["meter"]]
    return list(dict.fromkeys((str(power["scope"]), str(power["provenance"])) for power in every))


def _of(kind: Kind) -> str:
    return f"watts of {label(kind[0], 30)}, {label(kind[1], 20)}"


def _levels(candidates: Sequence[Json], kind: Kind) -> tuple[Levels, int]:
    """The levels that can be drawn, by rising points per core, and how many are left out for their cap."""
    found: Levels = {}
    out = 0
    for at, one in enumerate(candidates):
        power = one["power"]
        if power is None or not power["meter"] or (power["scope"], power["provenance"]) != kind:
            continue
        out += sum(level["state"] not in CLAIMED for level in power["levels"])
        own = [level for level in power["levels"] if level["state"] in CLAIMED and _there(level)]
        if own:
            found[at] = sorted(own, key=lambda level: level["per_core"]["value"])
    return found, out


def _there(level: Json) -> bool:
    return all(level[key]["value"] is not None for key in ("per_core", "per_watt", "watts"))


def _out(count: int) -> str:
    which = "1 level is left out: its cap was" if count == 1 else f"{count} levels are left out: their caps were"
    return f" {which} not shown to hold and bind." if count else ""


def front(spots: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats in both directions, by falling first coordinate."""
    made: list[tuple[float, float]] = []
    for x, y in sorted(spots, key=lambda spot: (-spot[0], -spot[1])):
        if not made or y > made[-1][1]:
            made.append((x, y))
    return made


def _errors(own: Sequence[Json], key: str) -> list[list[float]] | None:
    """How far the ends of the intervals are from the values; None where one has none."""
    if any(level[key]["low"] is None for level in own):
        return None
    return [[level[key]["value"] - level[key]["low"] for level in own],
            [level[key]["high"] - level[key]["value"] for level in own]]  # fmt: skip


def pareto(candidates: Sequence[Json], kind: Kind, name: str = "pareto") -> Drawing:
    """Points per core against points per watt of every candidate at every cap, and the line that none goes beyond."""
    title = f"Per core against per watt ({_of(kind)})"
    levels, out = _levels(candidates, kind)
    if not levels:
        return Drawing(name, title, reason=f"no level has points per core and per watt.{_out(out)}".rstrip("."))
    spots = [(level["per_core"]["value"], level["per_watt"]["value"]) for own in levels.values() for level in own]
    edge = front(spots)
    finding = (
        f"{len(edge)} of {len(spots)} settings are beaten by no other in both points per core and points per watt."
        f"{_out(out)}"
    )
    rows = [[candidates[at]["label"], label(level["level"]), points(level["per_core"]["value"]),
             interval(level["per_core"]), points(level["per_watt"]["value"]), interval(level["per_watt"])]
            for at, own in levels.items() for level in own]  # fmt: skip

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, own in levels.items():
            x, y = ([level[key]["value"] for level in own] for key in ("per_core", "per_watt"))
            one, kind = candidates[at], look(at)
            axes.errorbar(x, y, xerr=_errors(own, "per_core"), yerr=_errors(own, "per_watt"), fmt="none",
                          ecolor=kind["color"], elinewidth=0.9)  # fmt: skip
            axes.plot(x, y, markersize=6, linewidth=1, label=f"{one['label']}  {label(one['title'])}", **kind)
            for level in own:
                axes.annotate(label(level["level"], 12), (level["per_core"]["value"], level["per_watt"]["value"]),
                              xytext=(6, 5), textcoords="offset points")  # fmt: skip
        if len(edge) > 1:
            axes.step([x for x, _ in edge], [y for _, y in edge], where="post", color="#000000", linewidth=1.1,
                      linestyle=":", label="not beaten")  # fmt: skip
        axes.margins(0.12)
        axes.set_xlabel("points per core in windows")
        axes.set_ylabel("points per watt")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.8), draw)
    heads = ["candidate", "level", ">per core", "95 % interval", ">per watt", "95 % interval"]
    return Drawing(name, title, finding, heads, rows, svg)


def power_curve(candidates: Sequence[Json], kind: Kind, name: str = "power-curve") -> Drawing:
    """Points per core over the watts that were drawn at each cap; idle is where the curve stands at no work."""
    title = f"Work over watts, with idle ({_of(kind)})"
    levels, out = _levels(candidates, kind)
    if not levels:
        return Drawing(name, title, reason=f"no level has points per core and watts.{_out(out)}".rstrip("."))
    watts = [level["watts"]["value"] for own in levels.values() for level in own]
    idle = {at: idle_w(candidates[at]["power"]) for at in levels}
    known = [value for value in idle.values() if value is not None]
    least, most = (f"{end(known, default=0):.4g}" for end in (min, max))
    rest = f"; at rest {least}{'' if least == most else f' to {most}'} W" if known else "; power at rest is not known"
    finding = f"{len(watts)} settings between {min(watts):.4g} and {max(watts):.4g} W{rest}.{_out(out)}"
    rows = [[candidates[at]["label"], label(level["level"]), f"{level['watts']['value']:.4g}",
             points(level["per_core"]["value"])] for at, own in levels.items() for level in own]  # fmt: skip
    rows += [[candidates[at]["label"], "idle", f"{value:.4g}", "0"] for at, value in idle.items() if value is not None]

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, own in levels.items():
            spots = sorted((level["watts"]["value"], level["per_core"]["value"]) for level in own)
            kind, one = look(at), candidates[at]
            axes.plot([x for x, _ in spots], [y for _, y in spots], markersize=5, linewidth=1.4,
                      label=f"{one['label']}  {label(one['title'])}", **kind)  # fmt: skip
            rest_w = idle[at]
            if rest_w is not None:
                axes.plot([rest_w], [0], marker=kind["marker"], color=kind["color"], fillstyle="none", markersize=8,
                          clip_on=False)  # fmt: skip
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("watts drawn (hollow: at rest)")
        axes.set_ylabel("points per core in windows")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.4), draw)
    return Drawing(name, title, finding, ["candidate", "level", ">watts", ">points per core"], rows, svg)


def idle_w(power: Json) -> float | None:
    """The mean power at rest, of before and after the passes."""
    there = [watts for key in ("before_watts", "after_watts") if (watts := power["idle"][key]) is not None]
    return sum(there) / len(there) if there else None
