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
    "spawn_fork_exec": lambda value, folder: [value, programs.TARGET],
    **{name: lambda value, folder: [folder, value] for name in (*FILES, "storage_fsync")},
    **{name.replace("file", "storage", 1): lambda value, folder: [folder, value] for name in FILES},
    "switch_pipe": lambda value, folder: [],
    "lock_mutex": lambda value, folder: [value],
    "mem_chase": lambda value, folder: [value],
    "test_work": lambda value, folder: [value],
}
# Untimed operations before a kernel's sample, as many as in its peer; else a tenth of the sample's.
WARM_OPS: dict[str, Callable[[int], int]] = {"mem_chase": lambda value: value // 64}
REST_S = {"switch_pipe": 0.2}  # between them and the sample, as in its peer, which says why
# Of a sample's operations: any two samples write the same sizes.
MULTIPLE_OF = {f"{family}_{name}": 64 for family in ("file", "storage") for name in ("create", "rewrite")}


class Tool(NamedTuple):
    """A program that does a variant's work: what must be installed, its command line, where it prints the figure."""

    name: str
    needs: list[str]
    command: Callable[[int, list[int]], list[Any]]  # from operations and CPUs
    figure: str
    unit_ns: float


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


EXPLAINED: dict[str, Explanation] = {}
