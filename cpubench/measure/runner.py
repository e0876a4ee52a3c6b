"""A run: calibrate, plan, one block per pass until the stop, and the run file."""

from __future__ import annotations

import platform
import random
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from cpubench import __version__, _native
from cpubench.analysis.widths import headline_half_width
from cpubench.errors import UsageError
from cpubench.host.cpulist import format_cpulist
from cpubench.host.facts import collect, divisor
from cpubench.host.topology import read_topology
from cpubench.measure import folder as place
from cpubench.measure import plan as planning
from cpubench.measure import programs
from cpubench.measure.child import run_child
from cpubench.measure.variants import Host, Request, choose
from cpubench.results.files import sealed
from cpubench.results.load import load_block, load_plan
from cpubench.results.records import Block, Divisor, Plan

CAP = "as-is"
GIVE_UP = 3  # blocks in a row that failed as a whole


@dataclass
class Options:
    """What ``cpubench run`` was asked for; None is the profile's own."""

    profile: str = "standard"
    families: Sequence[str] | None = None
    copies: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    cpus: Sequence[int] | None = None
    workdir: Path | None = None
    out: Path | None = None
    budget_ns: int | None = None
    seed: int | None = None


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
        plan, facts = _draft(options)
        if options.workdir:
            place.check_workdir(options.workdir)
        folder = place.new_folder(options.out, facts["hostname"])
        state = State(folder, plan, facts, began_ns, float(plan.predicted_pass_ns))
        try:
            tell("calibrating", state)
            plan = state.plan = _calibrate(plan, folder, options.workdir or folder)
            state.pass_ns = float(plan.predicted_pass_ns)
            planning.check_budget(plan, state.spent_ns)
        except BaseException:
            place.remove_if_empty(folder, *([] if options.out else [folder.parent]))
            raise
        place.write_json(folder / "plan.json", msgspec.to_builtins(plan))
        _passes(state, options.workdir or folder, tell)
        return folder


def resume(folder: Path, tell: Tell, workdir: Path | None = None) -> Path:
    """The folder of a run that was killed, finished: its blocks stay as they are, the rest is measured."""
    with place.host_lock():
        if not (folder / "plan.json").exists():
            raise UsageError("resume", "holds no plan.json: nothing to resume", str(folder))
        plan, facts = load_plan(folder / "plan.json"), collect()
        if plan.cpubench != __version__ or plan.build != _build():
            raise UsageError("resume", f"was made by another build (cpubench {plan.cpubench}): start anew", str(folder))
        if plan.host_id != facts["id"]:
            raise UsageError("resume", "was made on another host: start anew", str(folder))
        if workdir:
            place.check_workdir(workdir)
        place.sweep(folder)
        state = State(folder.resolve(), plan, facts, time.monotonic_ns(), float(plan.predicted_pass_ns))
        while (file := _block_file(folder, len(state.blocks))).exists():
            state.blocks.append(load_block(file, plan))
        for times in (block.times for block in state.blocks):  # what they took of the budget
            state.began_ns -= times.ready_ns + times.prepare_ns + times.rounds_ns
        state.half_width = headline_half_width(plan, state.blocks) if state.blocks else None
        _passes(state, workdir or state.folder, tell)
        return state.folder


def measure_session(names: Sequence[str] | None, profile: str, out: Path) -> Path:
    """The folder of a run of just these variants (NAME@COPIES), below ``out``: for pytest."""

    def tell(event: str, state: State) -> None:
        print(f"cpubench: {event} {len(state.blocks)}", file=sys.stderr, flush=True)

    return run(Options(profile=profile, keys=names, out=out / "run"), tell)


def _draft(options: Options) -> tuple[Plan, dict[str, Any]]:
    planning.profile_of(options.profile)
    fault = programs.fault()
    if fault:
        raise UsageError("programs", fault)
    facts = collect()
    if options.cpus is not None and not options.cpus:
        raise UsageError("cpu", "the list of CPUs is empty", "--cpus")
    cores = read_topology(cpus=options.cpus).cores
    allowed = {cpu for core in read_topology().cores for cpu in core.cpus}
    for cpu in options.cpus or ():
        if cpu not in allowed:
            raise UsageError("cpu", f"CPU {cpu} is not allowed here; allowed: {format_cpulist(allowed)}", "--cpus")
    host = Host(cores, _cache_bytes(facts), facts["memory_bytes"])
    request = Request(options.profile, options.families, options.copies, options.keys)
    variants, skipped = choose(_native.kernels(), host, request)
    kind, n = divisor(facts, len(cores))
    plan = planning.draft(
        variants, skipped, run_id=secrets.token_hex(8), build=_build(), host_id=facts["id"] or "unknown",
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        seed=random.SystemRandom().randrange(2**32) if options.seed is None else options.seed,
        profile=options.profile, budget_ns=options.budget_ns, cpus=sorted(c for core in cores for c in core.cpus),
        divisor=Divisor(kind=kind, n=n), llc_bytes=facts["llc_bytes"],
    )  # fmt: skip
    return plan, facts


def _cache_bytes(facts: dict[str, Any]) -> dict[str, int | None]:
    found: dict[str, int | None] = {"L1": None, "L2": None, "L3": None}
    for cache in facts["caches"] or ():
        found[f"L{cache['level']}"] = cache["size_bytes"]
    return found


def _build() -> dict[str, Any]:
    """The build's compiler and flags, and hashes of the programs that run the kernels: equal hashes run equal code."""
    hashes = {"copy_sha256": programs.sha256(programs.COPY), "target_sha256": programs.sha256(programs.TARGET)}
    return {**_native.BUILD, **hashes, "static": "-static" in _native.BUILD["link"].split(";")[0]}


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


def _passes(state: State, workdir: Path, tell: Tell) -> None:
    """Measures until the stop; the run file is written whatever happens, once there is a block."""
    plan, failures, by = state.plan, 0, "interrupted"
    tell("planned", state)
    place.log(state.folder, "planned", id=plan.id, passes=len(state.blocks), predicted_pass_ns=plan.predicted_pass_ns)
    try:
        while True:
            index = len(state.blocks)
            why = planning.stop(plan, index, state.half_width, state.spent_ns, state.pass_ns)
            if why:
                by = why
                break
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
    finally:
        if state.blocks:
            _write_run(state, by)
            tell(f"stopped by {by}", state)


def _write_run(state: State, by: str) -> None:
    blocks = [msgspec.to_builtins(block) for block in state.blocks]
    width = None if state.half_width is None else round(state.half_width * 1e6)
    place.write_json(state.folder / "run.json", sealed({
        "schema": "cpubench.run/1", "plan": msgspec.to_builtins(state.plan), "host": state.facts,
        "imported": _imported(), "passes": [{"index": block["index"], "blocks": [block]} for block in blocks],
        "stopped": {"by": by, "passes": len(blocks), "half_width_ppm": width}, "notes": [],
    }))  # fmt: skip
    place.log(state.folder, "stopped", by=by, passes=len(blocks))


def _imported() -> dict[str, str]:
    """Versions of what the run used; the brand string comes from the module ``cpuinfo``, which two packages install."""
    found = {"python": platform.python_version(), "cpubench": __version__}
    for name in ("numpy", "scipy", "msgspec", "pytest-benchmark", "py-cpuinfo2", "py-cpuinfo"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
