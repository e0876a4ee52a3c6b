"""Showing that a cap holds: a full load without it, and under it, beside a meter of the cap's own scope."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from cpubench.host.topology import allowed_cpus
from cpubench.power import session as caps_session
from cpubench.power.controls import Control
from cpubench.power.session import Applied, Session
from cpubench.power.states import CLAMP_CHANGED, CLAMP_CHANGED_SENTENCE, State
from cpubench.power.verdict import Readings, Verdict, judge
from cpubench.power.virus import burning

Load = Callable[[], AbstractContextManager[Callable[[], int]]]


@dataclass(frozen=True)
class Gauge:
    """A meter as it is needed here: its scope, and the mean watts of each second of the next so many; blocks."""

    scope: str
    watch: Callable[[float], Sequence[float] | None]


@dataclass(frozen=True)
class Times:
    """Seconds: at rest; of the load without a cap; of settling at least (five time windows); of the load under it."""

    idle_s: float = 5.0
    uncapped_s: float = 20.0
    settle_s: float = 10.0
    measure_s: float = 20.0


@dataclass(frozen=True)
class Drawn:
    """What a full load draws and does: mean watts of each second, and blocks a second."""

    watts: Sequence[float] | None
    rate: float

    @property
    def mean_w(self) -> float | None:
        return sum(self.watts) / len(self.watts) if self.watts else None


def full_load() -> AbstractContextManager[Callable[[], int]]:
    """The virus on every CPU that this process may use."""
    return burning(allowed_cpus().value or [0])


def gauge_for(gauge: Gauge | None, controls: Sequence[Control]) -> Gauge | None:
    """The gauge where it measures what the zones limit; None else: a package cap is not judged at the wall."""
    return gauge if gauge is not None and all(one.scope == gauge.scope for one in controls) else None


def drawn(gauge: Gauge | None, settle_s: float, measure_s: float, load: Load = full_load) -> Drawn:
    """The load after ``settle_s`` seconds, over ``measure_s``."""
    with load() as count:
        time.sleep(settle_s)
        began, first = time.monotonic(), count()
        watts = None
        if gauge is None:
            time.sleep(measure_s)
        else:
            watts = gauge.watch(measure_s)
        return Drawn(watts or None, (count() - first) / (time.monotonic() - began))


def settle_s(controls: Sequence[Control], times: Times) -> float:
    """Seconds until a cap of these zones acts."""
    return max(times.settle_s, 5e-6 * max((one.window_us for one in controls), default=0))


def verify(
    session: Session, value: int, gauge: Gauge | None, uncapped: Drawn, times: Times, load: Load = full_load
) -> tuple[Applied, Verdict, list[str]]:
    """Sets ``value`` in every zone and judges it; the cap still stands afterwards where ``Applied.stands``.

    The flags are ``clamp_changed`` and what else happened. A cap that is not held below the base clock is switched on
    once more, as the kernel wants it: see ``switch_on``.
    """
    gauge = gauge_for(gauge, session.controls)
    applied = caps_session.apply(session, value)
    if applied.state is not State.SET_UNVERIFIED:
        return applied, judge(applied.state, Readings(0.0)), []
    total_w = value * len(session.controls) / 1e6
    flags: list[str] = []
    verdict = _under(session, total_w, gauge, uncapped, times, load)
    if verdict.state is State.OVER_CAP and any(one.enabled for one in session.controls):
        caps_session.switch_on(session)
        flags.append(CLAMP_CHANGED)
        verdict = _under(session, total_w, gauge, uncapped, times, load)
        verdict = replace(verdict, sentence=f"{verdict.sentence}; {CLAMP_CHANGED_SENTENCE}")
    return applied, verdict, flags


def _under(
    session: Session, cap_w: float, gauge: Gauge | None, uncapped: Drawn, times: Times, load: Load
) -> Verdict:  # fmt: skip
    now = drawn(gauge, settle_s(session.controls, times), times.measure_s, load)
    return judge(State.SET_UNVERIFIED, _readings(cap_w, now, uncapped))


def verify_external(
    cap_w: float, gauge: Gauge | None, uncapped: Drawn | None, times: Times, load: Load = full_load
) -> Verdict:
    """Judges a cap that somebody else has set, of the gauge's scope; ``uncapped`` is from before it, where known."""
    now = drawn(gauge, times.settle_s, times.measure_s, load)
    return judge(State.SET_UNVERIFIED, _readings(cap_w, now, uncapped), external=True)


def _readings(cap_w: float, now: Drawn, uncapped: Drawn | None) -> Readings:
    if uncapped is None or uncapped.rate <= 0:
        return Readings(cap_w, now.watts)
    return Readings(cap_w, now.watts, uncapped.mean_w, now.rate / uncapped.rate)
