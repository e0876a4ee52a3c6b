"""How a page of text is drawn on a stream: tables and sentences that fit, and nothing foreign that could be markup."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from cpubench.results.parse import shown

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

NARROWEST, WIDEST = 80, 120  # columns: below, numbers would lose digits; above, a row is hard to follow to its end


def console_of(out: IO[str]) -> Console:
    from rich.console import Console

    terminal = out.isatty()
    console = Console(
        file=out, force_terminal=terminal, force_jupyter=False, highlight=False, markup=False, emoji=False,
        # rich by itself leaves bold and dim in; who sets it wants plain text (no-color.org: any value but none).
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )  # fmt: skip
    console.width = max(NARROWEST, min(console.width, WIDEST)) if terminal else NARROWEST
    return console


def line(console: Console, text: object, style: str = "") -> Text:
    """Foreign text as it may be printed: no markup, no control characters, nothing that the stream cannot encode."""
    from rich.text import Text

    body = str(text)
    lead = "\n" if body.startswith("\n") else ""
    safe = shown(body.removeprefix("\n"), 2000)
    return Text(lead + safe.encode(console.encoding, "backslashreplace").decode(console.encoding), style=style)


def table_of(console: Console, *heads: str) -> Table:
    """A table whose heads with a leading ">" are numbers, never cut or folded; the first column takes what is left."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for number, head in enumerate(heads):
        right = head.startswith(">")
        name = line(console, head.removeprefix(">"))
        table.add_column(name, justify="right" if right else "left", no_wrap=bool(number), overflow="fold")
    return table


def pairs(console: Console, lines: Iterable[tuple[str, str]], width: int | None = None) -> None:
    """Nothing; writes names and sentences in two columns; a long sentence goes on below its own beginning."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(overflow="fold", min_width=width, max_width=40)
    table.add_column(overflow="fold")
    for name, sentence in lines:
        cells: list[RenderableType] = [line(console, name), line(console, sentence)]
        table.add_row(*cells)
    console.print(table)
