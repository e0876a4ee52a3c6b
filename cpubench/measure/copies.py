"""The copies of a plan: seats for every CPU and kind of process, one slot for every kernel and parameter.

Standard library and the extension only: the block imports this.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.measure import programs
from cpubench.measure.scratch import open_scratch, storage_facts
from cpubench.results.names import row_key, row_name

RETRIES = 2  # of a slot's preparation in a block
Variant = dict[str, Any]  # of plan.json
Answer = dict[str, Any]  # of one copy: _native.Pool.sample
Seat = tuple[int, int, str]  # CPU, touched bytes, whom it is for: "" is for most


@dataclass
class Copies:
    """A running pool, and where each variant of the plan lives in it."""

    pool: _native.Pool
    kernels: dict[str, dict[str, Any]]
    variants: list[Variant]
    seats: dict[Seat, int]
    slots: dict[tuple[str, str], int]  # (kernel, params) -> slot; copies 1, cores and cpus share what is prepared
    scratch: dict[str, Any]  # what was obtained for files, or the "reason" of none
    storage: dict[str, Any]  # what the disk of --workdir is
    allowed: frozenset[int] = frozenset()  # CPUs of this process when they were started; empty: not told
    prepared: set[int] = field(default_factory=set)  # slots
    told: dict[int, dict[int, Answer]] = field(default_factory=dict)  # slot -> seat -> last answer
    prepare_ns: dict[int, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)  # key of a variant -> why it is measured no more
    proven: set[int] = field(default_factory=set)  # slots whose release proved all their work
    disproven: set[int] = field(default_factory=set)  # slots whose release found that work was not done
    unproven: set[int] = field(default_factory=set)  # slots that were prepared anew: what proved earlier work is gone
    disturbed: dict[int, int] = field(default_factory=dict)  # slot -> idle copies that ended while it was prepared

    def slot(self, variant: Variant) -> int:
        return self.slots[variant["kernel"], variant["params"]]

    def seats_of(self, variant: Variant) -> list[int]:
        return [self.seats[seat] for seat in seats_of(variant)]

    def left(self, slot: int) -> list[Variant]:
        """The variants of a slot that have not failed."""
        return [v for v in self.variants if self.slot(v) == slot and key(v) not in self.errors]


def seats_of(variant: Variant) -> list[Seat]:
    """The seat of each copy. Spawn kernels run in a process of known size, of theirs alone where it is not ``value``.
    Threads have a process of their own, since one that has more than one thread counts references at every read and
    write of a file (``fdget()``), and its mappings are flushed on every CPU: others would be slower there."""
    flags = variant["flags"]
    touched = variant["value"] if "parent" in flags else 0
    whose = variant["kernel"] if "own" in flags else "group" if "group" in flags else ""
    return [(group[0], touched, whose) for group in variant["groups"]]


def key(variant: Variant) -> str:
    return row_key(row_name(variant["kernel"], variant["params"]), variant["copies"])


def start(plan: dict[str, Any], folder: Path, seed: int) -> Copies:
    """Every copy of the plan, waiting at its CPU, with its scratch below ``folder``; nothing is prepared yet.

    Raises OSError.
    """
    variants = plan["variants"]
    seats: dict[Seat, int] = {}
    slots: dict[tuple[str, str], int] = {}
    for variant in variants:
        slots.setdefault((variant["kernel"], variant["params"]), len(slots))
        for seat in seats_of(variant):
            seats.setdefault(seat, len(seats))
    files = [v for v in variants if "files" in v["flags"]]
    disk = folder / "storage"
    disk.mkdir(mode=0o700)
    held = {(v["kernel"], v["params"], group[0]): v["held_bytes"] for v in files for group in v["groups"]}
    place, scratch = open_scratch(folder, sum(held.values()))
    where = [(cpu, touched) for cpu, touched, _ in seats]
    copy, target = str(programs.COPY), str(programs.TARGET)
    pool = _native.Pool(copy, target, str(place), where, plan["llc_bytes"] or 0, seed, str(disk))
    kernels = {k["name"]: k for k in _native.kernels(hidden=True)}
    copies = Copies(pool, kernels, variants, seats, slots, scratch, storage_facts(disk), allowed_now())
    if "reason" in scratch:
        copies.errors |= {key(v): scratch["reason"] for v in files}
    return copies


def prepare(copies: Copies) -> None:
    """Prepares every slot in all seats that its variants use; those of a slot that cannot be prepared fail together."""
    while not all(slot in copies.prepared or _prepare(copies, slot) for slot in copies.slots.values()):
        pass  # the pool is new: what was prepared before is lost too


def _prepare(copies: Copies, slot: int) -> bool:
    """False where copies were lost over it."""
    left = copies.left(slot)
    groups = {s: g for v in left for s, g in zip(copies.seats_of(v), v["groups"], strict=True)}
    if not groups:
        return True
    number, began_ns = copies.kernels[left[0]["kernel"]]["number"], _native.now_ns()
    try:
        answers = copies.pool.prepare(slot, number, left[0]["index"], left[0]["value"], list(groups.items()))
    except OSError as error:
        copies.errors |= dict.fromkeys(map(key, left), reason(error))
        return _release(copies, slot)
    except _native.CopyLost as error:
        _lost(copies)
        why = str(error)
        if error.seat is not None and error.seat not in groups:  # idle, as in sample()
            copies.disturbed[slot] = copies.disturbed.get(slot, 0) + 1
            if copies.disturbed[slot] <= RETRIES:
                return False
            why += f", idle; {RETRIES} more attempts ended so too"
        copies.errors |= dict.fromkeys(map(key, left), why)
        return False
    copies.told[slot] = dict(zip(groups, answers, strict=True))
    copies.prepared.add(slot)
    copies.prepare_ns[slot] = _native.now_ns() - began_ns
    return True


def _lost(copies: Copies) -> None:
    """Every copy was started anew."""
    copies.unproven |= copies.prepared
    copies.prepared.clear()


def _release(copies: Copies, slot: int) -> bool:
    """Releases a slot in which something failed, whatever that says; False where copies were lost over it."""
    copies.prepared.discard(slot)
    try:
        copies.pool.release(slot)
    except OSError:  # the first reason is the one to tell
        return True
    except _native.CopyLost:
        _lost(copies)
        return False
    return True


def sample(
    copies: Copies, variant: Variant, ops: int, window_ns: int, deadline_ns: int, due_ns: int = 0
) -> list[Answer] | None:
    """One answer for each copy, or None where the variant failed now or before: ``copies.errors`` says why.

    The round can go on: after a failure its slot is prepared again for the other variants, after the loss of a copy
    every slot.
    """
    slot, seats = copies.slot(variant), copies.seats_of(variant)
    if key(variant) in copies.errors:
        return None
    try:
        answers = copies.pool.sample(slot, seats, ops, window_ns, deadline_ns, due_ns)
    except OSError as error:
        copies.errors[key(variant)] = reason(error)
        if "pair" in variant["flags"]:
            # New peers would be forked from copies that hold the huge pages of others by now: the next write to one
            # that two processes share splits it, and huge_ppm was read before.
            copies.pool.renew()
            _lost(copies)
        else:
            copies.unproven.add(slot)  # the counts of its copies are no longer what they did
            _release(copies, slot)
        prepare(copies)
        return None
    except _native.CopyLost as error:
        _lost(copies)
        # An idle copy that ended (the OOM killer takes the largest, a spawn parent) is no fault of the variant at work:
        # that loses this sample, and the next round has it again.
        if error.seat is None or error.seat in seats:
            copies.errors[key(variant)] = str(error)
        prepare(copies)
        return None
    copies.told[slot].update(zip(seats, answers, strict=True))
    if wrong := misplaced(answers, variant["groups"], copies.allowed - (allowed_now() or copies.allowed)):
        copies.errors[key(variant)] = f"{row_name(variant['kernel'], variant['params'])}: {wrong}"
        return None
    return answers


def allowed_now() -> frozenset[int]:
    """The online CPUs that this process may run on; empty where a filter of system calls hides them."""
    try:
        return frozenset(os.sched_getaffinity(0))
    except OSError:
        return frozenset()


def misplaced(answers: Sequence[Answer], groups: Sequence[Sequence[int]], lost: frozenset[int]) -> str | None:
    """Why a sample was not taken where its copies belong, or None: a CPU went offline, or a cpuset was changed.

    Threads and peers of a copy have CPUs of their own: those are among the ``lost`` ones then, which were allowed once.
    """
    for one in answers:
        for cpu in (one["cpu_first"], one["cpu_last"]):
            if cpu != one["cpu"]:
                return f"copy was moved from CPU {one['cpu']} to CPU {cpu}"
        if one["loose"]:
            return f"copy on CPU {one['cpu']} is pinned there no more"
    gone = sorted(lost & {cpu for group in groups for cpu in group})
    return f"CPU {gone[0]} is no longer online or allowed" if gone else None


def release(copies: Copies) -> None:
    """Releases every slot: here the kernels prove that their work was done, or say that it was not."""
    for slot in sorted(copies.prepared):
        try:
            for seat, answer in zip(list(copies.told[slot]), copies.pool.release(slot), strict=True):
                copies.told[slot][seat] |= {k: answer[k] for k in ("checksum", "counter", "thread_ops")}
            copies.proven.add(slot)
        except OSError as error:
            copies.errors |= dict.fromkeys(map(key, copies.left(slot)), reason(error))
            copies.disproven.add(slot)
        except _native.CopyLost as error:
            if error.seat is None or error.seat in copies.told[slot]:
                copies.errors |= dict.fromkeys(map(key, copies.left(slot)), str(error))
            _lost(copies)
            break
    copies.proven -= copies.unproven


def reason(error: OSError) -> str:
    """An OSError of a kernel in one line: kernel, call, and the name of the error."""
    name = errno.errorcode.get(error.errno or 0, "")
    return f"{error.filename} {name}: {error.strerror}" if error.filename else f"{error.strerror or error}"
