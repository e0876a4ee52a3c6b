"""Validation of runs of tasks: steps, inputs, divisor and order are computed anew; nothing else tells the times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import UnsetType

from cpubench import __version__
from cpubench.errors import UsageError
from cpubench.measure.levels import TIMES, check_power_times
from cpubench.recheck_host import check_allowed, check_divisor, not_ours
from cpubench.results.load_tasks import TICK_NS, load_tasks
from cpubench.results.parse import located, shown
from cpubench.results.signature import signature_of, signer
from cpubench.results.task_records import Repeat, TaskRow, TaskRun, windowed
from cpubench.tasks import catalogue, inputs
from cpubench.tasks.document import SUITE
from cpubench.tasks.plan import PROFILES, Options, window_s
from cpubench.tasks.steps import Place

Json = dict[str, Any]
NOWHERE = Place("", "", "", "", "")  # where the steps are done is no part of what they are
SPARE = 1.02  # of CPU time: the kernel shares it out between user and system anew at each look


def validated_tasks(file: Path, signers: Path | None = None) -> Json:
    """What a valid ``tasks.json`` holds; UsageError with the first fault. Where there are ``signers``, one of them must
    have signed it."""
    by = None if signers is None else signer(file, signers)
    run = load_tasks(file)
    unchecked = ["the times of steps, and the facts of the host beyond its CPUs: nothing else in the file tells them"]
    try:
        check_allowed(run.host, run.cpus)
        check_divisor(run.host, run.cpus, run.divisor, "divisor")
        if not isinstance(run.powered, UnsetType) and run.profile in TIMES:
            check_power_times(run.powered, run.profile, "power")
        if (run.cpubench, run.suite) == (__version__, SUITE):
            _check_suite(run)
        else:
            unchecked.append(f"steps and inputs of the tasks: {not_ours(run.cpubench)}")
        for at, row in enumerate(run.tasks):
            for number, one in enumerate(row.repeats):
                if not one.failures:
                    _check_times(row, one, f"tasks[{at}].repeats[{number}]")
                    _check_limits(run, one, f"tasks[{at}].repeats[{number}].limits")
    except UsageError as fault:
        raise located(file, fault) from None
    if signers is None and signature_of(file).exists():
        unchecked.append("the signature: give --signers FILE to know who made it")
    repeats = [one for row in run.tasks for one in row.repeats]
    return {
        "file": str(file), "valid": True, "tasks": len(run.tasks), "repeats": len(repeats), "stopped": run.stopped,
        "failed": sum(bool(one.failures or one.leftovers) for one in repeats),
        "skipped": sum(row.skipped is not None for row in run.tasks), "unchecked": unchecked, "signed_by": by,
    }  # fmt: skip


def _check_suite(run: TaskRun) -> None:
    """None if the tasks are those of this suite, on its inputs, and as often done as the profile wants."""
    if run.inputs_sha256 != inputs.pinned():
        raise UsageError("inputs", "are not those of this suite", "inputs_sha256")
    for at, row in enumerate(run.tasks):
        _check_row(row, f"tasks[{at}]")
    profile = PROFILES.get(run.profile)
    if profile is None:
        raise UsageError("profile", f"{shown(run.profile, 20)!r} is unknown", "profile")
    if not run.estimate and profile.estimate:
        raise UsageError("estimate", f"{run.profile} makes estimates", "estimate")
    if run.stopped != "done":
        return
    for at, row in enumerate(run.tasks):
        fleet = windowed(row)
        wanted = profile.windows if fleet else None if run.estimate else profile.repeats
        found = [one.index for one in row.repeats]
        if row.skipped is None and found != list(range(len(found) if wanted is None else wanted)):
            text = f"has the repeats {shown(str(found), 40)} of {wanted}, and the run says that it was finished"
            raise UsageError("repeats", text, f"tasks[{at}]")
        length_s = window_s(Options(run.profile), catalogue.Task(row.task, agents=row.agents))
        if fleet and not run.estimate and any(one.window_ns != length_s * 1e9 for one in row.repeats):
            raise UsageError("window", f"{run.profile} has windows of {length_s:g} s", f"tasks[{at}]")


def _check_row(row: TaskRow, where: str) -> None:
    found = catalogue.Task(row.task, tuple(row.params), tuple(row.tools), row.agents)
    if not catalogue.known(found) or (found.name, found.version) != (row.name, row.version):
        raise UsageError("task", f"{shown(row.name, 60)!r} of version {row.version} is no task of this suite", where)
    steps = [(one.label, one.kind, one.phase, one.pythons, one.shells) for one in found.steps(NOWHERE)]
    if steps != [(one.label, one.kind, one.phase, one.pythons, one.shells) for one in row.steps]:
        raise UsageError("steps", "are not those of the task", where)


def _check_limits(run: TaskRun, one: Repeat, where: str) -> None:
    """None if somebody looked at the limits around a repeat of a run with caps, and they held what its level is."""
    if isinstance(run.powered, UnsetType) or not run.powered.cap_scope:
        return
    if isinstance(one.limits, UnsetType):
        raise UsageError("limits", "nobody looked at the limits around this repeat", where)
    if one.limits.changed:
        raise UsageError("cap_changed", one.limits.changed[0], where)
    if 0 < one.limits.settle_ns < run.powered.settle_ns:
        raise UsageError("limits", f"had {one.limits.settle_ns} ns to act", where)
    value = run.level.value if run.level is not None else None
    caps = [asked for key, asked in one.limits.asked.items() if asked not in (0, 1)]
    if value is not None and not caps:
        raise UsageError("limits", "are of no register that a cap is written to", where)
    if value is not None and any(abs(asked - value) >= max(one.limits.steps.values()) for asked in caps):
        raise UsageError("limits", f"are not the {value} of the level", where)


def _check_times(row: TaskRow, one: Repeat, where: str) -> None:
    """None if no agent did two steps at once, a window lasted as long as it says, and no step used what nobody did."""
    spans = one.spans
    if windowed(row) and one.wall_ns != one.window_ns:
        raise UsageError("window", f"of {one.window_ns} ns lasted {one.wall_ns}", where)
    free_ns: dict[int, int] = {}
    for at, (agent, start) in enumerate(zip(spans.agent, spans.start_ns, strict=True)):
        if spans.background[at]:
            continue
        if start < free_ns.get(agent, start):
            raise UsageError("span", "began before the agent's last step had ended", f"{where}.spans[{at}]")
        free_ns[agent] = start + spans.wall_ns[at]
    used_us = sum(spans.user_us) + sum(spans.sys_us)
    if used_us > one.tools_us * SPARE + len(spans.step) + TICK_NS / 1000:
        text = f"used {used_us} us of CPU time, all tools together {one.tools_us}"
        raise UsageError("cpu_time", text, f"{where}.spans")
