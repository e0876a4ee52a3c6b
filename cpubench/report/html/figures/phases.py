"""Task phases as stacked bars, of the newest run of tasks of each candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpubench.report.html.figures.draw import COLOURS, HATCHES, Drawing, axes_of, drawn, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Json = Mapping[str, Any]
NO_TASKS = "no run of tasks is beside these runs or was given (`cpubench tasks run`, `report --tasks`)"
WHOLE = ("T1", "T2")  # that are done from their first step to their last; T0 is the price of a start, T4 a window


def phases(candidates: Sequence[Json], task: str = WHOLE[0]) -> Drawing:
    """Wall seconds of each phase of the tasks of one kind, by candidate; what has no value is left out."""
    name, title = f"phases-{task}", f"Where the time of a task goes, {task}"
    bars: list[tuple[str, dict[str, float]]] = []
    for kind in dict.fromkeys(row["task"] for one in candidates for row in _rows(one, task)):
        for one in candidates:
            for row in (row for row in _rows(one, task) if row["task"] == kind):
                parts = {phase: made["wall_s"]["value"] for phase, made in row["phases"].items()}
                parts = {phase: seconds for phase, seconds in parts.items() if seconds is not None}
                if parts:
                    bars.append((f"{one['label']}  {label(kind, 26)}", parts))
    names = list(dict.fromkeys(phase for _, parts in bars for phase in parts))
    if not names:
        return Drawing(name, title, reason=f"no {task} was done")
    totals = [sum(parts.values()) for _, parts in bars]
    finding = f"{len(bars)} bars of {min(totals):.3g} to {max(totals):.3g} s, in {len(names)} phases."
    rows = [[who, phase, f"{seconds:.3g}"] for who, parts in bars for phase, seconds in parts.items()]

    def draw(canvas: Canvas) -> None:
        axes = axes_of(canvas)
        left = [0.0] * len(bars)
        for at, phase in enumerate(names):
            lengths = [parts.get(phase, 0.0) for _, parts in bars]
            # The second time around the colours come with other hatches.
            axes.barh(range(len(bars)), lengths, left=left, height=0.62, facecolor=COLOURS[at % 8] + "88",
                      edgecolor="#222222", linewidth=0.7, hatch=HATCHES[(at + 3 * (at // 8)) % 8],
                      label=label(phase, 24))  # fmt: skip
            left = [start + length for start, length in zip(left, lengths, strict=True)]
        axes.set_yticks(range(len(bars)), [who for who, _ in bars])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("seconds of wall time, shorter is better")
        canvas.legend(loc="outside upper left", ncols=5)

    svg = drawn(name, title, finding, (7.1, 1.4 + 0.42 * len(bars)), draw)
    return Drawing(name, title, finding, ["task", "phase", ">seconds"], rows, svg)


def _rows(one: Json, task: str) -> list[Json]:
    """The tasks of a kind in the newest run of tasks of a candidate."""
    newest = one["tasks"][-1]["tasks"] if one["tasks"] else []
    return [row for row in newest if str(row["task"]).partition("[")[0] == task]
