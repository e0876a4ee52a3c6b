"""The meter ``csv``, whose watts come after the run: meanwhile two clocks are read, so that they find their place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cpubench.power.channel import LATER, Log, Ties, now_ns

LOST = "to_merge: watts are to be merged"
TRIES = 5
# Of the difference of both clocks between two ties. A clock is pulled by 500 ppm at most (adjtimex(2)) and crystals are
# off by 100; what is beyond that was set. 5 ms are 0.5 % of the shortest window.
PULLED, SET_NS = 1e-3, 5_000_000


def tie(mono: Callable[[], int] = now_ns, unix: Callable[[], int] = time.time_ns) -> tuple[int, int]:
    """One moment on the clock of the samples and as Unix time, in ns: the try that nothing came between."""
    tries = []
    for _ in range(TRIES):
        before, at, after = mono(), unix(), mono()
        tries.append((after - before, (before + after) // 2, at))
    return min(tries)[1:]


class Clocks:
    """Stands where other meters have a sampler; it reads no watts."""

    def __init__(self) -> None:
        self._begun = tie()

    def begin(self) -> None:
        self._begun = tie()

    def mark(self) -> None: ...

    def end(self) -> Log:
        return Log(LATER, "", (), None, (), lost=LOST, clock=(self._begun, tie()))


def at_rest(seconds: float) -> Log:
    """The log of a while in which this process sleeps."""
    clocks = Clocks()
    time.sleep(seconds)
    return clocks.end()


def unix_of(ties: Ties, t_ns: int) -> int:
    """Unix time in ns of a moment on the clock of the samples, on the line through the first and the last tie."""
    (t0, u0), (t1, u1) = ties[0], ties[-1]
    return u0 + (t_ns - t0) * (u1 - u0) // (t1 - t0)


def mono_of(ties: Ties, unix_ns: int) -> int:
    """The inverse of ``unix_of``; 0 for what was before the clock of the samples began."""
    (t0, u0), (t1, u1) = ties[0], ties[-1]
    return max(0, t0 + (unix_ns - u0) * (t1 - t0) // (u1 - u0))


def was_set(ties: Sequence[tuple[int, int]]) -> str:
    """Why the ties are not of one clock that ran on, as "code: sentence"; "" where they are."""
    if len(ties) < 2 or ties[-1][0] <= ties[0][0]:
        return "clock_step: there are no two moments at which both clocks were read"
    passed_ns = ties[-1][0] - ties[0][0]
    moved_ns = ties[-1][1] - ties[0][1] - passed_ns
    if abs(moved_ns) > SET_NS + PULLED * passed_ns:
        return f"clock_step: the clock of this host was set by {moved_ns / 1e9:.3g} s meanwhile"
    return ""
