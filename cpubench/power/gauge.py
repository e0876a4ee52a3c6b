"""The watts of each second of a while, for whoever waits that long: a cap is judged by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.power.channel import PERIOD_S
from cpubench.power.energy import energy, watts_each
from cpubench.power.meters import open_meter
from cpubench.power.probe import LENGTH_S, watch

Watch = Callable[[float], list[float] | None]


def gauge(name: str = "auto", root: Path = ROOT) -> tuple[str, Watch]:
    """The scope of a meter, and a function that blocks for so many seconds and returns the mean watts of each.

    It returns None where a second has no watts: none is made up. UsageError where there is no such meter, or one that
    tells nothing in a first second: better known before loads of minutes than after.
    """
    meter = open_meter(name, root)
    (first,) = watch([meter], LENGTH_S)
    told = energy(first)
    if told.watts is None:
        raise UsageError("meter", f"{told.code}: {told.reason}", f"--meter {ascii(meter.name[:60])[1:-1]}")

    def seconds(length_s: float) -> list[float] | None:
        try:
            (log,) = watch([open_meter(name, root)], length_s + 2 * PERIOD_S)  # the last second is a whole one too
        except UsageError:
            return None
        told = watts_each(log)
        return None if not told or None in told else [watts for watts in told if watts is not None]

    return meter.scope, seconds
