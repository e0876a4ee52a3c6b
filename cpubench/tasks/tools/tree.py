"""Copies, deletes and compares trees: ``tree.py copy FROM TO``, ``delete DIR``, ``manifest``/``status DIR FILE``.

Each prints one line of counts; ``status`` before it one line for each file that was added, changed or deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable

SKIPPED = {".venv", ".git", "__pycache__", "build"}


def files_below(top: str) -> list[str]:
    """The files of a tree by their relative names, sorted; without what git would ignore."""
    found = []
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in SKIPPED]
        found += [os.path.relpath(os.path.join(folder, name), top) for name in files]
    return sorted(found)


def hashes(top: str) -> dict[str, str]:
    """SHA-256 of each file of a tree, by its relative name."""
    made = {}
    for name in files_below(top):
        with open(os.path.join(top, name), "rb") as file:
            made[name] = hashlib.sha256(file.read()).hexdigest()
    return made


def copy(source: str, target: str) -> str:
    shutil.copytree(source, target)
    return f"copied {len(files_below(target))} files"


def delete(top: str) -> str:
    shutil.rmtree(top)
    return "deleted"


def manifest(top: str, out: str) -> str:
    made = hashes(top)
    with open(out, "w") as file:
        json.dump(made, file)
    return f"hashed {len(made)} files"


def status(top: str, before: str) -> str:
    with open(before) as file:
        old = json.load(file)
    new = hashes(top)
    changed = [f"A {name} {new[name]}" for name in new if name not in old]
    changed += [f"M {name} {new[name]}" for name in new if name in old and new[name] != old[name]]
    changed += [f"D {name}" for name in old if name not in new]
    return "\n".join([*sorted(changed), f"{len(changed)} of {len(new)} files differ"])


KINDS: dict[str, Callable[..., str]] = {"copy": copy, "delete": delete, "manifest": manifest, "status": status}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]](*sys.argv[2:]))
