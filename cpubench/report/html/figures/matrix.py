"""From core to core: how long a cache line takes between two CPUs, as a matrix in the order of their numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import Drawing, axes_of, drawn, label
from cpubench.report.terminal import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
Lines = Sequence[tuple[int, int, float]]
MOST = 128  # CPUs as cells; beyond that neighbours share one
PRINTED = 12  # CPUs up to which each cell has its number written in
SHOWN = 24  # rows of the table


def matrix(name: str, who: str, lines: Lines) -> Drawing:
    """The matrix of triples of two CPUs and ns; pairs that were not measured are blank, not guessed."""
    title = f"Core to core, {who}"
    cpus = sorted({cpu for a, b, _ in lines for cpu in (a, b)})
    if not lines:
        return Drawing(name, title, reason="no pair of CPUs was measured (lock_line)")
    step = math.ceil(len(cpus) / MOST)
    place = {cpu: at // step for at, cpu in enumerate(cpus)}
    cells: dict[tuple[int, int], list[float]] = {}
    for a, b, ns in lines:
        one, other = sorted((place[a], place[b]))
        cells.setdefault((one, other), []).append(ns)
    times = [ns for *_, ns in lines]
    grouped = f"; {step} neighbours share a cell, its median is drawn" if step > 1 else ""
    least, most, middle = (amount(end(times) * 1e-9, "s") for end in (min, max, median))
    pairs = "1 pair" if len(lines) == 1 else f"{len(lines)} pairs"
    finding = f"{pairs} of {len(cpus)} CPUs: {least} to {most}, median {middle}{grouped}."
    rows = [[str(a), str(b), amount(ns * 1e-9, "s")] for a, b, ns in sorted(lines, key=lambda one: -one[2])[:SHOWN]]
    size = max(place.values()) + 1
    grid = [[math.nan] * size for _ in range(size)]
    for (one, other), found in cells.items():
        grid[one][other] = grid[other][one] = median(found)

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        image = axes.imshow(grid, cmap="cividis", interpolation="nearest")
        axes.grid(visible=False)
        firsts = [cpus[at * step] for at in range(size)]
        every = range(0, size, max(1, math.ceil(size / 16)))
        axes.set_xticks(every, [str(firsts[at]) for at in every])
        axes.set_yticks(every, [str(firsts[at]) for at in every])
        axes.set_xlabel("CPU")
        axes.set_ylabel("CPU")
        if size <= PRINTED:
            middle = (min(times) + max(times)) / 2
            for y, line in enumerate(grid):
                for x, ns in enumerate(line):
                    if not math.isnan(ns):
                        colour = "#000000" if ns > middle else "#ffffff"
                        axes.text(x, y, f"{ns:.3g}", ha="center", va="center", color=colour)
        canvas.colorbar(image, ax=axes, label="ns per hand-over", shrink=0.8)

    width = 3.4 if size <= 4 else 5.2
    svg = drawn(name, title, finding, (width, width * 0.78), draw)
    return Drawing(name, title, finding, [">CPU", ">CPU", ">time"], rows, svg)


def matrices(candidates: Sequence[Json]) -> list[Drawing]:
    """A matrix per candidate, of its newest run."""
    made = []
    for one in candidates:
        run = max(one["runs"], key=lambda run: run["created_utc"])
        lines = [(int(a), int(b), float(ns)) for a, b, ns in run["portrait"]["lines"]]
        made.append(matrix(f"lines-{one['label']}", f"{one['label']} {label(one['title'])}", lines))
    return made
