"""Watts and caps around a run: which meter it has, what its caps do, and each block at its level.

``docs/decisions/0021-*`` says why it is done in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from cpubench.analysis.cells import BASE_CAP, EXTERNAL
from cpubench.errors import UsageError
from cpubench.measure.asked import Asked
from cpubench.measure.levels import times_of, with_power
from cpubench.power import clocks, journal, session
from cpubench.power.channel import LATER, Log, dump
from cpubench.power.checked import check_levels, external, judged, unmeasured
from cpubench.power.energy import energy
from cpubench.power.gauge import Found, found, watched, watching
from cpubench.power.levels import parse_external, parse_level
from cpubench.power.published import public_log, public_name
from cpubench.power.registers import Host
from cpubench.power.states import State
from cpubench.power.verify import Gauge, gauge_for
from cpubench.power.verify import Times as Loads
from cpubench.results import windows as r
from cpubench.results.records import Plan

STANDS = {State.SET_UNVERIFIED, State.PROXY, State.VERIFIED, State.NOT_BINDING, State.OVER_CAP}


@dataclass
class Powered:
    """A run with a meter or caps on its way."""

    asked: Asked
    meter: Found | None
    problem: str  # why there is no meter
    open_: session.Session | None  # None: nothing is written
    at: str | None = None  # the level that stands
    took: dict[str, int] = field(default_factory=dict)  # what the registers of that level hold

    @property
    def host(self) -> Host:
        return Host(self.asked.root)

    @property
    def gauge(self) -> Gauge | None:
        """What judges the caps."""
        if self.meter is None or self.meter.name == LATER:
            return None
        watch = watching(self.meter.name, self.asked.root, self.asked.allow_estimated)
        return Gauge(self.meter.scope, watch)


@contextmanager
def powered(asked: Asked | None) -> Iterator[Powered | None]:
    """The meter and the one session of caps of a run; at its end every limit is as it was found.

    UsageError before anything is measured where a meter that was named tells nothing, or nothing can be capped.
    """
    if asked is None or not asked.anything:
        yield None
        return
    meter, problem = _meter(asked)
    if not asked.capped:
        yield Powered(asked, meter, problem, None)
        return
    with session.capping(Host(asked.root), frequency=asked.capped[0].khz is not None) as open_:
        made = Powered(asked, meter, problem, open_)
        check_levels(asked.capped, open_, gauge_for(made.gauge, open_.controls))
        yield made


def asked_again(plan: Plan, given: Asked) -> Asked:
    """What the run of a plan was asked for, with what is ``given`` anew.

    UsageError where the meter has to be named, or where nothing that is measured now would be of the same run.
    """
    power = plan.powered
    if power is None:
        if given.meter is not None:
            raise UsageError("resume", "this run reads no meter", "--meter")
        return given
    if not isinstance(power.merged, UnsetType):
        raise UsageError("resume", "its watts are merged: resume the run it was made of", "plan.power")
    _check_boot(plan, given.root)
    meter = given.meter or power.meter or "none"
    if public_name(meter) != (power.meter or "none"):
        raise UsageError("resume", f"this run reads {power.meter or 'no meter'}, not {public_name(meter)}", "--meter")
    if meter in ("cmd", "redfish") and given.meter is None:
        raise UsageError("resume", f"give the meter of this run again: --meter {meter}:..", "--meter")
    levels = tuple(parse_level(name) for name in plan.caps if not name.startswith(EXTERNAL))
    outside = [name.removeprefix(EXTERNAL) for name in plan.caps if name.startswith(EXTERNAL)]
    external_ = parse_external(outside[0], "plan.caps") if outside else None
    estimated = "estimated" in power.provenance
    return Asked(levels, external_, meter, estimated, given.root)


def _check_boot(plan: Plan, root: Path) -> None:
    """None if the caps of a plan, if it has any, were shown to hold in this boot: firmware and idle are of a boot."""
    told = plan.powered.boot_id if plan.powered is not None else UNSET
    capped = any(name != BASE_CAP for name in plan.caps)
    if capped and not isinstance(told, UnsetType) and _boot_id(root) != told:
        text = "the host has booted since the caps were shown to hold: start anew"
        raise UsageError("resume", text, "plan.power.boot_id")


def _boot_id(root: Path) -> str | UnsetType:
    """The kernel's name of this boot; UNSET without /proc, where nothing can be capped either."""
    with suppress(UsageError):
        return journal.boot_id(root)
    return UNSET


