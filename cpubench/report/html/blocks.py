"""What a page is made of: sections of sentences, tables and drawings, as data; the template knows no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cpubench.report.html.figures.draw import Drawing

AT_ONCE = 4  # candidates beside each other in a table: as many as an A4 page is wide


@dataclass(frozen=True)
class Cell:
    """A cell that is marked, by a sign and bold, because it is not as in the other columns."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class Table:
    """``heads`` of numbers begin with ">"; the first column names its row."""

    name: str
    caption: str
    heads: list[str]
    rows: Sequence[Sequence[str | Cell]]
    folded: bool = False  # behind its caption, but in print
    lean: bool = False  # in print without passes and badges, for which the page is too narrow


@dataclass(frozen=True)
class Text:
    """Sentences: a paragraph, or a list."""

    sentences: list[str]
    bullets: bool = False


Block = Text | Table | Drawing


@dataclass(frozen=True)
class Section:
    name: str  # its id
    title: str
    blocks: list[Block] = field(default_factory=list)


def chunks(count: int, size: int = AT_ONCE) -> Iterator[range]:
    """Positions of candidates, ``size`` at most in each."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def plain(cell: str | Cell) -> str:
    """A cell's text without its mark."""
    return cell.text if isinstance(cell, Cell) else cell
