"""Whether the processes and threads of a plan may be started here: what the limits leave, before anything is."""

from __future__ import annotations

from collections.abc import Sequence

from cpubench.errors import UsageError
from cpubench.host.fact import Fact
from cpubench.host.limits import pids_left
from cpubench.host.rlimits import processes_left
from cpubench.measure.copies import seats_of
from cpubench.results.records import Variant

BLOCK_TASKS = 4  # the block, its two guards at most, and what forks
CHILDREN = 2  # of a copy of a spawn kernel at once: a shell and its command, or two that wait for their end


def tasks_needed(variants: Sequence[Variant]) -> int:
    """Processes and threads that a block of these has at once: its copies, the threads and peers that stay prepared,
    and the children of the widest row."""
    seats, held, children = set(), set(), 0
    for variant in variants:
        one = {"flags": variant.flags, "value": variant.value, "kernel": variant.kernel, "groups": variant.groups}
        for seat, group in zip(seats_of(one), variant.groups, strict=True):
            seats.add(seat)
            # A group of one has a thread too, which only sleeps (ext/group.c).
            more = max(1, len(group) - 1) if "group" in variant.flags else 1 if "pair" in variant.flags else 0
            held |= {(variant.kernel, variant.params, seat, n) for n in range(more)}
        if variant.family == "spawn":
            children = max(children, CHILDREN * len(variant.groups))
    return BLOCK_TASKS + len(seats) + len(held) + children


def check_tasks(variants: Sequence[Variant]) -> None:
    """UsageError where a limit leaves fewer tasks than a block needs; what cannot be told forbids nothing."""
    need = tasks_needed(variants)
    limits: list[tuple[str, Fact[int]]] = [("pids.max", pids_left()), ("RLIMIT_NPROC", processes_left())]
    for name, left in limits:
        if left.value is not None and left.value < need:
            text = f"leaves {left.value} more processes and threads, and {need} are needed at once"
            raise UsageError("tasks", f"{text}: raise it, or choose fewer --families, --copies or --cpus", name)
