"""The limits of this process (getrlimit(2)) that bear on what can be measured."""

from __future__ import annotations

import re
from pathlib import Path

from cpubench.host.fact import ROOT, Fact, names_in, read_text

# Of proc/self/limits, with its units.
NAMES = {
    "Max open files": "open_files", "Max processes": "processes", "Max locked memory": "locked_memory_bytes",
    "Max address space": "address_space_bytes", "Max data size": "data_bytes", "Max stack size": "stack_bytes",
    "Max file size": "file_bytes", "Max cpu time": "cpu_s",
}  # fmt: skip

_EXEMPT = 1 << 24 | 1 << 21  # CAP_SYS_RESOURCE, CAP_SYS_ADMIN
_FIELDS = re.compile(r"^(Uid|CapEff|Threads):\t([0-9a-f]{1,16}\b.*)$", re.MULTILINE | re.ASCII)

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


def processes_left(root: Path = ROOT) -> Fact[int]:
    """Tasks that RLIMIT_NPROC lets this user still have; None where it does not hold for this process, or is not told.

    It counts the threads of all processes with the same real user, and holds neither for the host's root nor with
    CAP_SYS_RESOURCE or CAP_SYS_ADMIN there (copy_process() in kernel/fork.c).
    """
    limits, status = read_rlimits(root), _status(root, "self")
    soft = (limits.value or {}).get("processes", ["unlimited"])[0]
    if isinstance(soft, str) or not status:
        return Fact(None, limits.reason or "no limit of processes")
    whole_host = (read_text(root, "proc/self/uid_map", 4096).value or "").split() == ["0", "0", "4294967295"]
    user, capabilities = status.get("Uid", [""])[0], status.get("CapEff", ["0"])[0]
    if whole_host and (user == "0" or int(capabilities, 16) & _EXEMPT):
        return Fact(None, "the limit of processes does not hold for this process")
    used = 0
    for name in names_in(root, "proc").value or ():
        if name.isdecimal():
            other = _status(root, name)
            used += int(other.get("Threads", ["0"])[0]) if other.get("Uid", [None])[0] == user else 0
    return Fact(max(0, soft - used))


def _status(root: Path, pid: str) -> dict[str, list[str]]:
    """What the process says of its user, capabilities and threads; empty where it has ended or may not be read."""
    text = read_text(root, f"proc/{pid}/status", 1 << 16).value or ""
    return {name: words.split() for name, words in _FIELDS.findall(text)}
