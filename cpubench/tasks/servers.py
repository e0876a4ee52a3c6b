"""Servers of tools as an agent holds them: their pipes, their lines, and what they say that they used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from cpubench.tasks.spans import Span


@dataclass
class Server:
    pid: int
    asked: int  # our end of its input
    answers: int  # our end of its output
    started_ns: int
    span: Span  # what it used that no answer accounted for, once it has ended
    rest: bytes = b""


def line(server: Server) -> bytes:
    """The server's next line; empty where it has ended."""
    while b"\n" not in server.rest:
        more = os.read(server.answers, 65536)
        if not more:
            return b""
        server.rest += more
    found, _, server.rest = server.rest.partition(b"\n")
    return found


def count(span: Span, used: Sequence[int]) -> None:
    """Adds times in us, faults and switches."""
    names = ("user_us", "sys_us", "minor_faults", "major_faults", "voluntary", "involuntary")
    for name, more in zip(names, used, strict=True):
        setattr(span, name, getattr(span, name) + more)


def charge(span: Span, server: Server, used: Sequence[int] | None) -> None:
    """Counts what a server says that it used for this step."""
    if used is not None:
        count(span, used)
        server.span.user_us -= span.user_us
        server.span.sys_us -= span.sys_us
