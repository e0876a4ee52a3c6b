"""The energy counter of a host of files advances while a process draws power, by a model of load and limit.

    python draw.py COUNTER LIMIT IDLE_W FREE_W PID

A process of its own: while the test computes, a thread of it gets the interpreter back 5 ms after each call, of which a
look at all processes has hundreds; the energy of that time came in the watch after it, 127 W at a rest of 40. It says
so once the counter moves, and ends with its standard input."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress

import psutil

LOADS = ("blake2b", "cpubench-copy")  # in the command lines of what draws power: the virus, the copies of a block


def draw(counter: str, limit: str, idle_w: float, free_w: float, pid: int) -> None:
    """``free_w`` while a process of ``pid`` is a load, ``idle_w`` without, and 97 % of the limit at most."""
    with suppress(OSError):  # not root: kernels at work on all CPUs would hold it up for a tenth of a short window
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    joules, last, looked, load = 0.0, time.monotonic(), 0.0, False
    file, asked = os.open(counter, os.O_WRONLY), os.open(limit, os.O_RDONLY)
    while not select.select([0], [], [], 0.005)[0]:
        now = time.monotonic()
        if not looked or now - looked > 0.05:
            load = _loaded(pid)
            if not looked:
                print("drawing", flush=True)
            looked = now
        watts = min(free_w if load else idle_w, 0.97 * int(os.pread(asked, 32, 0) or 0) / 1e6)
        joules, last = joules + watts * (now - last), now
        os.pwrite(file, f"{round(joules * 1e6):016d}\n".encode(), 0)


def _loaded(pid: int) -> bool:
    """Whether a process that ``pid`` started, or one of theirs, is a load."""
    for child in psutil.Process(pid).children(recursive=True):
        try:
            if any(word in " ".join(child.cmdline()) for word in LOADS):
                return True
        except psutil.Error:
            continue
    return False


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
