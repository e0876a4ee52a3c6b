"""Looks around in a tree: ``look.py search PATTERN DIR``, ``find ENDING DIR``, ``list DIR``, ``read FILE FIRST LAST``.

The output is in the order of names and ends after 100 lines, as tools of agents do it; the last line counts all.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

MOST = 100  # lines; results of searches are 0.5 to 1 KB at the median and 30 KB at most
SKIPPED = {".venv", ".git", "__pycache__", "build"}


def walk(top: str) -> list[str]:
    found = []
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        found += [os.path.join(folder, name) for name in sorted(files)]
    return found


def search(pattern: str, top: str) -> list[str]:
    """Lines that match, with file and number, as grep -rn."""
    wanted, found, where = re.compile(pattern.encode()), [], 0
    for name in walk(top):
        with open(name, "rb") as file:
            data = file.read()
        if not wanted.search(data):
            continue
        where += 1
        for number, row in enumerate(data.splitlines(), 1):
            if wanted.search(row):
                found.append(f"{os.path.relpath(name, top)}:{number}:{row[:200].decode('utf-8', 'replace')}")
    return [*found[:MOST], f"{len(found)} lines in {where} files"]


def find(ending: str, top: str) -> list[str]:
    """Files whose names end so, with their sizes."""
    found = [f"{os.path.relpath(name, top)} {os.stat(name).st_size}" for name in walk(top) if name.endswith(ending)]
    return [*found[:MOST], f"{len(found)} files"]


def listing(top: str) -> list[str]:
    """What is in a folder, as ls."""
    rows = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(top))
    rows = [row for row in rows if row.rstrip("/") not in SKIPPED]
    return [*rows[:MOST], f"{len(rows)} entries"]


def read(name: str, first: str, last: str) -> list[str]:
    """Lines of a file with their numbers, as cat -n of a part."""
    with open(name, encoding="utf-8") as file:
        rows = file.read().splitlines()
    shown = rows[int(first) - 1 : int(last)]
    return [*(f"{number:6} {row}" for number, row in enumerate(shown, int(first))), f"{len(rows)} lines"]


KINDS: dict[str, Callable[..., list[str]]] = {"search": search, "find": find, "list": listing, "read": read}

if __name__ == "__main__":
    print("\n".join(KINDS[sys.argv[1]](*sys.argv[2:])))
