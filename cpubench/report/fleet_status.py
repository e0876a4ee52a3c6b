"""The state of a fleet as a page: what is done, and one line for each failure of a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs

Json = Mapping[str, Any]


def show_status(doc: Json, out: IO[str]) -> None:
    """Nothing; writes how many runs are done, and what failed, by host: alike failures of a host are one line."""
    console = console_of(out)
    name = f"{doc['fleet']}, {doc['host']}" if doc["host"] else doc["fleet"]
    head = f"{name}: {doc['done']} of {doc['planned']} runs done, {doc['failed']} failed, {doc['missing']} missing"
    console.print(line(console, head, "bold"))
    if doc["failures"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in doc["failures"].items())
        console.print(line(console, f"failures: {kinds}\n"))
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in doc["rows"]:
        if row["class"]:
            text = row["text"].partition(": ")[2] if row["text"].startswith("not tried after ") else row["text"]
            found.setdefault((row["host"], row["class"], text), []).append(f"{row['cap']} repeat {row['repeat']}")
    lines = []
    for (host, kind, text), cells in sorted(found.items()):
        which = cells[0] if len(cells) == 1 else f"{len(cells)} runs"
        lines.append((host, f"{kind} ({which}): {text}"))
    pairs(console, lines)
