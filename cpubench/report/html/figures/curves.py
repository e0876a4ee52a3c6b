"""Curves: latency over the working set, and the rate of one lock over threads with the scaling of families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.facts import cache_size
from cpubench.report.html.figures.draw import GREY, Drawing, axes_of, bar_look, drawn, label, look
from cpubench.report.html.words import interval, ratio
from cpubench.report.terminal import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]


def ladder(candidates: Sequence[Json], pages: str = "huge") -> Drawing:
    """Latency of a load by the size of the set, of one copy; dotted lines are the cache sizes that the host states."""
    name, title = f"ladder-{pages}", f"Latency over the working set, {pages} pages"
    sets = {at: dict(map(tuple, _latest(one)["ladder"].get(pages, []))) for at, one in enumerate(candidates)}
    sizes = sorted({size for own in sets.values() for size in own})
    if len(sizes) < 3:
        return Drawing(name, title, reason=f"fewer than three sizes were measured on {pages} pages")
    flat = [ns for own in sets.values() for ns in own.values()]
    finding = (
        f"From {amount(min(flat) * 1e-9, 's')} to {amount(max(flat) * 1e-9, 's')} a load, over sets from "
        f"{cache_size(sizes[0])} to {cache_size(sizes[-1])}."
    )
    rows = [[cache_size(size), *(amount(own[size] * 1e-9, "s") if size in own else "-" for own in sets.values())]
            for size in sizes]  # fmt: skip

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, own in sets.items():
            if own:
                one = candidates[at]
                axes.plot(sorted(own), [own[size] for size in sorted(own)], markersize=4.5, linewidth=1.5,
                          label=f"{one['label']}  {label(one['title'])}", **look(at))  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        told: dict[tuple[str, int], list[str]] = {}
        for one in candidates:
            for level, size in one["caches"]:
                if sizes[0] <= size <= sizes[-1]:
                    told.setdefault((level, size), []).append(one["label"])
        for (level, size), who in told.items():
            axes.axvline(size, color=GREY, linestyle=":", linewidth=1.1)
            text = label(level, 4) + ("" if len(who) == len(candidates) else f" {','.join(who)}")
            axes.annotate(text, (size, 0.98), xycoords=("data", "axes fraction"), xytext=(2, 0), color="#333333",
                          textcoords="offset points", va="top")  # fmt: skip
        every = [size for at, size in enumerate(sizes) if len(sizes) <= 9 or not at % 2]
        axes.set_xticks(every, [cache_size(size).replace("iB", "") for size in every])
        axes.minorticks_off()
        ticks = [
            ns for ns in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if 0.7 * min(flat) <= ns <= 1.4 * max(flat)
        ]
        axes.set_yticks(ticks, [str(ns) for ns in ticks])
        axes.set_xlabel("bytes of the set (log scale)")
        axes.set_ylabel("ns per load (log scale)")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.7), draw)
    return Drawing(name, title, finding, ["set", *(f">{one['label']}" for one in candidates)], rows, svg)


def _latest(one: Json) -> Json:
    """The portrait of the newest run of a candidate: curves are shown of one run, nothing is averaged over runs."""
    run = max(one["runs"], key=lambda run: run["created_utc"])
    told: Json = run["portrait"]
    return told


def efficiency(candidates: Sequence[Json]) -> Drawing:
    """Rate of a copy with copies on all cores over that of one copy alone, by family; 1 is perfect scaling."""
    name, title = "efficiency", "Scaling efficiency from one copy to all cores"
    families = list(candidates[0]["score"]["families"])
    made = {family: [one["score"]["families"][family]["scaling_efficiency"] for one in candidates]
            for family in families}  # fmt: skip
    there = [q["value"] for row in made.values() for q in row if q["value"] is not None]
    if not there:
        return Drawing(name, title, reason="no family was measured with one copy and on all cores")
    finding = f"Between {ratio(min(there))} and {ratio(max(there))}; 1 means that all cores at once do as well as one."
    rows = [[family, one["label"], f"{one['score']['divisor']['n']:g}", ratio(q["value"]), interval(q, 1)]
            for family, row in made.items() for one, q in zip(candidates, row, strict=True)]  # fmt: skip
    thick = 0.8 / len(candidates)

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, one in enumerate(candidates):
            for place, row in enumerate(made.values()):
                q = row[at]
                if q["value"] is None:
                    continue
                error = None if q["low"] is None else [[q["value"] - q["low"]], [q["high"] - q["value"]]]
                x = place + (at - (len(candidates) - 1) / 2) * thick
                axes.bar(x, q["value"], thick * 0.9, yerr=error, **bar_look(at),
                         error_kw={"elinewidth": 1.3, "capsize": 2.5},
                         label=None if place else f"{one['label']}  {one['score']['divisor']['n']:g} "
                                                  f"x {one['score']['divisor']['kind']}")  # fmt: skip
        axes.axhline(1, color="#000000", linewidth=1.2, linestyle="--")
        axes.set_xticks(range(len(families)), families)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("efficiency (1 = perfect)")
        canvas.legend(loc="outside upper left", ncols=3)

    svg = drawn(name, title, finding, (7.1, 3.0), draw)
    return Drawing(name, title, finding, ["family", "candidate", ">cores", ">efficiency", "95 % interval"], rows, svg)


def threads(candidates: Sequence[Json]) -> Drawing:
    """Operations per second of one lock that all threads want, over their number; dashed is what one thread does."""
    name, title = "threads", "One lock shared by all threads"
    curves = {at: [tuple(point) for point in _latest(one)["threads"]] for at, one in enumerate(candidates)}
    there = [point for curve in curves.values() for point in curve]
    if max((len(curve) for curve in curves.values()), default=0) < 2:
        return Drawing(name, title, reason="lock_all was not measured with two numbers of threads")
    best, worst = max(rate for _, rate in there), min(rate for _, rate in there)
    finding = (
        f"Together between {amount(worst, '/s')} and {amount(best, '/s')}, up to {max(n for n, _ in there)} threads."
    )
    counts = sorted({n for n, _ in there})
    rows = [[str(n), *(amount(dict(curve)[n], "/s") if n in dict(curve) else "-" for curve in curves.values())]
            for n in counts]  # fmt: skip

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        for at, curve in curves.items():
            if curve:
                one = candidates[at]
                axes.plot([n for n, _ in curve], [rate / 1e6 for _, rate in curve], markersize=5, linewidth=1.5,
                          label=f"{one['label']}  {label(one['title'])}", **look(at))  # fmt: skip
                axes.plot([curve[0][0], counts[-1]], [curve[0][1] / 1e6] * 2, color=look(at)["color"], linewidth=0.8,
                          linestyle="--")  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("threads (log scale)")
        axes.set_ylabel("million operations per second")
        canvas.legend(loc="outside upper left", ncols=2)

    svg = drawn(name, title, finding, (7.1, 3.0), draw)
    return Drawing(name, title, finding, [">threads", *(f">{one['label']}" for one in candidates)], rows, svg)
