"""Which channels may be added: none of different scopes, but memory to packages; never one thing twice.

Top-level zones of powercap overlap (psys holds everything), subzones lie inside of their package, MMIO zones and zones
of a second driver show a counter again, and the four meters of a Grace module are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cpubench.host.cpulist import format_cpulist
from cpubench.power.channel import Channel, Place

# Shown, and never a total that a score may take: memory alone, and whatever a vendor has put behind one counter.
SHOWN = ("dram", "psys")
TOTALS = ("package", "package+dram", "soc", "soc+dram", "module", "superchip", "wall", "board", *SHOWN)  # best first
INSIDE = {"core": "package", "uncore": "package", "cpu": "module", "sysio": "module", "module": "superchip"}
BY_SOCKET = frozenset(("package", "dram", "soc", "module", "superchip", "cpu", "sysio"))


class Picked(NamedTuple):
    channels: tuple[Channel, ...]  # to be added
    left_out: dict[str, str]  # id -> why
    reason: str  # why there is no total, as "code: sentence"; "" where there is one


def may_add(a: Channel, b: Channel) -> bool:
    """Whether the energy of both is that of neither counted twice."""
    if a.id.partition(":")[0] != b.id.partition(":")[0] or a.kind != b.kind:
        return False
    if a.scope != b.scope:
        return {a.scope, b.scope} in ({"package", "dram"}, {"soc", "dram"})
    return a.place != b.place


def totals(channels: Iterable[Channel]) -> list[str]:
    """The totals that these channels could make, the preferred one first."""
    have = {channel.scope for channel in channels}
    return [total for total in TOTALS if set(total.split("+")) <= have]


def pick(
    channels: Sequence[Channel], total: str, sockets: frozenset[int] | None, named: Iterable[Place] = ()
) -> Picked:  # fmt: skip
    """The channels whose sum is the total, why the others are left out, and why the sum would not be whole: it lacks
    one of the ``sockets``, or what is ``named`` and cannot be read."""
    scopes, kept, left_out = total.split("+"), list[Channel](), dict[str, str]()
    for channel in sorted(channels, key=lambda c: c.rank):
        twin = next((k for k in kept if not may_add(k, channel)), None)
        if channel.scope not in scopes:
            inside = INSIDE.get(channel.scope)
            left_out[channel.id] = f"inside {inside}" if inside in scopes else f"another scope: {channel.scope}"
        elif twin is not None:
            left_out[channel.id] = f"reads the same as {twin.id}"
        else:
            kept.append(channel)
    return Picked(tuple(kept), left_out, _hole(kept, scopes, sockets) or lacking(channels, total, named))


def lacking(channels: Iterable[Channel], total: str, named: Iterable[Place]) -> str:
    """Which rails, dies or meters of a total are listed and not among the channels, as "code: sentence"; "" if none."""
    lost = {place for place in named if place.scope in total.split("+")}.difference(c.place for c in channels)
    return f"partial: {', '.join(sorted(map(str, lost)))} is listed and cannot be read" if lost else ""


def _hole(kept: list[Channel], scopes: list[str], sockets: frozenset[int] | None) -> str:
    """What is missing of a whole sum."""
    covered = {scope: {c.socket for c in kept if c.scope == scope and c.socket is not None} for scope in scopes}
    for scope in scopes:
        if not any(channel.scope == scope for channel in kept):
            return f"no_interface: no channel of {scope} can be read"
    wanted = set(sockets or ())
    first = covered[scopes[0]]
    if sockets is not None and scopes[0] in BY_SOCKET and first and first != wanted:
        return f"partial_sockets: {scopes[0]} of {_named(first)} is told, of packages {_named(wanted)}"
    for scope in scopes[1:]:
        if covered[scope] != first:
            return f"asymmetric_domains: {scope} on {_named(covered[scope])}, {scopes[0]} on {_named(first)}"
    return ""


def _named(sockets: set[int]) -> str:
    return format_cpulist(sockets) or "none"
