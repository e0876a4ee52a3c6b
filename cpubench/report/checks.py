"""The checks of a host as a person reads them: what to change stands below what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO

from cpubench.report.page import console_of, line

STYLES = {"ok": "green", "warn": "bold yellow", "unknown": "dim"}


def show_checks(checks: Sequence[Mapping[str, str]], out: IO[str]) -> None:
    """Nothing; writes one row for each check, and for those that are not ok what is wanted and how to have it."""
    from rich.table import Table

    console = console_of(out)
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        style = STYLES.get(check["status"], "")
        row = (line(console, check["status"], style), line(console, check["id"]), line(console, check["found"]))
        table.add_row(*row)
        if check["status"] != "ok":
            table.add_row("", "", line(console, f"wanted: {check['wanted']}"))
        if check["advice"]:
            table.add_row("", "", line(console, f"do: {check['advice']}"))
    console.print(table)
    counts = Counter(check["status"] for check in checks)
    warnings = f"{counts['warn']} warning{'' if counts['warn'] == 1 else 's'}"
    console.print(line(console, f"\n{counts['ok']} ok, {warnings}, {counts['unknown']} unknown; nothing was changed"))