def _meter(asked: Asked) -> tuple[Found | None, str]:
    if asked.meter == "none":
        return None, "none: the run was told to read none"
    if asked.meter == LATER:
        return Found(LATER, "", ""), ""
    try:
        return found(asked.meter or "auto", asked.root, asked.allow_estimated), ""
    except UsageError as error:
        if asked.meter is not None:
            raise
        return None, error.text


def planned(plan: Plan, state: Powered, budget_given: bool) -> Plan:
    """The plan with levels, windows and the times that they take; what the caps do is not known yet."""
    least_ns = _ns(times_of(plan.profile, state.asked.times).least)
    power, window_us = power_of(plan.profile, state), _window_us(state)
    return with_power(plan, state.asked.names, power, least_ns, window_us, budget_given)


def power_of(profile: str, state: Powered) -> r.Power:
    """Meter and times of a run of this profile, without its levels."""
    times = times_of(profile, state.asked.times)
    return r.Power(
        meter=public_name(state.meter.name) if state.meter else "", problem=state.problem,
        scope=state.meter.scope if state.meter else "", provenance=state.meter.provenance if state.meter else "",
        cap_scope=state.open_.controls[0].scope if state.open_ is not None else "",
        settle_ns=max(_ns(times.settle), 5000 * _window_us(state)),
        idle_ns=_ns(times.idle) if state.meter else 0, uncapped_ns=_ns(times.uncapped), verify_ns=_ns(times.verify),
        total_ns=_ns(times.total), shortened=times != times_of(profile, None),
        boot_id=_boot_id(state.asked.root),
    )  # fmt: skip


def _window_us(state: Powered) -> int:
    """The time over which the caps act."""
    return max((one.window_us for one in state.open_.controls), default=0) if state.open_ is not None else 0


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def shown_caps(plan: Plan, state: Powered) -> Plan:
    """The plan with what ``shown`` adds to its power."""
    assert plan.powered is not None
    return msgspec.structs.replace(plan, power=shown(plan.powered, plan.caps, state))


def shown(power: r.Power, caps: Sequence[str], state: Powered) -> r.Power:
    """The power with the watts at rest, and with what each level was found to do under full load.

    UsageError where a level cannot be set: nothing was measured yet, and every limit is as before.
    """
    idle = at_rest(power, state)
    idle_w = energy(idle).watts if idle is not None else None
    known = {level.name: level for level in _shown(power, state, idle_w)}
    ordered = [known.get(name) or r.Level(name=name, state="as_found", text="limits as found") for name in caps]
    more = {"idle": log_record(idle)} if idle is not None else {}
    return msgspec.structs.replace(power, levels=ordered, **more)


def _shown(power: r.Power, state: Powered, idle_w: float | None) -> Iterator[r.Level]:
    asked, times = state.asked, _loads(power)
    if state.open_ is not None:
        gauge = gauge_for(state.gauge, state.open_.controls)
        if gauge is None or asked.capped[0].khz is not None:
            rows = unmeasured(asked.capped, state.open_)
        else:
            rows = judged(asked.capped, state.open_, gauge, times, idle_w)
        for value, row in rows:
            if State(row["state"]) not in STANDS:
                raise UsageError(row["state"], row["text"], f"--cap {row['level']}")
            yield _level(row["level"], row, value, power.cap_scope)
    if asked.external is not None:
        (row,) = external(asked.external, state.gauge, times)
        yield _level(asked.names[-1], row, None, asked.external.scope)


def _loads(power: r.Power) -> Loads:
    return Loads(0.0, power.uncapped_ns / 1e9, power.settle_ns / 1e9, power.verify_ns / 1e9)


def _level(name: str, row: dict[str, Any], value: int | None, scope: str) -> r.Level:
    return r.Level(
        name=name, state=row["state"], text=row["text"], watts=row["cap_watts"] or None, value=value, scope=scope,
        drawn_w=row.get("watts"), uncapped_w=row.get("uncapped_watts"), evidence=row.get("evidence", []),
        flags=row.get("flags", []),
    )  # fmt: skip


def at_rest(power: r.Power, state: Powered) -> Log | None:
    """What the meter says while this run does nothing, at the limits as they were found; None without a meter."""
    if state.meter is None or not power.idle_ns:
        return None
    if state.open_ is not None:
        session.give_back(state.open_)
        state.at = None
    if state.meter.name == LATER:
        return clocks.at_rest(power.idle_ns / 1e9)
    return watched(state.meter.name, state.asked.root, power.idle_ns / 1e9, state.asked.allow_estimated)


def log_record(log: Log) -> r.PowerLog:
    """The log as it is stored."""
    return msgspec.convert(public_log(dump(log)), r.PowerLog)
