"""What the types of a record cannot say: lengths that belong together, keys that must exist once, hashes.

Each function returns None or raises a UsageError whose ``where`` is the place inside the document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from cpubench.errors import UsageError
from cpubench.results import records as r
from cpubench.results.check_windows import check_log, check_power, check_windows
from cpubench.results.files import content_hash
from cpubench.results.parse import check_depth

_COLUMNS = r.Samples.__struct_fields__
# Empty where several copies ran; where the kernel does not tell.
_MAY_BE_EMPTY = {"cpu_first", "cpu_last", "run_delay_ns"}


def check_seal(document: dict[str, Any], place: str = "") -> None:
    """None if ``sha256`` is the hash of the rest of the document."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    try:
        # msgspec writes the bytes of files.canonical at 7 times its speed (0.03 s for 15 MB), but for some floats
        # ("1e-05"); equal bytes are equal content, so only a difference needs the slow way.
        fast = hashlib.sha256(msgspec.json.encode(rest, order="sorted")).hexdigest()
        if document["sha256"] != fast and document["sha256"] != content_hash(document):
            raise UsageError("hash", "content was changed: it does not match its sha256", place)
    except UnicodeEncodeError:
        raise UsageError("not_json", "a string holds half of a surrogate pair", place) from None
    except RecursionError:
        raise UsageError("nested", "is nested too deeply", place) from None


def check_plan(plan: r.Plan, place: str = "plan") -> None:
    """None if every variant is there once and on CPUs of the plan, every cap once, and the divisors can be true."""
    once((v.key for v in plan.variants), lambda at: f"{place}.variants[{at}]", "variant")
    once(plan.caps, lambda at: f"{place}.caps[{at}]", "cap level")
    once(plan.cpus, lambda at: f"{place}.cpus[{at}]", "CPU")
    if not plan.caps:
        raise UsageError("cap", "the plan has no cap level", f"{place}.caps")
    check_power(plan, place)
    divisor, count = plan.divisor, len(plan.cpus)
    if divisor.n > count:
        raise UsageError("divisor", f"{divisor.n:g} {divisor.kind} of {count} CPUs", f"{place}.divisor")
    if divisor.kind != "granted_cpu" and divisor.n % 1:
        raise UsageError("divisor", f"{divisor.n:g} {divisor.kind} is no whole number", f"{place}.divisor")
    cpus = set(plan.cpus)
    for at, variant in enumerate(plan.variants):
        _check_variant(variant, cpus, f"{place}.variants[{at}]")
        if divisor.kind != "granted_cpu" and variant.divisor > divisor.n:  # a quota grants less than is occupied
            text = f"{variant.key} is divided by {variant.divisor}, the plan has {divisor.n:g}"
            raise UsageError("divisor", text, f"{place}.variants[{at}]")


def _check_variant(variant: r.Variant, cpus: set[int], place: str) -> None:
    """None if its copies have CPUs of their own among ``cpus``, and do not occupy more cores than CPUs."""
    if not variant.groups or not all(variant.groups):
        raise UsageError("copies", f"{variant.key} has no copies, or a copy without CPU", place)
    if variant.copies == "1" and len(variant.groups) != 1:
        raise UsageError("copies", f"{variant.key} has {len(variant.groups)} copies", place)
    used = [cpu for group in variant.groups for cpu in group]
    once(used, lambda at: place, f"CPU of {variant.key}")
    strange = sorted(set(used) - cpus)
    if strange:
        raise UsageError("cpu", f"{variant.key} runs on CPU {strange[0]}, which is not in the plan", place)
    if variant.divisor > len(used):
        raise UsageError("divisor", f"{variant.key} occupies {variant.divisor} cores with {len(used)} CPUs", place)


def check_cores(run: r.Run) -> None:
    """None if every variant is divided by the cores that its copies occupy, where the host tells which those are.

    Only for ``validate``: half of a divisor is twice the score, yet of an odd host a run should still be readable.
    """
    listed = run.host.get("cores")
    cores = [core for core in listed if isinstance(core, list)] if isinstance(listed, list) else []
    core_of = {cpu: number for number, core in enumerate(cores) for cpu in core if isinstance(cpu, int)}
    for at, variant in enumerate(run.plan.variants):
        occupied = {core_of.get(cpu) for group in variant.groups for cpu in group}
        if None not in occupied and len(occupied) != variant.divisor:
            text = f"{variant.key} is divided by {variant.divisor}, and occupies {len(occupied)} cores of host.cores"
            raise UsageError("divisor", text, f"plan.variants[{at}]")


