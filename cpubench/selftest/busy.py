"""A process that competes for a CPU: ``python -m cpubench.selftest.busy`` with the CPU, seconds, and the parent."""

from __future__ import annotations

import os
import sys
import time

from cpubench import _native


def compete(cpu: int, seconds: float, parent: int) -> None:
    """Nothing; keeps the CPU busy for so long, or until its parent ends. A line on stdout says when it begins."""
    _native.die_with(parent)
    os.sched_setaffinity(0, {cpu})
    print("busy", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10_000))


if __name__ == "__main__":
    compete(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
