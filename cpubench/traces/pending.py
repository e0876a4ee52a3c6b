"""Pairs and gaps: calls that wait for their answer, and the clock from one record to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

MOST = 100_000  # calls without an answer that are kept: sessions that were broken off leave some
# Names of calls as two vendors draw them, of 22 letters or more: no two calls have one. Others count them in a session.
DRAWN = re.compile(r"(toolu|call)(_bdrk|_vrtx)?_[A-Za-z0-9]{20,}")


class Call(NamedTuple):
    """A call without its answer: when it was made, what the trace holds of it, its step, and its command if known."""

    t: float | None
    record: Any
    step: int
    command: str = ""


class Pending:
    """Calls by their key until their answer comes; of very many without one the oldest are given up."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def put(self, key: str, call: Call) -> None:
        if len(self._calls) >= MOST:
            del self._calls[next(iter(self._calls))]
        self._calls[key] = call

    def take(self, key: str) -> Call | None:
        return self._calls.pop(key, None)

    def rest(self) -> Iterator[Call]:
        """Those that no answer came for."""
        yield from self._calls.values()


def between(began: float | None, ended: float | None) -> float | None:
    """Seconds from one time to a later one; None where one is not known, or time went back."""
    return None if began is None or ended is None or ended < began else ended - began


def call_key(name: object, t: float | None) -> str:
    """What tells a call from all others in all files, so that a copy of it has the same; "" where nothing does."""
    if not isinstance(name, str) or not name:
        return ""
    return name if DRAWN.fullmatch(name) else "" if t is None else f"{name} {t}"


class Clock:
    """The time of the last record of a session: what lies between two records belongs to whom the later one is of."""

    def __init__(self) -> None:
        self._last: float | None = None

    def set(self, t: float | None) -> None:
        self._last = self._last if t is None else t

    def move(self, t: float | None) -> tuple[float | None, float | None]:
        """When the gap before ``t`` began and how long it was; None where the trace does not say or time went back."""
        began, self._last = self._last, self._last if t is None else t
        return began, between(began, t)
