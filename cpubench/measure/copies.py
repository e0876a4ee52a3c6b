"""The copies of a plan: seats for every CPU and touched size, one slot for every kernel and parameter.

Standard library and the extension only: the block imports this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cpubench import _native
from cpubench.measure import programs

Variant = dict[str, Any]  # of plan.json


@dataclass
class Copies:
    """A running pool, and where each variant of the plan lives in it."""

    pool: _native.Pool
    kernels: dict[str, dict[str, Any]]
    variants: list[Variant]
    seats: dict[tuple[int, int], int]  # (CPU, touched bytes) -> seat
    slots: dict[tuple[str, str], int]  # (kernel, params) -> slot; copies 1, cores and cpus share what is prepared
    told: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)  # slot -> seat -> last answer
    prepare_ns: dict[int, int] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)  # slot -> why it is not prepared
    proven: set[int] = field(default_factory=set)  # slots whose release proved all their work since they were prepared
    disproven: set[int] = field(default_factory=set)  # slots whose release found that work was not done
    losses: int = 0  # how often copies were lost, and with them the proof of what every slot had done before

    def slot(self, variant: Variant) -> int:
        return self.slots[variant["kernel"], variant["params"]]

    def seats_of(self, variant: Variant) -> list[int]:
        return [self.seats[seat] for seat in seats_of(variant)]


def seats_of(variant: Variant) -> list[tuple[int, int]]:
    """(CPU, touched bytes) of each copy: spawn kernels run in a process of known size."""
    touched = variant["value"] if "parent" in variant["flags"] else 0
    return [(group[0], touched) for group in variant["groups"]]


def key(variant: Variant) -> str:
    """NAME@COPIES, as ``Variant.key`` of the records gives it."""
    params = f"[{variant['params']}]" if variant["params"] else ""
    return f"{variant['kernel']}{params}@{variant['copies']}"


def start(variants: list[Variant], directory: str, llc_bytes: int | None, seed: int) -> Copies:
    """Every copy of the plan, waiting at its CPU; nothing is prepared yet. Raises OSError."""
    seats: dict[tuple[int, int], int] = {}
    slots: dict[tuple[str, str], int] = {}
    for variant in variants:
        slots.setdefault((variant["kernel"], variant["params"]), len(slots))
        for seat in seats_of(variant):
            seats.setdefault(seat, len(seats))
    pool = _native.Pool(str(programs.COPY), str(programs.TARGET), directory, list(seats), llc_bytes or 0, seed)
    return Copies(pool, {k["name"]: k for k in _native.kernels(hidden=True)}, variants, seats, slots)


def prepare(copies: Copies) -> None:
    """Prepares every slot in all seats that any of its variants uses; an error is kept by slot."""
    wanted: dict[int, dict[int, list[int]]] = {}
    for variant in copies.variants:
        for seat, group in zip(copies.seats_of(variant), variant["groups"], strict=True):
            wanted.setdefault(copies.slot(variant), {})[seat] = group
    by_slot = {slot: name for name, slot in copies.slots.items()}
    for slot, groups in wanted.items():
        if slot in copies.errors:
            continue
        variant = next(v for v in copies.variants if (v["kernel"], v["params"]) == by_slot[slot])
        number = copies.kernels[variant["kernel"]]["number"]
        began = _native.now_ns()
        try:
            answers = copies.pool.prepare(slot, number, variant["index"], variant["value"], list(groups.items()))
            copies.told[slot] = dict(zip(groups, answers, strict=True))
        except OSError as error:
            copies.errors[slot] = reason(error)
            if _is_lost(copies, slot):
                return prepare(copies)
        except _native.CopyLost as error:  # the pool is new: what was prepared before is lost too
            copies.errors[slot] = str(error)
            copies.losses += 1
            return prepare(copies)
        copies.prepare_ns[slot] = _native.now_ns() - began
    return None


def _is_lost(copies: Copies, slot: int) -> bool:
    """Whether the copies that had prepared the slot were lost while releasing it after another's failure."""
    try:
        copies.pool.release(slot)
    except OSError:  # the first reason is the one to tell
        return False
    except _native.CopyLost:
        copies.losses += 1
        return True
    return False


def sample(copies: Copies, variant: Variant, ops: int, window_ns: int, deadline_ns: int) -> list[dict[str, Any]] | None:
    """One answer for each copy, or None where the variant failed now or before: ``copies.errors`` says why.

    After a copy was lost every other slot is prepared again, so that the round can go on.
    """
    slot, seats = copies.slot(variant), copies.seats_of(variant)
    if slot in copies.errors or slot not in copies.told:
        return None
    try:
        answers = copies.pool.sample(slot, seats, ops, window_ns, deadline_ns)
    except OSError as error:
        copies.errors[slot] = reason(error)
        return None
    except _native.CopyLost as error:
        copies.losses += 1
        # An idle copy that ended (the OOM killer takes the largest, a spawn parent) is no fault of the variant at work:
        # that loses this sample, and the next round has it again.
        if error.seat is None or error.seat in seats:
            copies.errors[slot] = str(error)
        prepare(copies)
        return None
    copies.told[slot].update(zip(seats, answers, strict=True))
    return answers


def release(copies: Copies) -> None:
    """Releases every slot: here the kernels prove that their work was done, or say that it was not."""
    for slot in list(copies.told):
        if slot in copies.errors:
            continue
        try:
            for seat, answer in zip(list(copies.told[slot]), copies.pool.release(slot), strict=True):
                copies.told[slot][seat] |= {k: answer[k] for k in ("checksum", "counter", "thread_ops")}
            copies.proven.add(slot)
        except OSError as error:
            copies.errors[slot] = reason(error)
            copies.disproven.add(slot)
        except _native.CopyLost as error:
            copies.errors[slot] = str(error)
            copies.losses += 1
            return


def reason(error: OSError) -> str:
    """An OSError of a kernel in one line: kernel, call, and the name of the error."""
    import errno

    name = errno.errorcode.get(error.errno or 0, "")
    return f"{error.filename} {name}: {error.strerror}" if error.filename else f"{error.strerror or error}"
