"""Validation of runs: what follows from the rest of a file, or stands in the files beside it, is computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpubench import __version__
from cpubench.analysis.cells import blocks_at
from cpubench.analysis.composite import MIN_PASSES
from cpubench.analysis.flags import check_set_aside
from cpubench.analysis.reference import BASE_CAP
from cpubench.analysis.widths import headline_half_width
from cpubench.bench.beside import check_export
from cpubench.errors import UsageError
from cpubench.host.facts import unlike
from cpubench.measure.levels import check_times
from cpubench.measure.profiles import PROFILES, SAMPLE_NS
from cpubench.recheck_host import check_allowed, check_cache, check_divisor, not_ours
from cpubench.recheck_tasks import validated_tasks
from cpubench.results.gather import run_files, task_files
from cpubench.results.load import load_run, validate
from cpubench.results.log import check_log
from cpubench.results.parse import shown
from cpubench.results.records import Block, Plan, Run
from cpubench.results.signature import signature_of, signer

Json = dict[str, Any]
CLOSE = 1e-6  # relative: another numpy, or another processor, may end in other digits


def validated(path: Path, signers: Path | None = None) -> Json:
    """What the valid run of a path holds, or the valid runs of a folder of runs; UsageError with the first fault.

    Where there are ``signers``, each run must be signed by one of them.
    """
    tasks = task_files(path)
    try:
        files = [] if tasks == [path] else run_files(path)
    except UsageError as fault:
        if not tasks or fault.code not in ("not_a_run", "tasks"):
            raise
        files = []
    if not tasks and files in ([path], [path / "run.json"], [path / "run.json.gz"]):
        return _validated(path, files[0], signers)
    found = [_validated(file.parent, file, signers) for file in files]
    found += [validated_tasks(file, signers) for file in tasks]
    own = [*tasks, *(file.parent for file in tasks)]
    return found[0] if len(found) == 1 and path in own else {"valid": True, "runs": found}


def _validated(path: Path, file: Path, signers: Path | None) -> Json:
    by = None if signers is None else signer(file, signers)  # first: it tells most, and all else may be forged
    rechecks = (check_host, check_profile, check_stop)
    found = validate(path, check_export, check_log, judges=(check_set_aside,), rechecks=rechecks)
    if signers is None and signature_of(file).exists():
        found["unchecked"].append("the signature: give --signers FILE to know who made it")
    return found | {"signed_by": by}


def check_host(_: Path, run: Run) -> list[str]:
    """Nothing unchecked but where the host's id is from; UsageError where its facts are not those of the plan."""
    host, plan = run.host, run.plan
    known = host.get("id") or "unknown"
    if known != plan.host_id:
        text = f"is {shown(str(known), 20)}, the plan was made on {shown(plan.host_id, 20)}: another host's facts"
        raise UsageError("host", text, "host.id")
    check_cache(host, plan.cpus, plan.llc_bytes)
    if changed := unlike(plan.stood, host):
        raise UsageError("host", f"is not that of the plan: {', '.join(changed)}", f"host.{changed[0]}")
    check_allowed(host, plan.cpus)
    check_divisor(host, plan.cpus, plan.divisor, "plan.divisor")
    return ["the facts of the host beyond the plan: its id also hashes a machine-id, which is not stored"]


def check_profile(_: Path, run: Run) -> list[str]:
    """Nothing unchecked, but of another version; UsageError where a plan breaks the rules of its profile."""
    plan = run.plan
    if plan.cpubench != __version__:
        return [f"the rules of the profile: {not_ours(plan.cpubench)}"]
    profile = PROFILES[plan.profile]
    rules = {name: getattr(profile, name) for name in ("samples", "min_passes", "max_passes", "target_ppm")}
    if plan.powered is not None and any(cap != BASE_CAP for cap in plan.caps):
        rules["min_passes"] = MIN_PASSES
    for name, wanted in (rules | {"sample_ns": SAMPLE_NS}).items():
        told = getattr(plan, name)
        if told != wanted:
            raise UsageError("profile", f"is {told}, {plan.profile} has {wanted}", f"plan.{name}")
    if plan.powered is not None:
        check_times(plan)
    return []


def check_stop(file: Path, run: Run) -> list[str]:
    """What could not be computed anew; UsageError where the run is not as wide as it says, or did not stop there."""
    plan, stopped = run.plan, run.stopped
    if plan.cpubench != __version__:
        return [f"the half-width and the stop: {not_ours(plan.cpubench)}"]
    levels = {cap: blocks_at(run, cap) for cap in plan.caps}
    blocks, other = levels[plan.caps[0]], None
    if plan.side is not None:
        other = _other_blocks(file, run)
        if other is None:
            return ["the half-width and the stop: they are of two sides, and the other is not beside it"]
    passes = len(blocks) if other is None else min(len(blocks), len(other))
    widths = [_half_width(plan, levels, other, count) for count in (passes, passes - 1)]
    told, found = stopped.half_width_ppm, None if widths[0] is None else widths[0] * 1e6
    same = told is found if told is None or found is None else abs(told - found) <= 1.5 + CLOSE * found
    if not same:
        text = f"is {told}; computed anew it is {None if found is None else round(found)}"
        raise UsageError("half_width", text, "stopped.half_width_ppm")
    _check_reason(run, passes, found)
    target = plan.target_ppm * (1 - CLOSE)
    if widths[1] is not None and len(blocks) > plan.min_passes and widths[1] * 1e6 < target:
        raise UsageError("stop", "the run had reached its target a pass before, and went on", "stopped")
    return []


def _check_reason(run: Run, passes: int, half_width_ppm: float | None) -> None:
    plan, by = run.plan, run.stopped.by
    narrow = half_width_ppm is not None and half_width_ppm <= plan.target_ppm * (1 + CLOSE)
    could = {"target": narrow and passes >= plan.min_passes, "max": passes >= plan.max_passes,
             "budget": plan.budget_ns > 0}.get(by, True)  # fmt: skip
    if not could or passes > plan.max_passes:
        raise UsageError("stop", f"a run of {passes} passes by this plan was not stopped by '{by}'", "stopped.by")


def _half_width(plan: Plan, levels: Mapping[str, list[Block]], other: list[Block] | None, count: int) -> float | None:
    """The widest half-width after so many passes."""
    if count < 1:
        return None
    some = {cap: blocks[:count] for cap, blocks in levels.items()}
    return headline_half_width(plan, some.get(BASE_CAP, []), None if other is None else other[:count], some)


def _other_blocks(file: Path, run: Run) -> list[Block] | None:
    """The blocks of the side that took turns with this one, from the folder beside; None where there is none."""
    side = run.plan.side
    label = "b" if side is not None and side.label == "a" else "a"
    beside = file.absolute().parent.parent / label / "run.json"
    if side is None or not beside.exists():
        return None
    there = load_run(beside)
    if there.plan.side is None or (there.plan.side.pair, there.plan.side.label) != (side.pair, label):
        raise UsageError("side", "the run beside it did not take turns with this one", "plan.side")
    # Both were computed from the sides in their order, whose ratio is as wide either way.
    return blocks_at(there, BASE_CAP)
