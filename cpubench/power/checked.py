"""Cap levels one after the other, each set, judged, and given back at the end: the rows of ``power verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cpubench.errors import UsageError
from cpubench.power import caps, session
from cpubench.power.levels import External, Level
from cpubench.power.registers import Host
from cpubench.power.states import CAP_CHANGED, CAP_CHANGED_SENTENCE, State
from cpubench.power.verdict import Readings, Verdict, judge
from cpubench.power.verify import Drawn, Gauge, Load, Times, drawn, full_load, gauge_for, verify, verify_external

Row = dict[str, Any]


def checked(
    levels: Sequence[Level], host: Host, gauge: Gauge | None, times: Times, load: Load = full_load
) -> list[Row]:  # fmt: skip
    """A row for each level. Bad ones are refused before the first load where that can be known."""
    if any(level.khz is not None or level.name == "as-is" for level in levels):
        raise UsageError("level", "only caps in watts or per cent can be verified", "--cap")
    with session.capping(host) as open_:
        mine = gauge_for(gauge, open_.controls)
        check_levels(levels, open_, mine)
        at_rest = mine.watch(times.idle_s) if mine is not None else None
        idle_w = sum(at_rest) / len(at_rest) if at_rest else None
        return [row for _, row in judged(levels, open_, mine, times, idle_w, load)]


def check_levels(levels: Sequence[Level], open_: session.Session, gauge: Gauge | None) -> None:
    """UsageError for the first level that cannot be set here, as far as that is known without a load."""
    for level in levels:
        if level.percent is None or gauge is None:
            caps.value_of(level, open_.controls)


def judged(
    levels: Sequence[Level], open_: session.Session, gauge: Gauge | None, times: Times, idle_w: float | None,
    load: Load = full_load,
) -> list[tuple[int, Row]]:  # fmt: skip
    """What each level writes to a register, and its row, one after the other under full load; then given back."""
    for level in levels:
        if level.percent is None:
            caps.value_of(level, open_.controls, idle_w=idle_w)
    uncapped = drawn(gauge, times.settle_s, times.uncapped_s, load)
    values = [caps.value_of(level, open_.controls, uncapped.mean_w, idle_w) or 0 for level in levels]
    rows = []
    for level, value in zip(levels, values, strict=True):
        rows.append((value, _row(open_, level, value, gauge, uncapped, times, load)))
        session.give_back(open_)
    return rows


def unmeasured(levels: Sequence[Level], open_: session.Session) -> list[tuple[int, Row]]:
    """The same without a meter, where a load would show nothing: whether each level can be written and reads back."""
    rows = []
    for level in levels:
        value = caps.value_of(level, open_.controls) or 0
        applied = session.apply(open_, value)
        verdict = judge(applied.state, Readings(0.0))
        text = f"{verdict.sentence} ({applied.text})" if applied.text else verdict.sentence
        total_w = 0.0 if level.khz is not None else value * len(open_.controls) / 1e6
        rows.append((value, _document(level.name, total_w, verdict, None, [], text)))
        session.give_back(open_)
    return rows


def _row(
    open_: session.Session, level: Level, value: int, gauge: Gauge | None, uncapped: Drawn, times: Times, load: Load
) -> Row:
    applied, verdict, flags = verify(open_, value, gauge, uncapped, times, load)
    changed = session.changed(open_) if applied.stands else []
    text = f"{verdict.sentence} ({applied.text})" if applied.text else verdict.sentence
    if changed:
        verdict = replace(verdict, state=State.SET_UNVERIFIED)
        flags, text = [*flags, CAP_CHANGED], f"{text}; {CAP_CHANGED_SENTENCE}: {'; '.join(changed)}"
    return _document(level.name, value * len(open_.controls) / 1e6, verdict, uncapped, flags, text)


def external(cap: External, gauge: Gauge | None, times: Times, load: Load = full_load) -> list[Row]:
    """The row of a cap that somebody else has set; without a meter of what it limits it is said, and no load runs."""
    mine = gauge if gauge is not None and gauge.scope == cap.scope else None
    if mine is not None:
        verdict = verify_external(cap.watts, mine, None, times, load)
    else:
        verdict = judge(State.SET_UNVERIFIED, Readings(cap.watts), external=True)
    other = f": it limits {cap.scope}, the meter reads {gauge.scope}" if gauge is not None and mine is None else ""
    return [_document(f"external {cap.text}", cap.watts, verdict, None, [], f"{verdict.sentence}{other}")]


def _document(name: str, watts: float, verdict: Verdict, uncapped: Drawn | None, flags: list[str], text: str) -> Row:
    return {
        "level": name, "cap_watts": watts, "state": verdict.label, "text": text, "evidence": list(verdict.evidence),
        "flags": flags, "watts": verdict.mean_w, "uncapped_watts": uncapped.mean_w if uncapped else None,
    }  # fmt: skip
