"""What a reader of a score must know beside its numbers, and whether it may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.analysis.cells import BASE_CAP
from cpubench.analysis.composite import MIN_PASSES
from cpubench.analysis.floor import sentence
from cpubench.analysis.noise import remarks, too_noisy
from cpubench.analysis.plateaus import LADDER, sentences
from cpubench.analysis.rates import Rates, scored_names
from cpubench.analysis.reference import Reference
from cpubench.analysis.watt_notes import REMARKS as WATT_REMARKS
from cpubench.analysis.watt_notes import watt_notes
from cpubench.results.parse import shown
from cpubench.results.records import Divisor, Run

REMARKS = frozenset({
    "divisor_kind", "virtual_unknown", "estimate", "interrupted", "failed_samples", "run", "near_floor", "plateaus",
    "no_evidence", "logins",
}) | WATT_REMARKS  # fmt: skip
MAX_LEFT_OUT = 0.2  # of the passes; beyond that the rest is a selection

Json = dict[str, Any]
Note = dict[str, str]


def judged(
    run: Run, reference: Reference, rates: Rates, gone: Mapping[str, str],
    composites: Mapping[str, Mapping[str, Json]], noise: Json, power: Json | None = None,
) -> tuple[list[Note], bool]:  # fmt: skip
    """The notes, those that forbid publishing first, and whether none of them does."""
    faults = faults_of(run, reference, rates, gone, composites, noise, power)
    said = [note(code, text, "passes") for code, text in remarks(run, BASE_CAP, noise)]
    said += watt_notes(run, power)[1]
    return faults + _remarks(run, reference, rates, gone) + said, not faults


def faults_of(
    run: Run, reference: Reference, rates: Rates, gone: Mapping[str, str],
    composites: Mapping[str, Mapping[str, Json]], noise: Json, power: Json | None = None,
) -> list[Note]:  # fmt: skip
    """The notes that forbid publishing."""
    faults = _faults(run, reference, rates, gone, composites)
    if text := too_noisy(noise):
        faults.append(note("noisy", text, "passes"))
    return faults + watt_notes(run, power)[0]


def note(code: str, text: str, where: str) -> Note:
    """A note in its JSON shape."""
    return {"code": code, "text": text, "where": where}


def _faults(
    run: Run, reference: Reference, rates: Rates, gone: Mapping[str, str], composites: Mapping[str, Mapping[str, Json]]
) -> list[Note]:
    plan = run.plan
    faults = [note("missing", f"a scored row is missing: {reason}", key) for key, reason in gone.items()]
    if BASE_CAP not in plan.caps:
        faults.append(note("only_capped", "the run has no passes without a cap; only those are scored", "plan.caps"))
    faults += of_host(run.host, plan.cpus, plan.divisor)
    if run.stopped.by == "failed":
        text = f"the run was given up after {rates.passes} passes: what failed then may have slowed them too"
        faults.append(note("given_up", text, "stopped"))
    if rates.passes < MIN_PASSES:
        faults.append(note("passes", f"{MIN_PASSES} passes are needed; the run has {rates.passes}", "passes"))
    unknown = [name for name in scored_names(plan) if name not in reference.variants]
    if unknown:
        text = f"scored rows that the reference does not have are left out: {', '.join(unknown[:3])}"
        faults.append(note("not_in_reference", text, f"reference {reference.name}"))
    for where, measures in composites.items():
        for measure, made in measures.items():
            if where == "headline" and made["value"] is None and not gone and not measure.startswith("per_watt"):
                faults.append(note("no_headline", f"no {measure}: {made['reason']}", where))
            left_out = rates.passes - made["passes"]
            if made["value"] is not None and left_out / rates.passes > MAX_LEFT_OUT:
                text = f"{left_out} of {rates.passes} passes lack a row and are left out"
                faults.append(note("left_out", text, f"{where} {measure}"))
    return faults


def of_host(host: Mapping[str, Any], used_cpus: Sequence[int], divisor: Divisor) -> list[Note]:
    """What a quota and the CPUs that were used say against per-core numbers."""
    listed = host.get("cores")
    cores = [core for core in listed if isinstance(core, list)] if isinstance(listed, list) else []
    used, there = len(used_cpus), sum(map(len, cores))
    faults = []
    if divisor.kind == "granted_cpu":
        text = f"a quota grants {divisor.n:g} CPUs; what the machine does with them is not what it does without"
        faults.append(note("granted_cpu", text, "plan.divisor"))
    if used < there:
        text = f"{used} of {there} CPUs were measured: they had the caches and the power of all to themselves"
        faults.append(note("subset", text, "plan.cpus"))
    others = host.get("cpus_not_allowed")
    if isinstance(others, str) and others:
        text = f"CPUs {shown(others, 60)} are online and not allowed here: who has them shares caches and power"
        faults.append(note("confined", text, "host.cpus_not_allowed"))
    if divisor.kind == "vcpu" and any(len(core) > 1 for core in cores):
        text = "this virtual machine shows hardware threads: its cores are not the vcpus of one that hides them"
        faults.append(note("vcpu_threads", text, "plan.divisor"))
    kinds = _core_classes(host, used_cpus)
    if len(kinds) > 1:
        text = (
            f"cores of different kinds were measured together ({', '.join(kinds[:4])}); --cpus of one kind parts them"
        )
        faults.append(note("core_classes", text, "plan.cpus"))
    return faults


def _core_classes(host: Mapping[str, Any], used_cpus: Sequence[int]) -> list[str]:
    """The kinds of cores, by the host's own words, that the CPUs of the run are of."""
    listed = host.get("core_classes")
    classes = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    used = set(used_cpus)
    return [
        shown(str(one.get("name")), 40)
        for one in classes
        if isinstance(cpus := one.get("cpus"), list) and any(isinstance(cpu, int) and cpu in used for cpu in cpus)
    ]


def _remarks(run: Run, reference: Reference, rates: Rates, gone: Mapping[str, str]) -> list[Note]:
    remarks = []
    if run.plan.divisor.kind != reference.divisor_kind:
        text = f"per {run.plan.divisor.kind} here, per {reference.divisor_kind} in the reference: only a scale"
        remarks.append(note("divisor_kind", text, f"reference {reference.name}"))
    if run.host.get("virtual", False) is None:
        text = "nobody can say whether this is a virtual machine; its cores count as physical"
        remarks.append(note("virtual_unknown", text, "plan.divisor"))
    if run.plan.profile == "quick":
        remarks.append(note("estimate", "the profile quick makes estimates", "plan.profile"))
    if run.stopped.by == "interrupted":
        remarks.append(note("interrupted", f"the run was interrupted after {rates.passes} passes", "stopped"))
    if near := sentence(run.plan, rates):
        remarks.append(note("near_floor", near, "plan.floor_ps"))
    remarks += [note("plateaus", text, LADDER) for text in sentences(run.plan, rates)]
    remarks += [note("failed_samples", text, key) for key, text in rates.errors.items() if key not in gone]
    return remarks + [note("run", text, "notes") for text in run.notes]
