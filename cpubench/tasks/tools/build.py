"""A small make: ``build.py CC serial|parallel`` compiles what is older than its sources, here, and links ``run``.

It prints how many files it compiled; a compiler's complaint ends it with 1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def newest(name: str) -> int:
    """The newest change, in ns, of a source or of a header that it includes."""
    with open(name) as file:
        headers = INCLUDE.findall(file.read())
    return max([os.stat(name).st_mtime_ns, *(newest(header) for header in headers)])


def stale(source: str) -> bool:
    made = source[:-2] + ".o"
    return not os.path.exists(made) or os.stat(made).st_mtime_ns <= newest(source)


def compiled(cc: str, sources: list[str], at_once: int) -> bool:
    """Whether all could be compiled, so many at once."""
    running: list[subprocess.Popen[bytes]] = []
    good = True
    for source in [*sources, *[""] * at_once]:
        if len(running) == at_once or not source:
            good = not (running.pop(0).wait() if running else 0) and good
        if source:
            running.append(subprocess.Popen([cc, "-O2", "-c", source, "-o", source[:-2] + ".o"]))
    return good


def main(cc: str, way: str) -> int:
    every = sorted(name for name in os.listdir(".") if name.endswith(".c"))
    todo = [source for source in every if stale(source)]
    if not compiled(cc, todo, 1 if way == "serial" else len(os.sched_getaffinity(0))):
        return 1
    if todo and subprocess.run([cc, "-o", "run", *(source[:-2] + ".o" for source in every)]).returncode:
        return 1
    print(f"compiled {len(todo)} of {len(every)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
