"""What one channel did: straight pieces of power over time, made of its readings, and what was wrong with them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cpubench.power.channel import Channel
from cpubench.power.unwrap import is_sentinel, step

Sample = tuple[int, float | None, str]  # time in ns, raw value, the code of an error


class Segment(NamedTuple):
    t0_ns: int
    t1_ns: int
    w0: float
    w1: float


class Part(NamedTuple):
    joules: float
    ns: int  # that segments cover


@dataclass
class Trace:
    segments: list[Segment] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    wraps: int = 0
    rejected: int = 0
    last: float | None = None  # raw
    refresh_s: float = 0.0  # of a series of watts: the longest time without another value


def trace(channel: Channel, samples: Iterable[Sample]) -> Trace:
    """The segments of a channel; times must grow, and values that cannot be true are rejected by name.

    A counter is flat between two readings; a series of watts is straight. After a step that is rejected the next
    reading is the new beginning.
    """
    made = Trace()
    good = [sample for sample in samples if _kept(channel, sample, made)]
    before: tuple[int, float] | None = None
    for at_ns, raw in ((at, value) for at, value, _ in good if value is not None):
        if before is not None and at_ns <= before[0]:
            if at_ns < before[0]:
                made.flags.add("time_backwards")
                made.rejected += 1
            continue  # the same time: the meter has nothing new
        if before is not None:
            _join(channel, made, before, (at_ns, raw))
        before = (at_ns, raw)
        made.last = raw
    if channel.kind == "power":
        made.refresh_s = _refresh_s([(at, value) for at, value, _ in good if value is not None])
    return made


def _kept(channel: Channel, sample: Sample, made: Trace) -> bool:
    _, raw, error = sample
    if raw is None:
        made.flags.add(error or "read_error")
        made.rejected += 1
        return False
    flag = ""
    if is_sentinel(raw):
        flag = "sentinel"
    elif channel.kind == "power" and raw < 0:
        flag = "read_error"
    elif channel.kind == "power" and raw * channel.unit > channel.max_w:
        flag = "implausible_high"
    if flag:
        made.flags.add(flag)
        made.rejected += 1
    return not flag


def _join(channel: Channel, made: Trace, before: tuple[int, float], now: tuple[int, float]) -> None:
    """Adds the segment between two readings, or the flag that says why there is none."""
    elapsed_s = (now[0] - before[0]) / 1e9
    if elapsed_s > channel.gap_s:
        made.flags.add("gap")
        return
    if channel.kind == "power":
        made.segments.append(Segment(before[0], now[0], before[1] * channel.unit, now[1] * channel.unit))
        return
    # A tick that was late by its jitter can hold more than the time between two quick readings allows.
    most_raw = (elapsed_s + 0.1) * channel.max_w / channel.unit
    found = step(before[1], now[1], channel.range_raw, most_raw)
    if found.raw is None:
        made.flags.add(found.flag)
        made.rejected += 1
        return
    made.wraps += found.wraps
    watts = found.raw * channel.unit / elapsed_s
    made.segments.append(Segment(before[0], now[0], watts, watts))


def between(segments: Sequence[Segment], t0_ns: int, t1_ns: int) -> Part:
    """The energy of the part of the segments that lies between two times, and how long that part is."""
    joules, covered_ns = 0.0, 0
    for one in segments[bisect_right(segments, t0_ns, key=lambda s: s.t1_ns) :]:
        begin, end = max(one.t0_ns, t0_ns), min(one.t1_ns, t1_ns)
        if begin >= end:
            break
        slope = (one.w1 - one.w0) / (one.t1_ns - one.t0_ns)
        middle = one.w0 + slope * ((begin + end) / 2 - one.t0_ns)
        joules += middle * (end - begin) / 1e9
        covered_ns += end - begin
    return Part(joules, covered_ns)


def _refresh_s(samples: Sequence[tuple[int, float]]) -> float:
    """The longest time over which a series of watts showed one value."""
    longest_ns, since = 0, samples[0] if samples else (0, 0.0)
    for at_ns, value in samples:
        longest_ns = max(longest_ns, at_ns - since[0])
        if value != since[1]:
            since = (at_ns, value)
    return longest_ns / 1e9
