"""What every backend gives: its channels on this host, and why others cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from cpubench.host.virtual import read_virtual
from cpubench.power.channel import Channel, Meter, Place
from cpubench.power.controls import Problem
from cpubench.power.source import packages


@dataclass
class Found:
    """Channels that can be read, in no order that matters, and the problems of those that cannot.

    ``named`` are the places of all that the interface lists, readable or not: a sum without one of them is not whole.
    """

    channels: list[Channel] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    named: set[Place] = field(default_factory=set)


class Backend(NamedTuple):
    name: str
    scope: str  # what it would measure
    find: Callable[[Path], Found]
    open: Callable[
        [str, str, list[Channel], frozenset[int] | None, Path], Meter
    ]  # name, scope, channels, sockets, root


def sockets_of(root: Path, found: Found) -> frozenset[int] | None:
    """The packages that a whole sum must hold: the kernel's, else those that the interface names.

    In a virtual machine the packages are made up, and the zones, if any, are the host's.
    """
    here = None if read_virtual(root).value else packages(root)
    return here or frozenset(place.socket for place in found.named if place.socket is not None) or None


def by_index(channels: list[Channel], root: Path) -> list[Channel]:
    """The channels with package ids in place of indexes 0, 1, ..: drivers number sockets, and ids may have holes."""
    ids = sorted(packages(root) or ())
    return [replace(c, socket=ids[c.socket]) if c.socket is not None and c.socket < len(ids) else c for c in channels]


def shown_path(root: Path, path: Path) -> str:
    """The path as it is called on the host."""
    try:
        return f"/{path.relative_to(root)}"
    except ValueError:
        return str(path)
