"""A host as ``cpubench host`` tells it: what stays and what holds now, apart, with what is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cpubench.host.fact import ROOT
from cpubench.host.facts import collect, divisor, reasons_and_notes
from cpubench.host.volatile import volatile


def describe(root: Path = ROOT) -> dict[str, Any]:
    """``stable`` and ``volatile`` facts, ``reasons`` of each null among them, ``notes`` of what is doubtful."""
    stable, now = collect(root), volatile(root)
    reasons, notes = stable.pop("reasons"), stable.pop("notes")
    stable.pop("memory_bytes")  # a run stores it, because it decided what was planned
    doubts = reasons_and_notes(now)
    cores = len(stable["cores"] or ())
    kind, n = divisor(stable, cores) if cores else (None, None)
    if kind is None:
        reasons["divisor"] = "no core is known"
    return {
        "stable": {**stable, "divisor": None if kind is None else {"kind": kind, "n": n}},
        "volatile": {name: fact.value for name, fact in now.items()},
        "reasons": {**reasons, **doubts["reasons"]},
        "notes": {**{name: text for name, text in notes.items() if name != "memory_bytes"}, **doubts["notes"]},
    }
