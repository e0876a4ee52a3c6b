"""The kernel's lists of CPUs, "0-3,8" and "0-7:2/4", as sorted ids and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cpubench.host.fact import Fact, read_text

MAX_CPU = 1_000_000  # a list that names more is a mistake, and expanding it would take gigabytes
_PART = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+)/([0-9]+))?)?")


def parse_cpulist(text: str) -> list[int]:
    """The ids of a cpulist, ascending and unique; ValueError with a sentence on anything that is none.

    "0-7:2/4" is the first 2 of each group of 4 from 0 to 7: 0, 1, 4, 5.
    """
    stripped = text.strip(" \t\r\n\0")
    if not stripped:
        return []
    cpus: set[int] = set()
    named = 0
    for part in stripped.split(","):
        span, of_part = _part_cpus(part)
        named += span
        if (
            named > MAX_CPU + 1
        ):  # the kernel names no CPU twice: "0-1000000" a hundred thousand times would take an hour
            raise ValueError(f"not a CPU list: it names more than {MAX_CPU + 1} CPUs")
        cpus.update(of_part)
    return sorted(cpus)


def _part_cpus(part: str) -> tuple[int, Iterable[int]]:
    """How many ids a part spans, and those that it names."""
    shown = part if len(part) <= 40 else part[:37] + "..."
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"not a CPU list: {shown!r} is neither an id, a range such as 0-3, nor 0-7:2/4")
    digits = [group.lstrip("0") or "0" for group in match.groups() if group is not None]
    # Counting digits first: int() itself refuses more than 4300 of them, in words of its own.
    if any(len(d) > 7 or int(d) > MAX_CPU for d in digits):
        raise ValueError(f"not a CPU list: {shown!r} has a number over {MAX_CPU}")
    numbers = [int(d) for d in digits]
    first, last = numbers[0], numbers[1] if len(numbers) > 1 else numbers[0]
    if last < first:
        raise ValueError(f"not a CPU list: the range {shown!r} runs backwards")
    if len(numbers) < 4:
        return last + 1 - first, range(first, last + 1)
    used, size = numbers[2:]
    if not 1 <= used <= size:
        raise ValueError(f"not a CPU list: {shown!r} takes {used} of each group of {size}")
    return last + 1 - first, (cpu for cpu in range(first, last + 1) if (cpu - first) % size < used)


def format_cpulist(cpus: Iterable[int]) -> str:
    """The shortest list of ids and ranges, as the kernel prints it: [0, 1, 2, 8] is "0-2,8"."""
    ordered = sorted(set(cpus))
    if ordered and not 0 <= ordered[0] <= ordered[-1] <= MAX_CPU:
        raise ValueError(f"CPU ids are from 0 to {MAX_CPU}, not {ordered[0]} to {ordered[-1]}")
    runs: list[list[int]] = []
    for cpu in ordered:
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def read_cpulist(root: Path, name: str) -> Fact[list[int]]:
    """The ids in a file below ``root``; an empty file is an empty list, as in sys/devices/system/cpu/offline."""
    text = read_text(root, name, keep_empty=True)
    if text.value is None:
        return Fact(None, text.reason, text.absent)
    try:
        return Fact(parse_cpulist(text.value))
    except ValueError as error:
        return Fact(None, f"/{name}: {error}")
