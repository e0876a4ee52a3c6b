"""A process that outlives a capper that was killed, and gives its limits back."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.power import giveback, journal
from cpubench.power.registers import Host

TRIES, PAUSE_S = 3, 0.1
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)


@dataclass(frozen=True)
class Guardian:
    pid: int
    pipe: int  # its other side ends with this process


def start(host: Host, lock: int) -> Guardian:
    """A guardian of this process, which should have no threads of its own yet; it shares the lock until its own end.

    It sits in a session of its own, where neither Ctrl-C nor a kill of this process group reaches it.
    """
    kept, told = os.pipe()
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # until the child ignores them
    try:
        with warnings.catch_warnings():  # numpy has threads, which the child does not miss
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(kept)
        os.close(told)
        raise UsageError("guardian", f"no process to guard the limits: {error.strerror}; none was changed") from None
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(kept)
        return Guardian(pid, told)
    try:
        os.setsid()
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        _detach(kept, lock)
        if not _dismissed(kept, parent):
            _give_back(host)
    finally:
        os._exit(0)


def dismiss(guardian: Guardian) -> None:
    """Nothing; the guardian has ended without touching a limit."""
    with contextlib.suppress(OSError):  # it was killed
        os.write(guardian.pipe, b"q")
    os.close(guardian.pipe)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(guardian.pid, 0)


def lives(guardian: Guardian) -> bool:
    """Whether it still runs; one that was killed is reaped, and its pipe closed."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(guardian.pid, os.WNOHANG) == (0, 0):
            return True
    os.close(guardian.pipe)
    return False


def _detach(*kept: int) -> None:
    """Closes what the parent had open: a pipe of its output would never end, nor one that it feeds."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        if number not in kept:
            os.dup2(null, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in kept:
            with contextlib.suppress(OSError):  # the one that lists them
                os.close(number)
    with contextlib.suppress(OSError):  # not root: then no limit was written either
        Path("/proc/self/oom_score_adj").write_text("-1000")


def _dismissed(pipe: int, parent: int) -> bool:
    """Waits for a word of the parent, or for its end however that comes: True for the word.

    The pipe alone would not do where a process that the parent forked holds it open: the pidfd tells of the end itself.
    """
    watched = select.poll()
    watched.register(pipe, select.POLLIN)
    with contextlib.suppress(OSError, AttributeError):  # Linux before 5.3, or a seccomp filter
        watched.register(os.pidfd_open(parent), select.POLLIN)
    if os.getppid() == parent:
        watched.poll()
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(pipe, 1) == b"q"
    return False


def _give_back(host: Host) -> None:
    """Gives back what the journal on disk says, unless it says that the limits are to stay."""
    for _ in range(TRIES):
        left = journal.load(host.root)
        if left is None or left.kept or all(one.good for one in giveback.give_back(host, left)):
            return
        time.sleep(PAUSE_S)
