"""Kills runs under caps while they set a level, wait for it, measure a block, or give back.

A run is a fork with the program's own code and real blocks, on a tree of files; it notes what it is at in a file.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from power import kills, limit_trees

os.environ.setdefault("SHORT_PASSES", "60")  # more than any kill waits for
from hosts import short

from cpubench.measure import child, entering, folder, powered, runner
from cpubench.power import guardian, journal, registers, session

LOADED = (powered, runner)  # once, before the forks
AT = ("set", "settle", "run", "restore")
SPANS_S = dict(zip(AT, (0.006, 0.03, 0.25, 0.006), strict=True))  # about what each takes
MOST_WAIT_S, GONE_S = 60.0, 10.0
# A meter of another scope than the caps': blocks have a sampler beside them, and no load of seconds shows what caps do.
METER = "cmd:: {0}; while sleep 0.1; do echo $(date +%s.%N) 55; done"
TIMES = "settle=0.03,idle=0.2,uncapped=1,verify=1,total=0.4,least=0.05"


def run(root: Path, metered: bool) -> int:
    """The pid of a run under two caps, in a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        quiet = os.open(root / "said", os.O_RDWR | os.O_CREAT)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        _note(root)
        folder.host_lock = contextlib.nullcontext  # type: ignore[assignment]  # it measures nothing that anyone reads
        meter = METER.format(root) if metered else "none"
        caps = ["--cap", "300W", "--cap", "as-is", "--cap", "400W", "--root", str(root), "--meter", meter]
        own = ["--profile", "quick", "--copies", "cores", "--out", str(root / "r"), "--times", TIMES, "--budget", "9m"]
        code = short.main("lock_mutex[cs=200ns]@cores", ["run", *own, *caps])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _note(root: Path) -> None:
    """Writes what this process is at to the file ``at``: the place in AT, how often it was at each, the guardian."""
    file, counts = os.open(root / "at", os.O_RDWR), bytearray(len(AT))

    def noting(name: str, call: Callable[..., Any], guards: bool = False) -> Callable[..., Any]:
        at = AT.index(name)

        @wraps(call)
        def noted(*given: Any, **more: Any) -> Any:
            counts[at] = min(255, counts[at] + 1)
            os.pwrite(file, bytes([at, *counts]), 0)
            try:
                return call(*given, **more)
            finally:
                os.pwrite(file, bytes([len(AT)]), 0)

        return noted

    def started(*given: Any) -> guardian.Guardian:
        made = start(*given)
        os.pwrite(file, b"%9d" % made.pid, 1 + len(AT))
        return made

    start, guardian.start = guardian.start, started
    session.apply, session.give_back = noting("set", session.apply), noting("restore", session.give_back)
    entering.time = type("Clock", (), {"sleep": staticmethod(noting("settle", time.sleep))})  # type: ignore[assignment]
    child.run_child = noting("run", child.run_child)
    registers.Host.__init__.__defaults__ = (registers.ROOT, kills.slow_write, registers._ioctl)


def kill(root: Path, way: str, seed: int) -> dict[str, object]:
    """One run, killed at a random moment: what it was at, and the seconds until everything was as before."""
    rng = random.Random(seed)
    wanted, nth = (seed + seed // len(kills.WAYS)) % len(AT), rng.randrange(1, 5)
    for window in limit_trees.xeon(root).glob(f"{limit_trees.POWERCAP}/*/constraint_*_time_window_us"):
        window.write_text("1000\n")  # or a level has five seconds to settle
    (root / "at").write_bytes(bytes([len(AT)] + [0] * len(AT)) + b" " * 9)
    before = limit_trees.limits(root)
    pid, began = run(root, metered=bool(rng.randrange(2))), time.monotonic()
    while (root / "at").read_bytes()[1 + wanted] < nth:
        time.sleep(0.0005)
        if time.monotonic() - began > MOST_WAIT_S or os.waitpid(pid, os.WNOHANG)[0]:
            raise RuntimeError(f"the run came to no kill: {(root / 'said').read_text()[-2000:]}")
    time.sleep(rng.random() * SPANS_S[AT[wanted]])
    at = (root / "at").read_bytes()
    changed = limit_trees.limits(root) != before
    began = time.monotonic()
    if way == "both":
        os.kill(pid, signal.SIGSTOP)  # or it would start another guardian, or dismiss this one, in between
        kills.kill_guardian(int((root / "at").read_bytes()[1 + len(AT) :].strip() or 0), pid)
    os.kill(pid, signal.SIGKILL if way == "both" else signal.Signals[way])
    if way == "both":
        _, status = os.waitpid(pid, 0)
        took = kills.next_start(root)
    else:
        given = kills.given_back(root, before)
        took = kills.seconds_until(given, began, 2 * kills.LIMIT_S)
        _, status = os.waitpid(pid, 0)
    ended = os.waitstatus_to_exitcode(status) == (130 if way in ("SIGTERM", "SIGINT") else -signal.SIGKILL)
    gone = kills.seconds_until(lambda: not _processes(str(root)), time.monotonic(), GONE_S) < GONE_S
    os.close(journal.lock(root))
    good = kills.given_back(root, before)() and took < kills.LIMIT_S and ended and gone
    phase = AT[at[0]] if at[0] < len(AT) else "between"
    return {"of": "run", "way": way, "phase": phase, "changed": changed, "took_s": took, "good": good}


def _processes(text: str) -> list[int]:
    """The other processes that have a text in their command line: blocks and meters of a run."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]
