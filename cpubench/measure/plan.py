"""The plan of a run: what is fixed before the first pass. Touches no operating system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UnsetType

from cpubench import SUITE_VERSION, __version__
from cpubench.analysis.cells import BASE_CAP
from cpubench.analysis.composite import MIN_PASSES
from cpubench.analysis.twins import CONTROL
from cpubench.errors import UsageError
from cpubench.measure.levels import BLOCK_OVERHEAD_NS as BLOCK_OVERHEAD_NS
from cpubench.measure.levels import before_ns, beside_rounds_ns, windows_ns
from cpubench.measure.profiles import PROFILES, SAMPLE_NS, Profile
from cpubench.measure.variants import calibrated
from cpubench.results.records import Block, Divisor, Missing, Plan, Variant

# What a sample costs beside its timed part: orders, the agreed start, the way back (measured, 2 copies: 0.2 ms).
SAMPLE_OVERHEAD_NS = 300_000


def draft(
    variants: Sequence[Variant], skipped: Sequence[Missing], *, run_id: str, created_utc: str, build: dict[str, Any],
    host_id: str, seed: int, profile: str, budget_ns: int | None, cpus: Sequence[int], divisor: Divisor,
    llc_bytes: int | None,
) -> Plan:  # fmt: skip
    """A plan whose variants have no sizes yet. UsageError where nothing is left to measure."""
    if not variants:
        raise UsageError("nothing_to_measure", "no variant can be measured here: " + _reasons(skipped))
    chosen = PROFILES[profile]
    return Plan(
        id=run_id, created_utc=created_utc, cpubench=__version__, suite=SUITE_VERSION, build=build, host_id=host_id,
        seed=seed, profile=profile, target_ppm=chosen.target_ppm, min_passes=chosen.min_passes,  # type: ignore[arg-type]
        max_passes=chosen.max_passes, budget_ns=chosen.budget_ns if budget_ns is None else budget_ns,
        samples=chosen.samples, sample_ns=SAMPLE_NS, cpus=list(cpus), divisor=divisor, llc_bytes=llc_bytes,
        caps=["as-is"], variants=list(variants), skipped=list(skipped), windows=[], predicted_pass_ns=0,
    )  # fmt: skip


def _reasons(skipped: Sequence[Missing]) -> str:
    return "; ".join(f"{m.variant}: {m.reason}" for m in skipped[:3]) or "the choice of families and copies is empty"


def sized(plan: Plan, found: dict[str, Any]) -> Plan:
    """The plan with what calibration found: sizes, the variants that failed there, and how long a pass will take."""
    variants = calibrated(plan.variants, {key: (ops, window) for key, (ops, window, _) in found["sizes"].items()})
    scored = {v.key: v.scored for v in plan.variants}
    failed = [Missing(key, reason, scored=scored[key]) for key, reason in found["errors"].items()]
    if all(v.key in CONTROL for v in variants):
        raise UsageError("nothing_to_measure", "no variant can be measured here: " + _reasons(failed))
    each_ns = [found["sizes"][v.key][2] + SAMPLE_OVERHEAD_NS for v in variants]
    rounds_ns = plan.samples * sum(each_ns) if BASE_CAP in plan.caps else 0
    predicted = rounds_ns + len(plan.caps) * found["prepare_ns"] + BLOCK_OVERHEAD_NS + beside_rounds_ns(plan)
    return msgspec.structs.replace(
        plan,
        variants=variants,
        skipped=[*plan.skipped, *failed],
        predicted_pass_ns=round(predicted),
        floor_ps=found["floor_ps"],
    )


def check_budget(plan: Plan, spent_ns: int, pass_ns: float) -> None:
    """UsageError where what is left of the budget cannot hold the fewest passes that say anything."""
    before = before_ns(plan)
    need_ns = MIN_PASSES * pass_ns + before
    if plan.budget_ns and plan.budget_ns - spent_ns < need_ns:
        after = f"{(spent_ns + before) / 1e9:.0f} s of calibration{' and of showing the caps' if before else ''}"
        raise UsageError(
            "budget_too_small",
            f"{plan.budget_ns / 1e9:.0f} s cannot hold {MIN_PASSES} passes of {pass_ns / 1e9:.1f} s after {after}: "
            f"allow {(need_ns + spent_ns) / 1e9 + 1:.0f} s or choose fewer families"
            f"{' or levels' if plan.caps[1:] else ''}",
            "--budget",
        )


def took_ns(plan: Plan, block: Block) -> int:
    """Nanoseconds that a block took: of the budget, and what the next pass is expected to take."""
    settled_ns = 0 if isinstance(block.limits, UnsetType) else block.limits.settle_ns
    windows = windows_ns(plan) if block.windows else 0
    return block.times.ready_ns + block.times.prepare_ns + block.times.rounds_ns + windows + settled_ns


def most_left_ns(plan: Plan, passes: int, spent_ns: int, pass_ns: float) -> int:
    """Nanoseconds that the rest of the run takes at most: what is left of the budget and of the passes."""
    most = (plan.max_passes - passes) * pass_ns
    return max(0, round(min(most, plan.budget_ns - spent_ns) if plan.budget_ns else most))


def stop(plan: Plan, passes: int, half_width: float | None, spent_ns: int, pass_ns: float) -> str | None:
    """Why the run stops before the next pass, or None: by widths, never by signs; there are no partial passes."""
    enough = passes >= plan.min_passes
    if enough and half_width is not None and half_width * 1e6 <= plan.target_ppm:
        return "target"
    if passes >= plan.max_passes:
        return "max"
    if plan.budget_ns and spent_ns + pass_ns > plan.budget_ns:
        return "budget"
    return None


def may_repeat(plan: Plan, flagged: int, passes: int, spent_ns: int, pass_ns: float) -> bool:
    """Whether a flagged block is measured again, which is decided by flags alone: by how many are ``flagged``, this one
    among them, of so many ``passes``.

    Of more than one in five it would not help: the host is like that, and the run says so.
    """
    in_time = not plan.budget_ns or spent_ns + pass_ns <= plan.budget_ns
    return in_time and flagged <= 1 + passes // 5


def profile_of(name: str) -> Profile:
    """The named profile; UsageError where there is none."""
    if name not in PROFILES:
        raise UsageError("unknown_profile", f"unknown profile {name!r}; known: {', '.join(PROFILES)}", "--profile")
    return PROFILES[name]
