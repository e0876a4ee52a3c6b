"""Meters that answer and lie: comparisons of channels, of meters, of idle and load. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from cpubench.power.channel import Channel
from cpubench.power.energy import Energy

CHILD_SHARE = 1.02
DISAGREE = 0.02
SURE_S = 10.0  # from where 2 % are no edge effect any more
UNRESPONSIVE = 1.05


def child_exceeds_parent(channels: Sequence[Channel], joules: dict[str, float]) -> str:
    """A sentence where a part of a package took more than the package: "" where none did."""
    for parent in channels:
        for child in channels:
            same = (parent.socket, parent.die) == (child.socket, child.die)
            if parent.scope == "package" and child.scope in ("core", "uncore") and same:
                a, b = joules.get(child.id), joules.get(parent.id)
                if a is not None and b is not None and a > CHILD_SHARE * b:
                    return f"{child.id} took {a:.3g} J, and the whole {parent.id} {b:.3g} J"
    return ""


def mirrored(windows: Sequence[dict[str, float]]) -> str:
    """A sentence where two channels took the same, to 0.1 %, in each of two or more windows."""
    if len(windows) < 2:
        return ""
    for a, b in combinations(sorted(set(windows[0]).intersection(*windows[1:])), 2):
        if all(w[a] > 0 and abs(w[a] - w[b]) <= 0.001 * w[a] for w in windows):
            return f"{a} and {b} took the same in {len(windows)} windows"
    return ""


def sources_disagree(a: Energy, b: Energy) -> str:
    """A sentence where two meters of one scope differ over the same time: by 2 %, in short windows by more."""
    if a.watts is None or b.watts is None or a.scope != b.scope:
        return ""
    limit = DISAGREE * max(1.0, SURE_S / max(1e-3, min(a.seconds, b.seconds)))
    low, high = sorted((a.watts, b.watts))
    return f"{a.watts:.4g} W and {b.watts:.4g} W for {a.scope}" if high > low * (1 + limit) else ""


def exceeds_wall(inside: Energy, wall: Energy) -> str:
    """A sentence where a part of the machine draws more than the machine."""
    if inside.watts is None or wall.watts is None or inside.watts <= wall.watts:
        return ""
    return f"{inside.scope} draws {inside.watts:.4g} W, the whole machine {wall.watts:.4g} W"


def unresponsive(idle: Energy, load: Energy) -> str:
    """A sentence where load changes nothing: under 5 % more than idle."""
    if idle.watts is None or load.watts is None or load.watts > UNRESPONSIVE * idle.watts:
        return ""
    return f"{load.watts:.4g} W under load, {idle.watts:.4g} W idle"
