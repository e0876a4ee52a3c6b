"""A host as a folder whose energy counter a thread of the test advances, by a model of load and limit."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from power import limit_trees, meter_trees

IDLE_W, FREE_W = 40.0, 150.0
ZONE = f"{limit_trees.POWERCAP}/intel-rapl:0"
LIMIT = f"{ZONE}/constraint_0_power_limit_uw"
LOADS = ("blake2b", "cpubench-copy")  # in the command lines of what draws power: the virus, the copies of a block


def host(root: Path) -> Path:
    """One package of 350 W whose limits act within a millisecond."""
    limit_trees.base(root, 1)
    limit_trees.zone(root, "intel-rapl:0", "package-0")
    meter_trees.packages(root, 0)
    for number in (0, 1):
        (root / f"{ZONE}/constraint_{number}_time_window_us").write_text("1000\n")
    (root / f"{ZONE}/max_energy_range_uj").write_text("262143328850\n")
    (root / f"{ZONE}/energy_uj").write_text(f"{0:016d}\n")
    return root


@contextmanager
def drawing(root: Path, loaded: Callable[[], bool] | None = None) -> Iterator[None]:
    """The host of ``root`` draws power meanwhile: 150 W under load, 40 W without, and 97 % of its limit at most."""
    over, until = threading.Event(), time.monotonic() + 10
    while loaded is None and _children_load() and time.monotonic() < until:  # of an earlier test, at its end
        time.sleep(0.05)
    thread = threading.Thread(target=_draw, args=(root, loaded or _children_load, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _draw(root: Path, loaded: Callable[[], bool], over: threading.Event) -> None:
    joules, last, looked, load = 0.0, time.monotonic(), 0.0, False
    file = os.open(root / f"{ZONE}/energy_uj", os.O_WRONLY)
    while not over.wait(0.005):
        now = time.monotonic()
        if now - looked > 0.05:
            looked, load = now, loaded()
        watts = min(FREE_W if load else IDLE_W, 0.97 * int((root / LIMIT).read_text() or 0) / 1e6)
        joules, last = joules + watts * (now - last), now
        os.pwrite(file, f"{round(joules * 1e6):016d}\n".encode(), 0)
    os.close(file)


def _children_load() -> bool:
    """Whether a process that this one started, or one of theirs, is a load."""
    for child in psutil.Process().children(recursive=True):
        try:
            if any(word in " ".join(child.cmdline()) for word in LOADS):
                return True
        except psutil.Error:
            continue
    return False
