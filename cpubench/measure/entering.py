"""Each block at its cap level: set, read back, left to act, and looked at again afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from msgspec import UnsetType

from cpubench.analysis.cells import BASE_CAP, EXTERNAL
from cpubench.errors import UsageError
from cpubench.measure.powered import Powered
from cpubench.power import caps, registers, session
from cpubench.power.standing import as_found
from cpubench.results.records import Block
from cpubench.results.windows import Level, Power

FINAL = ("cap_changed", "cap_lost", "not_given_back", "journal", "guardian")  # another try of the block helps nothing


def enter(state: Powered, power: Power, level: str) -> dict[str, Any]:
    """Sets a level, reads it back and waits until it acts; what the process that measures is told of meter and limits.

    A level that stands already is left alone: two blocks in a row may have the same one.
    """
    settle_ns = 0
    if state.open_ is not None and state.at != level:
        state.at = None
        if level == BASE_CAP or level.startswith(EXTERNAL):
            session.give_back(state.open_)
            state.took = as_found(state.open_)
        else:
            state.took = _set(state.open_, next(one for one in power.levels if one.name == level))
        settle_ns = power.settle_ns
        time.sleep(settle_ns / 1e9)
        state.at = level
    told: dict[str, Any] = {"root": str(state.asked.root), "allow_estimated": state.asked.allow_estimated}
    told |= {"meter": state.meter.name if state.meter else "", "limits": None}
    if state.open_ is not None:
        places, steps = _registers(state.open_)
        told["limits"] = {"settle_ns": settle_ns, "asked": state.took, "places": places, "steps": steps}
    return told


def _set(open_: session.Session, level: Level) -> dict[str, int]:
    """What the registers hold once the level is set, by key."""
    if level.value is None:
        raise UsageError("cap_lost", "was never shown to work in this run: start anew", f"--cap {level.name}")
    ceiling = caps.ceiling(open_.controls)
    if ceiling is not None and level.value > ceiling:  # the run goes on after another lowered the limit
        text = f"writes {level.value}, above the limit of {ceiling} that is in force now: start anew"
        raise UsageError("cap_lost", text, f"--cap {level.name}")
    applied = session.apply(open_, level.value)
    if not applied.stands:
        text = f"{applied.state.sentence} ({applied.text}); it could be set when the run began"
        raise UsageError("cap_lost", text, f"--cap {level.name}")
    return {**dict.fromkeys(_switches(open_), 1), **applied.read}


def check_as_found(state: Powered | None, blocks: Iterable[Block]) -> None:
    """None if the limits are found as they were around the blocks of a run that goes on; UsageError else: at its
    level without a cap two hosts would be one."""
    if state is None or state.open_ is None:
        return
    now = as_found(state.open_)
    for block in blocks:
        if isinstance(block.limits, UnsetType) or not (block.cap == BASE_CAP or block.cap.startswith(EXTERNAL)):
            continue
        if changed := block.limits.unlike(now):
            text = f"limits are not as the run found them: {'; '.join(changed)}: set them back, or start anew"
            raise UsageError("resume", text, f"pass {block.index} at {block.cap}")


def _switches(open_: session.Session) -> list[str]:
    return [one.enable.key for one in open_.controls if one.enable is not None and one.enable.value is not None]


def _registers(open_: session.Session) -> tuple[dict[str, str], dict[str, int]]:
    """Where each register of the caps is, and how far apart two values of it are the same, by key."""
    places, steps = {}, {}
    for control in open_.controls:
        for limit in (*control.capped, *([control.enable] if control.enable is not None else [])):
            places[limit.key] = limit.place
            steps[limit.key] = 1 if limit.constraint == "enabled" else control.step
    return places, steps


def check(state: Powered, level: str) -> None:
    """None if the limits still hold what was set; UsageError, which ends the run, where somebody else wrote to them."""
    if state.open_ is None:
        return
    places, steps = _registers(state.open_)
    found = []
    for key, asked in state.took.items():
        try:
            now = registers.read(state.open_.host, places[key])
        except OSError as error:
            found.append(f"{key}: {error.strerror}")
            continue
        if abs(now - asked) >= steps[key]:
            found.append(f"{key}: holds {now}, not {asked}")
    if found:
        text = f"something else changed a limit during the last block, which does not count: {'; '.join(found)}"
        raise UsageError("cap_changed", text, f"--cap {level}")
