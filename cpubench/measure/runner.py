"""A run: calibrate, plan, passes until the stop, and the run file."""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from cpubench import __version__
from cpubench.analysis.reference import BASE_CAP, as_reference, load_reference
from cpubench.analysis.score import check_comparable
from cpubench.errors import NotGivenBack, Unfinished, UsageError
from cpubench.host.facts import collect, elsewhere, unlike
from cpubench.measure import build, child
from cpubench.measure import folder as place
from cpubench.measure import plan as planning
from cpubench.measure.asked import Asked
from cpubench.measure.draft import Options, draft
from cpubench.measure.entering import check_as_found
from cpubench.measure.levels import predicted
from cpubench.measure.passes import State, Tell, measure_passes
from cpubench.measure.powered import asked_again, planned, powered, shown_caps
from cpubench.measure.room import check_tasks
from cpubench.measure.sides import Side, at_levels, resumed_sides, turns_document, two_sides
from cpubench.power.registers import Host
from cpubench.power.standing import in_force
from cpubench.results.gather import TURNS
from cpubench.results.load import load_plan
from cpubench.results.records import Plan
from cpubench.results.signature import signature_of


def run(options: Options, tell: Tell) -> Path:
    """The folder of a new, finished run. UsageError before anything was measured where it cannot be done."""
    with contextlib.nullcontext() if options.locked else place.host_lock():
        began_ns = time.monotonic_ns()
        power = options.power or Asked()
        in_force(Host(power.root), told=power.external is not None)
        plan, facts = draft(options)
        check_tasks(plan.variants)
        workdir = options.workdir and place.check_workdir(options.workdir)
        folder, made = place.new_folder(options.out, facts["hostname"])
        state = State(folder, [Side(folder, plan)], facts, began_ns, float(plan.predicted_pass_ns))
        try:
            if options.turns:
                state.sides = two_sides(folder, plan, options.prefix, options.settings)
            with _naming(state), powered(power) as state.powered:
                if state.powered is not None:
                    plan = planned(plan, state.powered, options.budget_ns is not None)
                    state.sides = at_levels(folder, plan)
                _warn(state, tell)
                tell("calibrating", state)
                _calibrate(state, workdir or folder)
                planning.check_budget(state.plan, state.spent_ns, state.pass_ns)
                if state.powered is not None:
                    tell(predicted(state.plan), state)
                    plan = shown_caps(state.plan, state.powered)
                    state.sides = at_levels(folder, plan)
                _write_plans(state, options)
                return measure_passes(state, workdir or folder, tell)
        except KeyboardInterrupt as error:
            raise Unfinished(error, folder, state.passes) from None
        finally:
            if not state.passes:
                place.discard(folder, made)


@contextlib.contextmanager
def _naming(state: State) -> Iterator[None]:
    """Nothing; where a limit could not be given back it is also said where the run is."""
    try:
        yield
    except NotGivenBack as error:
        if state.passes:
            error.text += f"; {state.passes} passes are kept in {state.folder}"
        raise


def resume(folder: Path, tell: Tell, workdir: Path | None = None, power: Asked | None = None) -> Path:
    """The folder of a run that was killed, finished: its blocks stay as they are, the rest is measured.

    Of ``power`` only the root counts, and the meter where that was a command or a URL, which no plan holds.
    """
    power = power or Asked()
    with place.host_lock():
        if not (folder / "plan.json").exists() and not (folder / TURNS).exists():
            raise UsageError("resume", "holds no plan.json: nothing to resume", str(folder))
        folder = folder.resolve()
        facts, sides = collect(), resumed_sides(folder, load_plan)
        plan = sides[0].plan
        if plan.cpubench != __version__ or plan.build != build.build():
            raise UsageError("resume", f"was made by another build (cpubench {plan.cpubench}): start anew", str(folder))
        if plan.host_id != (facts["id"] or "unknown"):
            raise UsageError("resume", "was made on another host: start anew", str(folder))
        if elsewhere(plan.stood, facts):
            text = "may be of another machine with this one's id: its boot and its host name were others: start anew"
            raise UsageError("resume", text, str(folder))
        if changed := unlike(plan.stood, facts):
            text = f"this host is not as it was when the run began ({', '.join(changed)}): start anew"
            raise UsageError("resume", text, str(folder))
        check_tasks(plan.variants)
        again = asked_again(plan, power)
        in_force(Host(power.root), told=again.external is not None)
        workdir = workdir and place.check_workdir(workdir)
        place.sweep(folder)
        predicted_ns = float(plan.predicted_pass_ns) * (len(sides) if plan.side is not None else 1)
        state = State(folder, sides, facts, time.monotonic_ns(), predicted_ns)
        for side in sides:
            place.sweep(side.folder)
            side.load_finished()
        state.look()
        took_ns = [[planning.took_ns(plan, block) for block in side.blocks] for side in sides]
        aside_ns = [planning.took_ns(plan, block) for side in sides for block in side.set_aside.values()]
        state.began_ns -= sum(map(sum, took_ns)) + sum(aside_ns)  # of the budget
        state.pass_ns = float(max(map(sum, zip(*took_ns, strict=False)), default=state.pass_ns))
        _warn(state, tell)
        if any(signature_of(side.folder / "run.json").exists() for side in sides):
            tell("warning: run.json is written anew, and its signature removed: --sign makes another", state)
        with _naming(state), powered(again) as state.powered:
            check_as_found(state.powered, [b for side in sides for b in (*side.blocks, *side.set_aside.values())])
            return measure_passes(state, workdir or state.folder, tell)


def measure_session(names: Sequence[str] | None, profile: str, out: Path) -> Path:
    """The folder of a run of just these variants (NAME@COPIES), below ``out``: for pytest."""

    def tell(event: str, state: State) -> None:
        print(f"cpubench: {event} {state.passes}", file=sys.stderr, flush=True)

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
    power = state.plan.powered
    if power is not None and power.problem:
        tell(f"warning: no meter: {power.problem}", state)
    if power is not None and power.comes_later:
        tell(
            "warning: watts are to be merged: write a CSV of Unix time and watts from now on until after the end", state
        )
    if BASE_CAP not in state.plan.caps:
        tell("warning: without the level as-is there are no scores per core, and no ratios to an uncapped host", state)


def _calibrate(state: State, workdir: Path) -> None:
    """Gives the plans of all sides the same sizes: those of this build without settings."""
    found = _calibration(state.plan, state.folder, workdir)
    for side in state.sides:
        side.plan = planning.sized(side.plan, found)
    runs = state.sides if state.turns else state.sides[:1]
    state.pass_ns = float(sum(side.plan.predicted_pass_ns for side in runs))


def _calibration(plan: Plan, folder: Path, workdir: Path) -> dict[str, object]:
    drafted, out = folder / ".draft.json", folder / ".calibration.json"
    try:
        place.write_json(drafted, msgspec.to_builtins(plan))
        arguments = [str(drafted), str(out)]
        child.run_child("cpubench.measure.calibrate", arguments, workdir, random.Random(plan.seed))
        found: dict[str, object] = msgspec.json.decode(out.read_bytes())
        return found
    finally:
        drafted.unlink(missing_ok=True)
        out.unlink(missing_ok=True)


def _write_plans(state: State, options: Options) -> None:
    for side in state.sides if state.turns else state.sides[:1]:
        place.make(side.folder)
        place.write_json(side.folder / "plan.json", msgspec.to_builtins(side.plan))
    if options.turns:
        place.write_json(state.folder / TURNS, turns_document(options.prefix, options.settings))
