"""What the peers are told, which established tools do the same work, and why a figure may differ.

A new kernel needs ``<kernel>.c`` beside this file and a line in ``ARGUMENTS``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cpubench.measure import programs

# After operations and CPUs, from the parameter's value and a folder on tmpfs.
ARGUMENTS: dict[str, Callable[[int, Path], list[Any]]] = {
    "spawn_fork_exec": lambda value, folder: [value, programs.TARGET],
    "file_create": lambda value, folder: [folder],
    "switch_pipe": lambda value, folder: [],
    "lock_mutex": lambda value, folder: [value],
    "lock_all": lambda value, folder: [value],
    "lock_rwlock": lambda value, folder: [],
    "lock_atomic": lambda value, folder: [],
    "lock_false_sharing": lambda value, folder: [],
    "lock_condvar": lambda value, folder: [],
    "lock_line": lambda value, folder: [],
    "mem_chase": lambda value, folder: [value],
    "test_work": lambda value, folder: [value],
}
# Untimed operations before a kernel's sample, as many as in its peer; else a tenth of the sample's.
WARM_OPS: dict[str, Callable[[int], int]] = {"mem_chase": lambda value: value // 64}
REST_S = {"switch_pipe": 0.2, "lock_condvar": 0.2}  # between them and the sample, as in its peer, which says why
MULTIPLE_OF = {"file_create": 64}  # of a sample's operations: any two samples write the same sizes


class Tool(NamedTuple):
    """A program that does a variant's work: what must be installed, its command line, where it prints the figure."""

    name: str
    needs: list[str]
    command: Callable[[int, list[int]], list[Any]]  # from operations and CPUs
    figure: str
    unit_ns: float


# None for locks: `perf bench futex` times wakes, requeues and lock_pi without critical sections, `stress-ng --mutex`
# and `--futex` sleep, yield and change priorities inside of theirs, `sysbench mutex` picks one of 4,096 mutexes by
# chance, and `sysbench threads` yields while it holds one: all of them are other operations.
TOOLS: dict[str, list[Tool]] = {
    # Not pinned, it would be a mixture of same and other CPU; pinned to two CPUs, the scheduler's choice.
    "switch_pipe[place=same]": [
        Tool(
            "perf bench sched pipe",
            ["perf", "taskset"],
            lambda ops, cpus: ["taskset", "-c", cpus[0], "perf", "bench", "sched", "pipe", "-l", ops],
            r"([\d.]+) usecs/op",
            1e3,
        ),
    ],
}


class Explanation(NamedTuple):
    """Why a row may be off, and how the peer is run so that it must agree."""

    words: str
    more: tuple[Any, ...]  # what it is told besides


EXPLAINED: dict[str, Explanation] = {
    # 24 % once; why is not known: two threads that fight for a line fall into one of several rhythms.
    "lock_atomic": Explanation("the kernel's counter is alone in a page from mmap(); a peer with such a page", (1,)),
    "file_create": Explanation("the kernel's 64 sizes are 15002 bytes in the mean; a peer with 64 sizes", (64,)),
}
