"""The passes of a run: block after block until the stop, flagged ones once more, and the run files."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cpubench.analysis.cells import BASE_CAP
from cpubench.analysis.flags import block_flags
from cpubench.analysis.widths import headline_half_width
from cpubench.errors import Unfinished, UsageError
from cpubench.measure import build, child
from cpubench.measure import folder as place
from cpubench.measure import plan as planning
from cpubench.measure.entering import FINAL, check, enter
from cpubench.measure.powered import Powered, at_rest, log_record
from cpubench.measure.sides import Side
from cpubench.results.files import sealed
from cpubench.results.load import load_block
from cpubench.results.orders import level_order
from cpubench.results.records import Block, Plan
from cpubench.results.signature import signature_of
from cpubench.results.windows import PowerLog

GIVE_UP = 3  # blocks in a row that failed as a whole


@dataclass
class State:
    """A run on its way."""

    folder: Path
    sides: list[Side]
    facts: dict[str, Any]
    began_ns: int
    pass_ns: float  # how long a pass takes, of all sides, as far as is known
    half_width: float | None = None
    powered: Powered | None = None
    idle_after: PowerLog | None = None

    @property
    def turns(self) -> bool:
        """Whether two sides take turns; else all sides are the cap levels of one run."""
        return self.plan.side is not None

    @property
    def plan(self) -> Plan:
        return self.sides[0].plan

    @property
    def passes(self) -> int:
        return min(len(side.blocks) for side in self.sides)

    @property
    def stored(self) -> int:
        """Passes of the run file: of cap levels a cut one among them, which lacks some."""
        return self.passes if self.turns else max(len(side.blocks) for side in self.sides)

    @property
    def spent_ns(self) -> int:
        return time.monotonic_ns() - self.began_ns

    @property
    def most_left_ns(self) -> int:
        return planning.most_left_ns(self.plan, self.passes, self.spent_ns, self.pass_ns)

    def look(self) -> None:
        """Finds how wide the headline quantities are: of the run, or of the ratio of two sides."""
        if not self.passes:
            self.half_width = None
        elif self.turns:
            self.half_width = headline_half_width(self.plan, self.sides[0].blocks, self.sides[1].blocks)
        else:
            levels = {side.cap: side.blocks[: self.passes] for side in self.sides}
            self.half_width = headline_half_width(self.plan, levels.get(BASE_CAP, []), levels=levels)


# ("calibrating" | "planned" | "pass" | "again: .." | "failed: .." | "stopped by ..", state), for a person
Tell = Callable[[str, State], None]


def measure_passes(state: State, workdir: Path, tell: Tell) -> Path:
    """The run's folder, after its stop. Once there is a block the run file is written, whatever happens; Unfinished
    where it was no stop that ended the run."""
    plan, by = state.plan, "failed"
    tell("planned", state)
    place.log(state.folder, "planned", id=plan.id, passes=state.passes, predicted_pass_ns=plan.predicted_pass_ns)
    try:
        try:
            by = _until_stop(state, workdir, tell)
            if state.powered is not None and plan.powered is not None:
                log = at_rest(plan.powered, state.powered)
                state.idle_after = None if log is None else log_record(log)
        except KeyboardInterrupt:
            by = "interrupted"
            for side in state.sides:  # the last one's file may be there, and its process still at its end
                side.load_finished()
            state.look()
            raise
        finally:
            if state.passes and not any(place.gone(side.folder) for side in state.sides):
                try:
                    _write_runs(state, by)
                except KeyboardInterrupt:  # the first of signals, and the last: others are ignored from then on
                    _write_runs(state, by)
                    raise
                place.log(state.folder, "stopped", by=by, passes=state.stored)
                tell(f"stopped by {by}", state)
    except (UsageError, KeyboardInterrupt) as error:
        _check_there(state)
        raise Unfinished(error, state.folder, state.passes) from None
    _check_there(state)
    return state.folder


def _check_there(state: State) -> None:
    """UsageError where a run folder is gone, and with it what was measured."""
    for side in state.sides:
        if place.gone(side.folder):
            text = f"is gone (removed, renamed or unmounted), and with it {len(side.blocks)} passes"
            raise UsageError("vanished", text, str(side.folder))


def _until_stop(state: State, workdir: Path, tell: Tell) -> str:
    """Measures pass after pass; why it stopped. UsageError after too many failures in a row."""
    plan, failures = state.plan, 0
    while True:
        index, took_ns = state.passes, 0
        why = planning.stop(plan, index, state.half_width, state.spent_ns, state.pass_ns)
        if why:
            return why
        try:
            for side in _turns(state, index):
                took_ns += _measure(state, side, failures, workdir, tell)
            failures = 0
        except UsageError as error:
            _check_there(state)
            failures += 1
            state.look()  # a repeat that failed leaves its first one, with which the pass may be whole
            place.log(state.folder, "block_failed", index=index, reason=str(error))
            tell(f"failed: {error}", state)
            if failures == GIVE_UP or error.code in FINAL:
                raise
            continue
        # The slowest so far, but not the prediction: that holds first touches, which later passes do not pay.
        state.pass_ns = max(state.pass_ns if index else 0.0, float(took_ns))
        state.look()
        place.log(state.folder, "pass", index=index, half_width=state.half_width)
        tell("pass", state)


def _turns(state: State, index: int) -> list[Side]:
    """The sides, or the cap levels, that lack the block of this pass, in the order of their turns."""
    order = list(state.sides)
    if state.turns:
        random.Random(f"{state.plan.seed}:{index}:turns").shuffle(order)
    else:
        order.sort(key=lambda side: level_order(state.plan.seed, state.plan.caps, index).index(side.cap))
    return [side for side in order if len(side.blocks) == index]


def _measure(state: State, side: Side, failures: int, workdir: Path, tell: Tell) -> int:
    """The nanoseconds that the block of a side's next pass took. Where it is flagged it is measured once more, and that
    one counts, whatever it says."""
    index, start_ns = len(side.blocks), time.monotonic_ns()
    block = _block(state, side, index, f"{failures}", workdir)
    took_ns, flagged = time.monotonic_ns() - start_ns, side.add(block)
    if flagged and planning.may_repeat(side.plan, side.flagged, index + 1, state.spent_ns, took_ns):
        names = [flag.value for flag in block_flags(side.plan, block)]
        place.log(side.folder, "again", index=index, flags=names)
        tell(f"again: pass {index + 1}, {', '.join(names)}", state)
        side.replace(_block(state, side, index, f"{failures}:again", workdir, again=True))
    return took_ns


def _block(state: State, side: Side, index: int, attempt: str, workdir: Path, again: bool = False) -> Block:
    file = side.block_file(index, again)
    told = []
    if state.powered is not None and side.plan.powered is not None:
        told = [json.dumps(enter(state.powered, side.plan.powered, side.cap))]
    arguments = [str(side.folder / "plan.json"), str(index), side.cap, *told, str(file)]
    rng = random.Random(f"{side.plan.seed}:{index}:{attempt}")
    child.run_child("cpubench.measure.block", arguments, workdir, rng, side.installed)
    if state.powered is not None:
        try:
            check(state.powered, side.cap)
        except UsageError:  # it does not count: no resume may find it
            file.unlink(missing_ok=True)
            raise
    return load_block(file, side.plan)


def _as_written(file: Path) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise UsageError("missing", f"was finished and cannot be read again: {error.strerror}", str(file)) from None


def _write_runs(state: State, by: str) -> None:
    for side in state.sides if state.turns else state.sides[:1]:
        write_run(state, side, by)


def write_run(state: State, side: Side, by: str) -> None:
    """Writes the ``run.json`` of a side, with its blocks as their files have them: their seals are of every word.

    Cap levels are one run: the first of them stands for all.
    """
    levels = [side] if state.turns else state.sides
    passes = [_pass(state, levels, index) for index in range(max(len(level.blocks) for level in levels))]
    width = None if state.half_width is None else round(state.half_width * 1e6)
    idle = {} if state.idle_after is None else {"idle_after": msgspec.to_builtins(state.idle_after)}
    signature_of(side.folder / "run.json").unlink(missing_ok=True)  # of the file that this one takes the place of
    place.write_json(side.folder / "run.json", sealed({
        "schema": "cpubench.run/1", "plan": msgspec.to_builtins(side.plan), "host": state.facts,
        "imported": build.imported(), "passes": passes,
        "stopped": {"by": by, "passes": len(passes), "half_width_ppm": width}, "notes": [], **idle,
    }))  # fmt: skip


def _pass(state: State, levels: list[Side], index: int) -> dict[str, Any]:
    """A pass of the run file, its levels in the order of their turns; one that was cut lacks some."""
    order = level_order(state.plan.seed, state.plan.caps, index)
    files: dict[bool, list[Path]] = {False: [], True: []}
    for level in sorted(levels, key=lambda level: order.index(level.cap)):
        if index < len(level.blocks):
            aside = index in level.set_aside
            files[False].append(level.block_file(index, again=aside))
            files[True] += [level.block_file(index)] * aside
    counts, others = ([_as_written(file) for file in files[aside]] for aside in (False, True))
    return {"index": index, "blocks": counts, "set_aside": others}
