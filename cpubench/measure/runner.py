"""A run: calibrate, plan, one block per pass until the stop, and the run file."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cpubench import __version__
from cpubench.analysis.reference import as_reference, load_reference
from cpubench.analysis.score import check_comparable
from cpubench.analysis.widths import headline_half_width
from cpubench.errors import Unfinished, UsageError
from cpubench.host.facts import collect
from cpubench.measure import build
from cpubench.measure import folder as place
from cpubench.measure import plan as planning
from cpubench.measure.child import run_child
from cpubench.measure.draft import Options, draft
from cpubench.results.files import sealed
from cpubench.results.load import load_block, load_plan
from cpubench.results.records import Block, Plan

CAP = "as-is"
GIVE_UP = 3  # blocks in a row that failed as a whole


@dataclass
class State:
    """A run on its way."""

    folder: Path
    plan: Plan
    facts: dict[str, Any]
    began_ns: int
    pass_ns: float  # how long a pass takes, as far as is known
    blocks: list[Block] = field(default_factory=list)
    half_width: float | None = None

    @property
    def spent_ns(self) -> int:
        return time.monotonic_ns() - self.began_ns

    @property
    def most_left_ns(self) -> int:
        return planning.most_left_ns(self.plan, len(self.blocks), self.spent_ns, self.pass_ns)


Tell = Callable[[str, State], None]  # ("calibrating" | "planned" | "pass" | "failed: ..", state), for a person


def run(options: Options, tell: Tell) -> Path:
    """The folder of a new, finished run. UsageError before anything was measured where it cannot be done."""
    with place.host_lock():
        began_ns = time.monotonic_ns()
        plan, facts = draft(options)
        workdir = options.workdir and place.check_workdir(options.workdir)
        folder, made = place.new_folder(options.out, facts["hostname"])
        state = State(folder, plan, facts, began_ns, float(plan.predicted_pass_ns))
        try:
            _warn(state, tell)
            tell("calibrating", state)
            plan = state.plan = _calibrate(plan, folder, workdir or folder)
            state.pass_ns = float(plan.predicted_pass_ns)
            planning.check_budget(plan, state.spent_ns)
            place.write_json(folder / "plan.json", msgspec.to_builtins(plan))
            return _passes(state, workdir or folder, tell)
        except KeyboardInterrupt as error:
            raise Unfinished(error, folder, 0) from None
        finally:
            if not state.blocks:
                place.discard(folder, made)


def resume(folder: Path, tell: Tell, workdir: Path | None = None) -> Path:
    """The folder of a run that was killed, finished: its blocks stay as they are, the rest is measured."""
    with place.host_lock():
        if not (folder / "plan.json").exists():
            raise UsageError("resume", "holds no plan.json: nothing to resume", str(folder))
        plan, facts = load_plan(folder / "plan.json"), collect()
        if plan.cpubench != __version__ or plan.build != build.build():
            raise UsageError("resume", f"was made by another build (cpubench {plan.cpubench}): start anew", str(folder))
        if plan.host_id != facts["id"]:
            raise UsageError("resume", "was made on another host: start anew", str(folder))
        workdir = workdir and place.check_workdir(workdir)
        place.sweep(folder)
        state = State(folder.resolve(), plan, facts, time.monotonic_ns(), float(plan.predicted_pass_ns))
        _load_finished(state)
        took_ns = [planning.took_ns(block.times) for block in state.blocks]
        state.began_ns -= sum(took_ns)  # of the budget
        state.pass_ns = float(max(took_ns, default=state.pass_ns))
        _warn(state, tell)
        return _passes(state, workdir or state.folder, tell)


def measure_session(names: Sequence[str] | None, profile: str, out: Path) -> Path:
    """The folder of a run of just these variants (NAME@COPIES), below ``out``: for pytest."""

    def tell(event: str, state: State) -> None:
        print(f"cpubench: {event} {len(state.blocks)}", file=sys.stderr, flush=True)

    try:
        return run(Options(profile=profile, keys=names, out=out / "run"), tell)
    except Unfinished as error:
        if error.code == "interrupted":  # what ends a session of pytest
            raise KeyboardInterrupt(error.text) from None
        raise


def _warn(state: State, tell: Tell) -> None:
    """Tells at the start what else only the score would say, after all of the measuring."""
    try:
        check_comparable(state.plan, as_reference(load_reference()))
    except UsageError as error:
        tell(f"warning: this run will have no score by itself: {error}", state)


def _calibrate(plan: Plan, folder: Path, workdir: Path) -> Plan:
    draft, out = folder / ".draft.json", folder / ".calibration.json"
    try:
        place.write_json(draft, msgspec.to_builtins(plan))
        run_child("cpubench.measure.calibrate", [str(draft), str(out)], workdir, random.Random(plan.seed))
        return planning.sized(plan, msgspec.json.decode(out.read_bytes()))
    finally:
        draft.unlink(missing_ok=True)
        out.unlink(missing_ok=True)


def _block_file(folder: Path, index: int) -> Path:
    return folder / f"block-{index:03d}-{CAP}.json"


def _load_finished(state: State) -> None:
    while (file := _block_file(state.folder, len(state.blocks))).exists():
        state.blocks.append(load_block(file, state.plan))
    state.half_width = headline_half_width(state.plan, state.blocks) if state.blocks else None


def _passes(state: State, workdir: Path, tell: Tell) -> Path:
    """The run's folder, after its stop. Once there is a block the run file is written, whatever happens; Unfinished
    where it was no stop that ended the run."""
    plan, by = state.plan, "failed"
    tell("planned", state)
    place.log(state.folder, "planned", id=plan.id, passes=len(state.blocks), predicted_pass_ns=plan.predicted_pass_ns)
    try:
        try:
            by = _until_stop(state, workdir, tell)
        except KeyboardInterrupt:
            by = "interrupted"
            _load_finished(state)  # the last one's file may be there, and its process still at its end
            raise
        finally:
            if state.blocks:
                _write_run(state, by)
                tell(f"stopped by {by}", state)
    except (UsageError, KeyboardInterrupt) as error:
        raise Unfinished(error, state.folder, len(state.blocks)) from None
    return state.folder


def _until_stop(state: State, workdir: Path, tell: Tell) -> str:
    """Measures block after block; why it stopped. UsageError after too many failures in a row."""
    plan, failures = state.plan, 0
    while True:
        index = len(state.blocks)
        why = planning.stop(plan, index, state.half_width, state.spent_ns, state.pass_ns)
        if why:
            return why
        file, start_ns = _block_file(state.folder, index), time.monotonic_ns()
        arguments = [str(state.folder / "plan.json"), str(index), CAP, str(file)]
        try:
            rng = random.Random(f"{plan.seed}:{index}:{failures}")
            run_child("cpubench.measure.block", arguments, workdir, rng)
            state.blocks.append(load_block(file, plan))
            failures = 0
        except UsageError as error:
            failures += 1
            place.log(state.folder, "block_failed", index=index, reason=str(error))
            tell(f"failed: {error}", state)
            if failures == GIVE_UP:
                raise
            continue
        # The slowest so far, but not the prediction: that holds first touches, which later passes do not pay.
        state.pass_ns = max(state.pass_ns if index else 0.0, float(time.monotonic_ns() - start_ns))
        state.half_width = headline_half_width(plan, state.blocks)
        place.log(state.folder, "pass", index=index, half_width=state.half_width)
        tell("pass", state)


def _write_run(state: State, by: str) -> None:
    blocks = [msgspec.to_builtins(block) for block in state.blocks]
    width = None if state.half_width is None else round(state.half_width * 1e6)
    place.write_json(state.folder / "run.json", sealed({
        "schema": "cpubench.run/1", "plan": msgspec.to_builtins(state.plan), "host": state.facts,
        "imported": build.imported(), "passes": [{"index": block["index"], "blocks": [block]} for block in blocks],
        "stopped": {"by": by, "passes": len(blocks), "half_width_ppm": width}, "notes": [],
    }))  # fmt: skip
    place.log(state.folder, "stopped", by=by, passes=len(blocks))
