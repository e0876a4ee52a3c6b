"""The rows of docs/validation.md, and how they are put into the page, whose rest is written by hand."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
BEGIN, END = "<!-- written by tests/validate.py -->", "<!-- end of what it writes -->"
OFF = 0.05  # of the ratio: a row that is off by more must be explained


class Taken(NamedTuple):
    """The medians of both sides, the ratio of each pair, and in how many of them other work took part."""

    kernel: float
    peer: float
    ratios: list[float]
    disturbed: int

    @property
    def distance(self) -> float:
        return abs(statistics.median(self.ratios) - 1)


class Row(NamedTuple):
    variant: str
    unit: str
    peer: str
    taken: Taken
    explained: str = ""


def spread(ratios: list[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def table(rows: list[Row]) -> str:
    head = "variant | unit | kernel | peer | peer's figure | ratio (middle half) | pairs | explained by"
    lines = [f"| {head} |", "|---|---|--:|---|--:|--:|--:|---|"]
    for row in rows:
        taken = row.taken
        words = row.explained or ("**nothing**" if taken.distance > OFF else "")
        pairs = f"{len(taken.ratios)}" + (f", disturbed {taken.disturbed}" if taken.disturbed else "")
        cells = [f"`{row.variant}`", row.unit, f"{taken.kernel:.5g}", row.peer, f"{taken.peer:.5g}"]
        lines.append(f"| {' | '.join([*cells, spread(taken.ratios), pairs, words])} |")
    return "\n".join(lines)


def write(text: str) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE.name}: the markers are gone")
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
