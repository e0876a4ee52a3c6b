"""T0: nothing at all, started 20 times: what an empty shell and an empty interpreter cost on this host.

The breakdown of the other tasks takes it as the price of a start.
"""

from __future__ import annotations

from cpubench.tasks.steps import Place, Step

VERSION = 1
TIMES = 10


def steps(place: Place) -> list[Step]:
    made = []
    for number in range(TIMES):
        shell, python = (place.shell, "-c", ":"), (place.python, "-c", "pass")
        made.append(Step(f"shell.{number}", "shell", "env.setup", shell, pure=True, shells=1))
        made.append(Step(f"python.{number}", "python", "env.setup", python, pure=True, pythons=1))
    return made
