"""Edits files: ``edit.py replace FILE OLD NEW``, ``add FILE FROM``, ``patch DIR PATCH`` (a unified diff)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable


def write(name: str, text: str) -> None:
    """Through a temporary name, as editors do it."""
    with open(f"{name}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{name}.new", name)


def read(name: str) -> str:
    with open(name, encoding="utf-8") as file:
        return file.read()


def replace(name: str, old: str, new: str) -> str:
    text = read(name)
    if text.count(old) != 1:
        raise SystemExit(f"{name}: the text is there {text.count(old)} times, not once")
    write(name, text.replace(old, new))
    return f"replaced {len(old)} by {len(new)} characters"


def add(name: str, source: str) -> str:
    text = read(source)
    write(name, text)
    return f"wrote {len(text)} characters"


def patch(top: str, diff: str) -> str:
    """Applies each hunk where the diff says, and refuses one whose context is not there."""
    rows, hunks, name, lines, shift = read(diff).splitlines(keepends=True), 0, "", [""], 0
    at = 0
    while at < len(rows):
        head = re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", rows[at])
        if rows[at].startswith("+++ "):
            name, shift = os.path.join(top, rows[at][4:].split("\t")[0].strip().partition("/")[2]), 0
            lines = read(name).splitlines(keepends=True)
        at += 1
        if not head:
            continue
        start, length = int(head[1]) - 1 + shift, int(head[2] or 1)
        old, new = [], []
        while at < len(rows) and rows[at][0] in " +-" and not rows[at].startswith("--- "):
            old += [rows[at][1:]] if rows[at][0] in " -" else []
            new += [rows[at][1:]] if rows[at][0] in " +" else []
            at += 1
        if len(old) != length or lines[start : start + length] != old:
            raise SystemExit(f"{name}: hunk {hunks + 1} does not apply")
        lines[start : start + length] = new
        shift, hunks = shift + len(new) - len(old), hunks + 1
        write(name, "".join(lines))
    return f"applied {hunks} hunks"


KINDS: dict[str, Callable[..., str]] = {"replace": replace, "add": add, "patch": patch}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]](*sys.argv[2:]))
