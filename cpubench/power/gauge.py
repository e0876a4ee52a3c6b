"""The watts of each second of a while, for whoever waits that long: a cap is judged by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.power.channel import GAP_S, PERIOD_S, Log
from cpubench.power.energy import energy, watts_each
from cpubench.power.meters import open_meter
from cpubench.power.overlap import SHOWN
from cpubench.power.probe import LENGTH_S, watch

Watch = Callable[[float], list[float] | None]


class Found(NamedTuple):
    """A meter that has told something: its own name, which opens the same one again, and what it measures."""

    name: str
    scope: str
    provenance: str


def found(name: str = "auto", root: Path = ROOT, allow_estimated: bool = False) -> Found:
    """The meter of a name, after a first second, or as long as a command may take to its second line.

    UsageError where there is none, or it tells nothing: better known before loads of minutes than after. None of memory
    alone or psys, which `cpubench power probe` shows.
    """
    meter = open_meter(name, root, allow_estimated)
    where = f"--meter {ascii(meter.name[:60])[1:-1]}"
    if meter.scope in SHOWN:
        meter.close()
        raise UsageError(
            "meter", f"{meter.scope} is shown by `power probe`, and no score is of it: name another", where
        )
    (first,) = watch([meter], LENGTH_S, most_s=GAP_S)
    told = energy(first)
    if told.code == "short":
        text = f"slow: no second value came within {GAP_S:g} s, and two that are further apart tell nothing of windows"
        raise UsageError("meter", text, where)
    if told.watts is None:
        raise UsageError("meter", f"{told.code}: {told.reason}", where)
    return Found(meter.name, meter.scope, "+".join(sorted({channel.provenance for channel in meter.channels})))


def gauge(name: str = "auto", root: Path = ROOT) -> tuple[str, Watch]:
    """The scope of a meter, and a function that blocks for so many seconds and returns the mean watts of each.

    It returns None where a second has no watts: none is made up.
    """
    one = found(name, root)
    return one.scope, watching(one.name, root)


def watching(name: str, root: Path, allow_estimated: bool = False) -> Watch:
    """The function of ``gauge`` for a meter that was found."""

    def seconds(length_s: float) -> list[float] | None:
        log = watched(name, root, length_s + 2 * PERIOD_S, allow_estimated)  # the last second is a whole one too
        told = watts_each(log) if log is not None else []
        return None if not told or None in told else [watts for watts in told if watts is not None]

    return seconds


def watched(name: str, root: Path, length_s: float, allow_estimated: bool = False) -> Log | None:
    """What a meter says in so many seconds; None where it cannot be opened any more."""
    try:
        (log,) = watch([open_meter(name, root, allow_estimated)], length_s)
    except UsageError:
        return None
    return log
