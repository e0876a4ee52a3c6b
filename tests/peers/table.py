"""What the peers are told, which established tools do the same work, and why a figure may differ.

A new kernel needs ``<kernel>.c`` beside this file and a line in ``ARGUMENTS``. The peer of ``file_x`` also
serves ``storage_x``, for which the folder must be on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cpubench.measure import programs

FILES = ("file_create", "file_rewrite", "file_stat", "file_open_read", "file_walk", "file_tree_copy",
         "file_tree_delete", "file_tempdir")  # fmt: skip
# After operations and CPUs, from the parameter's value and a folder.
ARGUMENTS: dict[str, Callable[[int, Path], list[Any]]] = {
    "spawn_fork_exit": lambda value, folder: [value],
    "spawn_fork_exec": lambda value, folder: [value, programs.TARGET],
    "spawn_vfork_exec": lambda value, folder: [value, programs.TARGET],
    "spawn_posix": lambda value, folder: [value, programs.TARGET],
    "spawn_thread": lambda value, folder: [],
    "spawn_reap": lambda value, folder: [value],
    "spawn_shell": lambda value, folder: [],
    **{name: lambda value, folder: [folder, value] for name in (*FILES, "storage_fsync")},
    "switch_pipe": lambda value, folder: [],
    "switch_futex": lambda value, folder: [],
    "switch_unix": lambda value, folder: [],
    "switch_yield": lambda value, folder: [],
    "switch_wake": lambda value, folder: [],
    "switch_signal": lambda value, folder: [],
    "lock_mutex": lambda value, folder: [value],
    "lock_all": lambda value, folder: [value],
    "lock_rwlock": lambda value, folder: [],
    "lock_atomic": lambda value, folder: [],
    "lock_false_sharing": lambda value, folder: [],
    "lock_condvar": lambda value, folder: [],
    "lock_line": lambda value, folder: [],
    "mem_chase": lambda value, folder: [value],
    "mem_tlb": lambda value, folder: [value],
    "mem_read": lambda value, folder: [],
    "mem_copy": lambda value, folder: [],
    "mem_touch": lambda value, folder: [value],
    "mem_cow": lambda value, folder: [],
    "mem_map": lambda value, folder: [],
    "test_work": lambda value, folder: [value],
}
# Untimed operations before a kernel's sample, as many as in its peer; else a tenth of the sample's.
WARM_OPS: dict[str, Callable[[int], int]] = {"mem_chase": lambda value: value // 64}
# Between them and the sample, as in the peer; that of switch_pipe says why.
REST_S = {"switch_pipe": 0.2, "switch_futex": 0.2, "switch_unix": 0.2, "switch_wake": 0.2,
          "lock_condvar": 0.2}  # fmt: skip
# Of a sample's operations: any two samples write the same sizes.
MULTIPLE_OF = {"file_create": 64, "file_rewrite": 64}


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


APART = Explanation(
    "the same loop takes up to a quarter longer in a function of its own than inside of main(), as compiled into "
    "several programs; a peer with a function of its own, as the kernel's",
    (1,),
)
EXPLAINED: dict[str, Explanation] = {
    "mem_touch[memory=fresh]": APART,
    "mem_touch[memory=reused]": APART,
    "mem_cow[set=32M]": APART,
    # 24 % once; why is not known: two threads that fight for a line fall into one of several rhythms.
    "lock_atomic": Explanation("the kernel's counter is alone in a page from mmap(); a peer with such a page", (1,)),
}
