"""What changes from one minute to the next: it belongs to no machine, and is never stored with a run's stable facts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cpubench.host.fact import ROOT, Fact, read_text
from cpubench.host.limits import meminfo_bytes, pids_left, usable_memory_bytes


def volatile(root: Path = ROOT) -> dict[str, Fact[Any]]:
    """What holds now: bytes, seconds, tasks; each a value or a reason."""
    return {
        "memory_bytes": usable_memory_bytes(root),
        "memory_available_bytes": meminfo_bytes("MemAvailable", root),
        "swap_free_bytes": meminfo_bytes("SwapFree", root),
        "pids_left": pids_left(root),
        "load_1_5_15": _floats(root, "proc/loadavg", 3),
        "uptime_s": _first(_floats(root, "proc/uptime", 1)),
    }


def _floats(root: Path, name: str, n: int) -> Fact[list[float]]:
    """The numbers with which a file begins."""
    text = read_text(root, name, 4096)
    words = (text.value or "").split()[:n]
    if len(words) < n or not all(re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", word) for word in words):
        return Fact(None, text.reason or f"/{name}: not {n} numbers: {(text.value or '')[:40]!r}")
    return Fact([float(word) for word in words])


def _first(fact: Fact[list[float]]) -> Fact[float]:
    return Fact(fact.value[0] if fact.value else None, fact.reason)
