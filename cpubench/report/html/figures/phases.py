"""Task phases as stacked bars.

A candidate's ``tasks`` is None, or the ``tasks`` of what ``cpubench tasks run --json`` prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import COLOURS, HATCHES, Drawing, axes_of, drawn, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
NO_TASKS = "these runs hold no task results: `cpubench tasks` measures agent-level work"


def phases(candidates: Sequence[Json]) -> Drawing:
    """Wall seconds of each phase of each task, by candidate; phases without a value are left out of bar and table."""
    name, title = "phases", "Where the time of a task goes"
    bars = []
    for one in candidates:
        for task in one["tasks"] or []:
            parts = {phase: made["wall_s"]["value"] for phase, made in task["phases"].items()}
            bars.append(
                (f"{one['label']} {label(task['task'], 24)}", {p: s for p, s in parts.items() if s is not None})
            )
    names = list(dict.fromkeys(phase for _, parts in bars for phase in parts))
    if not names:
        return Drawing(name, title, reason=NO_TASKS)
    totals = [sum(parts.values()) for _, parts in bars]
    finding = f"{len(bars)} tasks of {min(totals):.3g} to {max(totals):.3g} s, in {len(names)} phases."
    rows = [[who, phase, f"{seconds:.3g}"] for who, parts in bars for phase, seconds in parts.items()]

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        left = [0.0] * len(bars)
        for at, phase in enumerate(names):
            lengths = [parts.get(phase, 0.0) for _, parts in bars]
            axes.barh(range(len(bars)), lengths, left=left, height=0.62, facecolor=COLOURS[at % 8] + "88",
                      edgecolor="#222222", linewidth=0.7, hatch=HATCHES[at % 8], label=label(phase, 24))  # fmt: skip
            left = [start + length for start, length in zip(left, lengths, strict=True)]
        axes.set_yticks(range(len(bars)), [who for who, _ in bars])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("seconds of wall time")
        canvas.legend(loc="outside upper left", ncols=4)

    svg = drawn(name, title, finding, (7.1, 1.2 + 0.42 * len(bars)), draw)
    return Drawing(name, title, finding, ["task", "phase", ">seconds"], rows, svg)
