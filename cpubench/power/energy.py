"""Joules of an interval from the log of a meter, or the reason why there are none; pure functions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cpubench.power.channel import LATER, Channel, Log
from cpubench.power.mirrors import settled
from cpubench.power.overlap import pick
from cpubench.power.trace import Part, Trace, between, trace

COVERED = 0.95  # of the interval; below, what lay between is not known
SHORTEST_S = 0.1  # counters tick each ms with 1 ms of jitter: below, 2 % and more are the edges' alone
SHORT_S = 1.0
LOWEST_W = 1.0  # of a socket or machine that runs this program
ASYMMETRY = 3.0
REFRESHES = 30  # of a slow meter, that a window must hold
ERRORS = {"permission", "masked", "vanished", "no_data", "timeout", "read_error", "garbage", "time_backwards",
          "sentinel", "negative_step", "implausible_high"}  # fmt: skip
SUMMED_OVER_SOCKETS = ("package", "soc", "module", "superchip", "wall", "board")


@dataclass(frozen=True)
class Energy:
    """Energy of an interval in one scope. ``joules`` are those of the covered part of it, at least 95 %; ``watts``
    are the mean over that part. Both are None with a ``code`` and its ``reason``, and never 0 for "not measured".
    """

    scope: str
    joules: float | None
    watts: float | None
    seconds: float  # of the interval
    covered: float  # share of it, of the channel with the least
    flags: tuple[str, ...] = ()
    code: str = ""
    reason: str | None = None
    by_channel: dict[str, float] | None = None  # joules of what was covered
    by_socket: dict[int, float] | None = None
    wraps: int = 0
    rejected: int = 0


def energy(log: Log, t0_ns: int | None = None, t1_ns: int | None = None) -> Energy:
    """The energy of the log's scope from ``t0_ns`` to ``t1_ns``; without them, from its first to its last reading."""
    log = settled(log)
    rows = [reading for reading in log.readings if reading.at_ns]
    begin = t0_ns if t0_ns is not None else max(rows[0].at_ns) if rows else 0
    end = t1_ns if t1_ns is not None else min(rows[-1].at_ns) if rows else 0
    seconds = max(0, end - begin) / 1e9
    picked = pick(log.channels, log.scope, log.sockets)
    where = {channel.id: number for number, channel in enumerate(log.channels)}
    traces = {c.id: trace(c, [(r.at_ns[where[c.id]], r.raw[where[c.id]], r.errors[where[c.id]]) for r in rows])
              for c in picked.channels}  # fmt: skip
    channels, flags = picked.channels, set(log.flags)
    parts = {c.id: between(traces[c.id].segments, begin, end) for c in channels}
    joules = {id_: part.joules for id_, part in parts.items()}
    used = [traces[c.id] for c in channels]
    flags = flags.union(*(one.flags for one in used), *(_coarse(c, traces[c.id], seconds) for c in channels))
    flags |= {"short"} if seconds < SHORT_S else set()
    covered = min((part.ns / 1e9 / seconds for part in parts.values()), default=0.0) if seconds else 0.0
    why = log.lost or picked.reason or _off(log) or _unusable(channels, traces, parts, seconds, covered, flags)
    watts = sum(part.joules / (part.ns / 1e9) for part in parts.values() if part.ns)
    lowest = LOWEST_W * len({c.socket for c in channels})
    if not why and watts < lowest and log.scope.split("+")[0] in SUMMED_OVER_SOCKETS:
        why = f"zero: {watts:.3g} W is less than any running machine draws"
    sockets = _by_socket(channels, joules)
    why = why or _asymmetric(channels, joules, flags)
    code, _, sentence = why.partition(": ")
    flags |= {code} if code else set()
    return Energy(
        log.scope, None if why else sum(joules.values()), None if why else watts, seconds, min(1.0, covered),
        tuple(sorted(flags)), code, sentence or None, joules, sockets, sum(one.wraps for one in used),
        sum(one.rejected for one in used),
    )  # fmt: skip


def watts_each(log: Log, seconds: float = 1.0) -> list[float | None]:
    """The mean watts of each whole ``seconds`` of the log, for limits that hold over such a time."""
    log = settled(log)
    rows = [reading for reading in log.readings if reading.at_ns]
    if not rows:
        return []
    begin, end, length = max(rows[0].at_ns), min(rows[-1].at_ns), round(seconds * 1e9)
    found = []
    for t0 in range(begin, end - length + 1, length):
        first = bisect_right(rows, t0, key=lambda row: max(row.at_ns))
        last = bisect_left(rows, t0 + length, key=lambda row: min(row.at_ns))
        near = replace(log, readings=tuple(rows[max(0, first - 1) : last + 1]))
        found.append(energy(near, t0, t0 + length).watts)
    return found


def _off(log: Log) -> str:
    """Whether a meter's own clock is off; of a CSV it is no more than a doubt: a person has said how its times are."""
    skewed = "clock_skew" in log.flags and log.meter != LATER
    return "clock_skew: the times of its lines are not those at which they came" if skewed else ""


def _unusable(
    channels: Iterable[Channel], traces: dict[str, Trace], parts: dict[str, Part], seconds: float, covered: float,
    flags: set[str],
) -> str:  # fmt: skip
    """Why there are no joules, as "code: sentence"; "" where there are."""
    for channel in channels:
        one, part = traces[channel.id], parts[channel.id]
        if channel.kind == "energy" and part.ns >= SHORT_S * 1e9 and part.joules == 0:
            flags |= {"constant", "zero"} if one.last == 0 else {"constant"}
            return f"constant: {channel.id} did not move for {part.ns / 1e9:.3g} s"
        if not part.ns and one.flags:  # the first of them in the order of how much it explains
            known = ("permission", "masked", "vanished", "no_data", "timeout", "read_error")
            code = min(one.flags, key=lambda flag: (flag not in known, known.index(flag) if flag in known else flag))
            return f"{code}: {channel.id} gave no value that can be used"
        if channel.kind == "power" and part.ns and part.joules == 0:
            return f"zero: {channel.id} says 0 W, which no running machine draws"
    if seconds < SHORTEST_S:
        return f"short: {seconds:.3g} s; less than {SHORTEST_S} s cannot be measured"
    if covered < COVERED:
        why = ", ".join(sorted(flags & ERRORS))
        return f"gap: {100 * covered:.3g} % of {seconds:.3g} s was covered by readings" + (f" ({why})" if why else "")
    return ""


def _coarse(channel: Channel, one: Trace, seconds: float) -> set[str]:
    """Whether a series of watts is renewed too seldom for this interval."""
    return {"coarse"} if channel.kind == "power" and seconds < REFRESHES * one.refresh_s else set()


def _by_socket(channels: Iterable[Channel], joules: dict[str, float]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for channel in channels:
        if channel.socket is not None:
            sums[channel.socket] = sums.get(channel.socket, 0.0) + joules[channel.id]
    return sums


def _asymmetric(channels: Sequence[Channel], joules: dict[str, float], flags: set[str]) -> str:
    """Memory of a socket that differs threefold from another's is not believed; packages may be loaded unequally."""
    for scope in sorted({c.scope for c in channels}):
        sums = _by_socket([c for c in channels if c.scope == scope], joules)
        if len(sums) > 1 and max(sums.values()) > ASYMMETRY * min(sums.values()):
            flags.add("asymmetric")
            if scope == "dram":
                told = ", ".join(f"{value:.3g} J on {socket}" for socket, value in sorted(sums.items()))
                return f"asymmetric: dram: {told}"
    return ""
