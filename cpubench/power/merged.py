"""Watts of a CSV in the place of a log that has none: on the clock of the samples, and judged before they are taken."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from cpubench.power.channel import LATER, Log, Reading, Ties
from cpubench.power.clocks import mono_of, unix_of, was_set
from cpubench.power.table import UNITS, S, Table

Span = tuple[int, int]  # Unix time in ns
RISES = 1.05  # power under load over power at rest, at least: as a probe has it
LAG = 0.05  # of the rise: what rest may draw more than at the best place for it
STEPS = 10  # to each side, of half of the rest
ZONE_S, ZONES = 900, 56  # zones differ by quarters of an hour, and by 14 hours at most


def placed(table: Table, scope: str, ties: Ties, span: tuple[int, int], beside: int = 1) -> Log:
    """The rows from one moment of the clock of the samples to another, and ``beside`` more at each end."""
    channel = table.channel(scope)
    why = was_set(ties)
    if why:
        return Log(LATER, scope, (channel,), None, (), lost=why, clock=ties)
    first = max(0, bisect_left(table.unix_ns, unix_of(ties, span[0])) - beside)
    last = bisect_right(table.unix_ns, unix_of(ties, span[1])) + beside
    rows = zip(table.unix_ns[first:last], table.values[first:last], strict=True)
    readings = tuple(Reading([mono_of(ties, at)], [value], [""]) for at, value in rows)
    return Log(LATER, scope, (channel,), None, readings, clock=ties)


def doubt(table: Table, rests: Sequence[Span], loads: Sequence[Span]) -> str:
    """Why the times of a table are not believed, as "code: sentence": power must rise with the load, and nowhere near
    the times of rest may be a better place for them. "" where nothing speaks against them."""
    rest, load = _mean_w(table, rests, 0), _mean_w(table, loads, 0)
    if rest is None or load is None:
        return "clock_unseen: the file has no rest of the host by which its clock could be told"
    if load <= RISES * rest:
        zone = next((shift for shift in _zones() if _rises(table, rests, loads, shift)), None)
        hint = "" if zone is None else f"; with --offset {zone:+d} they would: is it another time zone?"
        return f"unresponsive: {rest:.4g} W at rest and {load:.4g} W under load do not tell the run from rest{hint}"
    length_ns = min(end - begin for begin, end in rests)
    shifts = [step * length_ns // (2 * STEPS) for step in range(-STEPS, STEPS + 1)]
    least, best = min((watts, abs(shift), shift) for shift in shifts
                      if (watts := _mean_w(table, rests, shift)) is not None)[::2]  # fmt: skip
    if rest - least > LAG * (load - least):
        when = f"{abs(best) / S:.2f} s {'later' if best > 0 else 'earlier'}"
        way = f"give --offset {-best / S:.2f}, or 0 if its clock is right"
        return f"clock_skew: at rest the file has {rest:.4g} W, but {least:.4g} W {when}: {way}"
    return ""


def zone_hint(table: Table, span: Span) -> str:
    """What would bring a span into the table's times, for a person; "" where no time zone does."""
    shift = next((one for one in _zones() if _holds(table, span, one)), None)
    return "" if shift is None else f"; with --offset {shift:+d} it would: is it another time zone?"


def _zones() -> list[int]:
    """Seconds to add to times of another zone, the smallest first."""
    return [sign * number * ZONE_S for number in range(1, ZONES + 1) for sign in (1, -1)]


def _holds(table: Table, span: Span, shift_s: int) -> bool:
    return table.unix_ns[0] + shift_s * S <= span[0] and span[1] <= table.unix_ns[-1] + shift_s * S


def _rises(table: Table, rests: Sequence[Span], loads: Sequence[Span], shift_s: int) -> bool:
    every = (*rests, *loads)
    if not _holds(table, (min(span[0] for span in every), max(span[1] for span in every)), shift_s):
        return False
    rest, load = (_mean_w(table, spans, -shift_s * S) for spans in (rests, loads))
    return rest is not None and load is not None and load > RISES * rest


def _mean_w(table: Table, spans: Sequence[Span], shift_ns: int) -> float | None:
    """The mean of what the rows inside of spans say, about as good as they are close; None without two rows."""
    kind, factor = UNITS[table.unit]
    total, weight = 0.0, 0.0
    for begin, end in spans:
        first, last = bisect_left(table.unix_ns, begin + shift_ns), bisect_right(table.unix_ns, end + shift_ns)
        if last - first < 2:
            continue
        if kind == "power":
            total, weight = total + sum(table.values[first:last]), weight + (last - first)
        else:
            total += table.values[last - 1] - table.values[first]
            weight += (table.unix_ns[last - 1] - table.unix_ns[first]) / S
    return factor * total / weight if weight else None
