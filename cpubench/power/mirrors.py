"""Dies of a socket that show one counter, which count once. It is decided for a whole log, never for a part of it.

Older kernels registered a zone for each die of an AMD socket, and all of them read the socket's counter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from cpubench.power.channel import Channel, Log, Reading
from cpubench.power.trace import trace

EDGE_S = 0.003  # counters move each ms, and are read one after the other: one may be some ticks ahead
EQUAL = 0.001
TELLING = 0.004  # of the energy; dies under one load differ by 0.5 %: where edges hide more, nobody can say
SURE = 0.75  # of the readings: whoever reads two counters may be held up between them

Pair = tuple[int, float, int, float]  # time and raw value of one channel, and of another


def settled(log: Log) -> Log:
    """The log without channels that show the counter of another one again; ``mirrors`` is False of those that stay.

    Where that cannot be decided, ``lost`` says so: a sum of mirrors is a multiple of the truth.
    """
    able = [at for at, c in enumerate(log.channels) if c.mirrors and c.scope in log.scope.split("+")]
    if not able:
        return log
    lost, kept, dropped = log.lost, list[int](), set[int]()
    for at in sorted(able, key=lambda at: log.channels[at].die or 0):
        mine = log.channels[at]
        verdicts = {one: _alike(log, one, at) for one in kept
                    if (log.channels[one].scope, log.channels[one].socket) == (mine.scope, mine.socket)}  # fmt: skip
        if True in verdicts.values():
            dropped.add(at)
            continue
        kept.append(at)
        for one in (one for one, same in verdicts.items() if same is None):
            text = "may show one counter or two, which this log is too short or too uneven to tell"
            lost = lost or f"mirrored: {log.channels[one].id} and {mine.id} {text}"
    left = [at for at in range(len(log.channels)) if at not in dropped]
    channels = tuple(replace(c, mirrors=c.mirrors and at not in kept) for at, c in enumerate(log.channels))
    rows = [([r.at_ns[at] for at in left], [r.raw[at] for at in left], [r.errors[at] for at in left])
            for r in log.readings if r.at_ns]  # fmt: skip
    return replace(
        log, channels=tuple(channels[at] for at in left), readings=tuple(Reading(*row) for row in rows), lost=lost,
        flags=log.flags | ({"deduped_die"} if dropped else set()),
    )  # fmt: skip


def _alike(log: Log, a: int, b: int) -> bool | None:
    """Whether two channels show one counter; None where that cannot be told.

    powercap gives the register itself: mirrors are equal at every reading, counters of their own are not. perf counts
    from when an event was opened: there only what was added tells.
    """
    one = log.channels[a]
    pairs = [(row.at_ns[a], x, row.at_ns[b], y) for row in log.readings
             if row.at_ns and (x := row.raw[a]) is not None and (y := row.raw[b]) is not None]  # fmt: skip
    segments = trace(one, [(at_ns, raw, "") for at_ns, raw, _, _ in pairs]).segments
    seconds = sum(s.t1_ns - s.t0_ns for s in segments) / 1e9
    joules = sum((s.t1_ns - s.t0_ns) / 1e9 * s.w0 for s in segments)
    if not seconds or not joules:
        return False  # nothing was told, or it stands still: both have words of their own
    watts = joules / seconds
    ahead = _ahead(one, pairs, watts)
    ends = min(3, len(ahead) // 2)
    drift, edges = abs(median(ahead[-ends:]) - median(ahead[:ends])), EQUAL * joules + 2 * EDGE_S * watts
    if one.id.startswith("perf:"):
        return False if drift > edges else True if edges <= TELLING * joules else None
    near = sum(abs(each) <= EDGE_S * watts for each in ahead) / len(ahead)
    if near <= 1 - SURE:
        return False
    return True if near >= SURE and drift <= edges else None


def _ahead(one: Channel, pairs: Sequence[Pair], watts: float) -> list[float]:
    """By how many joules the second of two counters is ahead at each reading, but for the time between both reads."""
    found = []
    for at_ns, raw, other_ns, other in pairs:
        apart = other - raw
        if one.range_raw:  # the shorter way around
            apart = (apart + one.range_raw / 2) % one.range_raw - one.range_raw / 2
        found.append(apart * one.unit - watts * (other_ns - at_ns) / 1e9)
    return found
