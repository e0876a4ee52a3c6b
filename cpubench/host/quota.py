"""A control group whose processes may use only so much CPU time: made for one measurement, and always removed.

cgroup v2 where its cpu controller is handed down to children, else v1. The name has the pid of its maker, by which the
next one finds what a SIGKILL left behind.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.cgroup import UNIFIED, own_groups
from cpubench.host.fact import ROOT, read_text

NAME = "cpubench-selftest-"
PERIOD_US = 100_000  # the kernel's own default
REMOVE_S = 3.0  # a process that was killed is in its group for some milliseconds more


@dataclass(frozen=True)
class Group:
    """A group that is there."""

    folder: Path

    @property
    def procs(self) -> Path:
        """The file that a process enters it by."""
        return self.folder / "cgroup.procs"

    def throttled(self) -> int | None:
        """Periods in which the quota was used up; None where that is not told."""
        rows = re.search(r"^nr_throttled (\d{1,18})$", read_text(self.folder, "cpu.stat").value or "", re.MULTILINE)
        return int(rows[1]) if rows else None


@contextmanager
def quota_group(cpus: float, root: Path = ROOT) -> Iterator[Group]:
    """An empty group that may use ``cpus`` seconds of CPU time in a second. OSError, which says why, where none can be
    made, or removed. Whatever is still in it at the end is killed."""
    try:
        yield _make(cpus, root)
    finally:
        sweep(root, own=True)  # by its name: an interrupt may have come before its maker knew of it


def sweep(root: Path = ROOT, own: bool = False) -> None:
    """Removes the groups of makers that live no more, or the one of this process. OSError where a group stays."""
    for parent in parents(root):
        for folder in sorted(parent.glob(f"{NAME}*")):
            pid = folder.name.removeprefix(NAME)
            mine = pid == str(os.getpid())
            if pid.isdecimal() and (mine if own else not mine and not (root / "proc" / pid).exists()):
                _remove(folder)


def parents(root: Path = ROOT) -> list[Path]:
    """The groups that a child with a quota can be made in: of v2 before v1, the own group before its ancestors."""
    found = []
    for controller, folder in own_groups([UNIFIED, "cpu"], root).folders:
        handed = read_text(root, f"{folder}/cgroup.subtree_control", 4096).value or ""
        if controller != UNIFIED or "cpu" in handed.split():
            found.append(root / folder)
    return found


def _make(cpus: float, root: Path) -> Group:
    problems = []
    for parent in parents(root):
        folder = parent / f"{NAME}{os.getpid()}"
        try:
            folder.mkdir()
            _limit(folder, cpus)
            return Group(folder)
        except OSError as error:
            problems.append(f"{error.filename or folder}: {error.strerror}")
            with suppress(OSError):
                folder.rmdir()
    raise OSError(errno.ENOTSUP, "; ".join(problems[:2]) or "no control group here hands the cpu controller down")


def _limit(folder: Path, cpus: float) -> None:
    quota_us = max(1000, round(cpus * PERIOD_US))  # less than a millisecond is refused
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
    else:
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(quota_us))


def _remove(folder: Path) -> None:
    """Nothing; removes an own group. Only what was started to be measured in it can be there."""
    end = time.monotonic() + REMOVE_S
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
            for pid in (read_text(folder, "cgroup.procs").value or "").split():
                with suppress(OSError):
                    if int(pid) > 1:  # 0 stands for a process that is not to be seen from here
                        os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.02)
