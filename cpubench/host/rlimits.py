"""The limits of this process (getrlimit(2)) that bear on what can be measured."""

from __future__ import annotations

import re
from pathlib import Path

from cpubench.host.fact import ROOT, Fact, read_text

# Of proc/self/limits, with its units.
NAMES = {
    "Max open files": "open_files", "Max processes": "processes", "Max locked memory": "locked_memory_bytes",
    "Max address space": "address_space_bytes", "Max data size": "data_bytes", "Max stack size": "stack_bytes",
    "Max file size": "file_bytes", "Max cpu time": "cpu_s",
}  # fmt: skip

Limit = int | str  # a number, or "unlimited"


def parse_limits(text: str) -> dict[str, list[Limit]]:
    """[soft, hard] of each known limit, each a number or "unlimited"; lines of another form are left out."""
    found: dict[str, list[Limit]] = {}
    for line in text.splitlines():
        match = re.match(r"(Max [a-z ]+?)\s+(unlimited|[0-9]{1,20})\s+(unlimited|[0-9]{1,20})\b", line[:120])
        if match and match[1] in NAMES:
            # From 2**63 on no file, process or address space meets it, and a run file holds no such number.
            found[NAMES[match[1]]] = [
                int(value) if value != "unlimited" and int(value) < 1 << 63 else "unlimited"
                for value in match.groups()[1:]
            ]
    return found


def read_rlimits(root: Path = ROOT) -> Fact[dict[str, list[Limit]]]:
    """The limits of this process as [soft, hard]; ``reason`` names those that are not told."""
    text = read_text(root, "proc/self/limits", 1 << 16)
    if text.value is None:
        return Fact(None, text.reason)
    found = parse_limits(text.value)
    missing = [name for name in NAMES.values() if name not in found]
    told = f"/proc/self/limits: no {', '.join(missing)}" if missing else None
    return Fact(found, told) if found else Fact(None, told)
