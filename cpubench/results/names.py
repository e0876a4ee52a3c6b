"""The names of rows: ``mem_chase[set=16K]@cores`` is a kernel, its parameters and its copies.

Standard library only, and nothing else of ours: the block process imports this.
"""

from __future__ import annotations

CONTROL_KERNEL = "test_work"


def row_name(kernel: str, params: str) -> str:
    """A kernel with its parameters; without brackets where it has none."""
    return f"{kernel}[{params}]" if params else kernel


def row_key(name: str, copies: str) -> str:
    """A row's name with its copies: what a variant and its cells are looked up by."""
    return f"{name}@{copies}"


def split_key(key: str) -> tuple[str, str]:
    """The name and the copies of a key; copies are "" where the row was left out whatever its copies."""
    name, _, copies = key.partition("@")
    return name, copies


def kernel_of(name: str) -> str:
    """The kernel of a row's name or key."""
    return name.partition("@")[0].partition("[")[0]


def is_control(name: str) -> bool:
    """Whether a row's name or key is of the control kernel: that tells of the host, and is no row of any table."""
    return kernel_of(name) == CONTROL_KERNEL
