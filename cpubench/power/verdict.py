"""Whether a cap holds and binds, from readings alone: a pure function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cpubench.power.states import State

NOT_BINDING_SHARE = 0.98  # of the uncapped power: what a cap above it saves is within the noise of a meter
MEAN_SHARE, MEAN_W = 1.03, 1.0  # how far the mean may be above the cap
PEAK_SHARE, PEAK_W = 1.10, 2.0  # and any second of it
NEAR_SHARE = 0.85  # further below the cap, something else limits
SLOWER = 0.98  # of the uncapped rate: a cap that binds costs more than this


@dataclass(frozen=True)
class Readings:
    """A full load under the cap, after it has settled; watts in the cap's own scope, or none."""

    cap_w: float
    watts: Sequence[float] | None = None  # the mean of each second; None without a meter of that scope
    uncapped_w: float | None = None
    rate: float | None = None  # of the load, over its rate without a cap


@dataclass(frozen=True)
class Verdict:
    state: State
    sentence: str
    evidence: tuple[str, ...] = ()  # other_limit, not_slower, no_meter, no_uncapped, peak
    mean_w: float | None = None
    external: bool = False  # the cap was set by somebody else

    @property
    def label(self) -> str:
        return f"{self.state.value}(external)" if self.external and self.state is State.VERIFIED else self.state.value


def judge(written: State, readings: Readings, external: bool = False) -> Verdict:
    """The state of a cap level; ``written`` is what became of the write (set_unverified: it stands and reads back)."""
    if written is not State.SET_UNVERIFIED:
        return Verdict(written, written.sentence, external=external)
    if not readings.watts or not all(map(_power, readings.watts)):
        state = State.EXTERNAL_CLAIM if external else State.SET_UNVERIFIED
        return Verdict(state, f"{state.sentence}: no meter of the cap's own scope", ("no_meter",), external=external)
    mean, peak = sum(readings.watts) / len(readings.watts), max(readings.watts)
    state, why, evidence = _measured(readings, mean, peak)
    if external and evidence == ("no_uncapped",):  # it stands already: a host without a cap may draw the same
        state = State.EXTERNAL_CLAIM
        drawn = f"{mean:.1f} W drawn, no more than a cap of {readings.cap_w:g} W allows"
        why = f"{drawn}; what it draws without was not measured"
    return Verdict(state, f"{state.sentence}: {why}", evidence, mean, external)


def _power(watts: float) -> bool:
    """Whether a host can draw that: a NaN would pass each comparison below, and 0 W lie under every cap."""
    return math.isfinite(watts) and watts > 0


def _measured(readings: Readings, mean: float, peak: float) -> tuple[State, str, tuple[str, ...]]:
    cap, rate = readings.cap_w, readings.rate
    uncapped = readings.uncapped_w if readings.uncapped_w is not None and _power(readings.uncapped_w) else None
    said = f"{mean:.1f} W under a cap of {cap:g} W"
    slower = rate is not None and rate < SLOWER
    if mean > MEAN_SHARE * cap + MEAN_W:
        return State.OVER_CAP, said, ()
    if peak > PEAK_SHARE * cap + PEAK_W:
        return State.OVER_CAP, f"{said}, and {peak:.1f} W in one second", ("peak",)
    if mean < NEAR_SHARE * cap and (uncapped is None or slower or mean < NOT_BINDING_SHARE * uncapped):
        return State.NOT_BINDING, f"{said}: limited by something else", ("other_limit",)
    if uncapped is not None and cap >= NOT_BINDING_SHARE * uncapped:
        return State.NOT_BINDING, f"{said}, {uncapped:.1f} W without", ()
    if uncapped is None or rate is None:
        return State.SET_UNVERIFIED, f"{said}, and the load was not measured without a cap", ("no_uncapped",)
    if not slower:
        return State.SET_UNVERIFIED, f"{said}, and the load is as fast as without", ("not_slower",)
    return State.VERIFIED, f"{said}, {uncapped:.1f} W without; the load runs at {rate:.0%}", ()
