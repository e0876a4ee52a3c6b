"""The program with runs of seconds: ``python tests/hosts/short.py VARIANT[,VARIANT..] ARGUMENT..`` is ``cpubench
ARGUMENT..`` whose profile ``quick`` has two passes (SHORT_PASSES) of one sample, of 2 ms, of these variants alone."""

from __future__ import annotations

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as the program does, until it has its own

import dataclasses
import os
import sys
from typing import Any

from cpubench import entry
from cpubench.measure import profiles

PASSES = int(os.environ.get("SHORT_PASSES", "2"))
SAMPLE_NS = 2_000_000
QUICK = profiles.Profile(1, PASSES, PASSES, 20_000, 60 * 10**9, shown=False, strict=False)


def main(names: str, arguments: list[str]) -> int:
    """The exit code of the program."""
    for name in entry.THREADS:  # before numpy
        os.environ.setdefault(name, "1")
    try:
        from cpubench import recheck
        from cpubench.measure import draft, plan
    except ImportError:  # of the extension: what the program says of that
        return entry.main(arguments)

    def options(*given: Any, **named: Any) -> draft.Options:
        return dataclasses.replace(asked(*given, **named), keys=names.split(","))

    asked = draft.Options
    draft.Options = options  # type: ignore[assignment,misc]
    plan.SAMPLE_NS = recheck.SAMPLE_NS = SAMPLE_NS
    profiles.PROFILES["quick"] = QUICK
    return entry.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
