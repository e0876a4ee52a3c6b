"""Is the rest of the system time files? The calls of each task, counted by strace(1), at the prices of kernels.

``python tests/prediction_calls.py FILE`` prints a row for each task of tests/prediction.py, whose ``--keep`` wrote
FILE: what its calls on files come to at the prices of the kernels there, and what was taken for files. strace only
counts here: it makes a process several times slower.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import prediction

from cpubench.results.names import row_key
from cpubench.tasks import bugfix, toolmix

ROW = re.compile(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(\d+)?\s*(\w+)$")
LOOK = ["newfstatat", "stat", "lstat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"]
NAMES = [
    f"{verb}{at}"
    for verb in ("mkdir", "rmdir", "unlink", "rename", "symlink", "link", "chmod", "fchmod")
    for at in ("", "at", "at2")
]
# Of an operation: a rewritten file is opened, closed and written in 7 pieces; a folder and its file are 6 calls.
SHARES = {
    "look-ups": ("file_stat[miss]", 1.0), "opens": ("file_open_read", 1.0), "writes": ("file_rewrite", 1 / 8),
    "names": ("file_tempdir", 1 / 6),
}  # fmt: skip
Json = dict[str, Any]


def counted(text: str) -> tuple[Counter[str], Counter[str]]:
    """Calls and those that failed, by name, of the table of ``strace -c``."""
    calls, failed = Counter[str](), Counter[str]()
    for line in text.splitlines():
        found = ROW.match(line)
        if found and found[3] != "total":
            calls[found[3]] += int(found[1])
            failed[found[3]] += int(found[2] or 0)
    return calls, failed


def by_class(calls: Counter[str], failed: Counter[str]) -> dict[str, int]:
    """Calls on files by what prices them; an open that fails is a look-up."""
    opened = calls["openat"] + calls["open"]
    missed = failed["openat"] + failed["open"]
    return {
        "look-ups": sum(calls[name] for name in LOOK) + missed, "opens": opened - missed,
        "writes": calls["write"] + calls["pwrite64"], "names": sum(calls[name] for name in NAMES),
    }  # fmt: skip


def traced(spec: Json, folder: Path) -> tuple[Counter[str], Counter[str]]:
    """The calls of a task that is done once, each of its tools under strace."""
    from cpubench.tasks import agent

    tables = Path(tempfile.mkdtemp(dir=folder))

    def under(steps: list[Any]) -> list[Any]:
        lead = ("/usr/bin/strace", "-f", "-c", "-o")
        return [replace(step, argv=(*lead, f"{tables}/{at}", *step.argv)) if step.action in ("run", "start") else step
                for at, step in enumerate(steps)]  # fmt: skip

    whole = toolmix.steps, bugfix.steps
    toolmix.steps = lambda place, channel: under(prediction.shortened(whole[0](place, channel), channel))
    bugfix.steps = lambda *arguments: under(whole[1](*arguments))
    try:
        done = agent.work(spec, [], Path(tempfile.mkdtemp(dir=folder)), 0)
    finally:
        toolmix.steps, bugfix.steps = whole
    if done["failures"]:
        raise SystemExit(f"{spec['name']}: {done['failures'][0]}")
    calls, failed = Counter[str](), Counter[str]()
    for table in tables.iterdir():
        one, other = counted(table.read_text())
        calls, failed = calls + one, failed + other
    return calls, failed


def main(arguments: list[str]) -> None:
    kept = json.loads(Path(arguments[0]).read_text())["nothing"]
    ns = {what: share * kept["ns"][row_key(name, "1")] for what, (name, share) in SHARES.items()}
    taken = {one["task"]: sum(one["paths"][path] for path in ("meta", "small", "tree")) for one in kept["tasks"]}
    print(f"| task | all calls | {' | '.join(SHARES)} | come to, s | taken for files, s |")
    print(f"|---|{'--:|' * (len(SHARES) + 3)}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        made = prediction.bench(Path(folder), Path(folder))
        for name, spec in made.specs.items():
            calls, failed = traced(spec, Path(folder))
            classes = by_class(calls, failed)
            seconds = sum(classes[what] * ns[what] for what in SHARES) / 1e9
            cells = " | ".join(str(classes[what]) for what in SHARES)
            print(f"| `{name}` | {calls.total()} | {cells} | {seconds:.3f} | {taken[name]:.3f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