def check_run(run: r.Run) -> None:
    """None if the passes belong to the plan, each is there once, and they are as many as the run stopped after."""
    check_plan(run.plan)
    check_depth(run.host, "host")
    if not isinstance(run.idle_after, msgspec.UnsetType):
        check_log(run.idle_after, "idle_after")
    once((p.index for p in run.passes), lambda at: f"passes[{at}]", "pass")
    for number, the_pass in enumerate(run.passes):
        place = f"passes[{number}]"
        _check_blocks(the_pass.blocks, the_pass, run.plan, f"{place}.blocks")
        _check_blocks(the_pass.set_aside, the_pass, run.plan, f"{place}.set_aside")
        counting = {block.cap: block.sha256 for block in the_pass.blocks}
        for at, block in enumerate(the_pass.set_aside):
            if counting.get(block.cap, block.sha256) == block.sha256:
                text = f"a block at {block.cap} is set aside, and no other counts"
                raise UsageError("set_aside", text, f"{place}.set_aside[{at}]")
    if run.stopped.passes != len(run.passes):
        text = f"stopped after {run.stopped.passes} passes, and holds {len(run.passes)}"
        raise UsageError("passes", text, "stopped.passes")


def _check_blocks(blocks: list[r.Block], the_pass: r.Pass, plan: r.Plan, place: str) -> None:
    once((block.cap for block in blocks), lambda at: f"{place}[{at}]", "cap level of a pass")
    for at, block in enumerate(blocks):
        if block.index != the_pass.index:
            raise UsageError("pass", f"a block of pass {block.index} in pass {the_pass.index}", f"{place}[{at}]")
        check_block(block, plan, f"{place}[{at}]")


def check_block(block: r.Block, plan: r.Plan | None = None, place: str = "") -> None:
    """None if the columns of each cell belong together and, given its plan, the cells to that."""
    within = f"{place}." if place else ""
    if plan is not None:
        check_belongs(block, plan, place)
    planned = None if plan is None else {(v.kernel, v.params, v.copies): len(v.groups) for v in plan.variants}
    once(((c.kernel, c.params, c.copies) for c in block.cells), lambda at: f"{within}cells[{at}]", "variant of a block")
    for at, cell in enumerate(block.cells):
        here = f"{within}cells[{at}]"
        check_depth(cell.obtained, f"{here}.obtained")
        copies = None
        if planned is not None:
            copies = planned.get((cell.kernel, cell.params, cell.copies))
            if copies is None:
                raise UsageError("variant", f"{cell.key} is not in the plan", here)
        _check_samples(cell.samples, here)
        # A variant that failed before its first sample has no copies to tell of.
        failed = cell.error is not None and not cell.copy_ops and not cell.copy_elapsed_ns
        if not failed:
            check_copies(cell.copy_ops, cell.copy_elapsed_ns, copies, here)
        _check_sums(cell, here)
    check_windows(block, plan, within)


def check_belongs(block: r.Block, plan: r.Plan, place: str) -> None:
    if block.plan_id != plan.id:
        raise UsageError("plan_id", f"belongs to the plan '{block.plan_id}', not to '{plan.id}'", place)
    if block.cap not in plan.caps:
        raise UsageError("cap", f"the cap level '{block.cap}' is not in the plan", place)
    for number, order in enumerate(block.rounds):
        if order and max(order) >= len(plan.variants):
            where = f"{place}.rounds[{number}]" if place else f"rounds[{number}]"
            raise UsageError("variant", f"variant {max(order)} of {len(plan.variants)}", where)


def _check_samples(samples: r.Samples, place: str) -> None:
    length = len(samples.round)
    for name in _COLUMNS:
        column = getattr(samples, name)
        if len(column) != length and not (name in _MAY_BE_EMPTY and not column):
            raise UsageError(
                "length", f"{name} has {len(column)} values, round has {length}", f"{place}.samples.{name}"
            )
    _check_elapsed(samples.ops, samples.elapsed_ns, f"{place}.samples.elapsed_ns")


def check_copies(ops: list[int], elapsed_ns: list[int], copies: int | None, place: str) -> None:
    for name, column in (("copy_ops", ops), ("copy_elapsed_ns", elapsed_ns)):
        wanted = len(ops) if copies is None else copies
        if len(column) != wanted:
            raise UsageError("length", f"{name} has {len(column)} values for {wanted} copies", f"{place}.{name}")
    _check_elapsed(ops, elapsed_ns, f"{place}.copy_elapsed_ns")


def _check_sums(cell: r.Cell, place: str) -> None:
    """The copies and the samples tell the same operations: one is scored, the other is shown by pytest-benchmark."""
    for name in ("ops", "elapsed_ns"):
        by_copy, by_sample = sum(getattr(cell, f"copy_{name}")), sum(getattr(cell.samples, name))
        if by_copy != by_sample:
            raise UsageError("sums", f"copy_{name} add up to {by_copy}, samples.{name} to {by_sample}", place)


def _check_elapsed(ops: Sequence[int], elapsed_ns: Sequence[int], place: str) -> None:
    if 0 in elapsed_ns:  # in C: the loop over 2.4 million values would take 0.1 s
        for at, (done, time) in enumerate(zip(ops, elapsed_ns, strict=True)):
            if done and not time:
                raise UsageError("zero_time", f"{done} operations in no time", f"{place}[{at}]")


def once(keys: Iterable[Any], place: Any, what: str) -> None:
    """None if no key is there twice; ``place`` makes the place from a position."""
    seen = set()
    for at, key in enumerate(keys):
        if key in seen:
            name = " ".join(key) if isinstance(key, tuple) else key
            raise UsageError("twice", f"a {what} is there twice: {name}", place(at))
        seen.add(key)
