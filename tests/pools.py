"""A real pool for tests: kernels by name, on the CPUs that this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.host.facts import collect
from cpubench.host.layout import layout
from cpubench.host.topology import read_topology
from cpubench.measure import programs
from cpubench.measure.calibrate import one_copy
from cpubench.measure.copies import seats_of

KERNELS = {kernel["name"]: kernel for kernel in _native.kernels(hidden=True)}
LISTED = [name for name, kernel in KERNELS.items() if "hidden" not in kernel["flags"]]
CORES = read_topology().cores
CPUS = [core.cpus[0] for core in CORES]
DEADLINE_NS = 20_000_000_000
DUE_NS = 100_000_000  # nobody looks after a sample before that, as in a block


def param(kernel: str, label: str) -> tuple[int, dict[str, Any]]:
    """(index, record) of a kernel's parameter value."""
    return next((i, p) for i, p in enumerate(KERNELS[kernel]["params"]) if p["label"] == label)


def groups_of(kernel: str, label: str) -> list[list[int]]:
    """The CPUs of each of the copies that fit on this machine."""
    place = param(kernel, label)[1]
    return layout(CORES, place["place"], place["threads"])


class Rig:
    """A pool that holds some variants, one copy each unless all are asked for."""

    def __init__(self, variants: list[tuple[str, str]], folder: Path, copies: int | None = 1) -> None:
        seats: dict[tuple[int, int, str], int] = {}
        self.placed: dict[tuple[str, str], list[tuple[int, list[int]]]] = {}
        for kernel, label in variants:
            groups = groups_of(kernel, label)[:copies]
            one = {"kernel": kernel, "value": param(kernel, label)[1]["value"], "groups": groups}
            one |= {"flags": KERNELS[kernel]["flags"]}
            for place, group in zip(seats_of(one), groups, strict=True):
                self.placed.setdefault((kernel, label), []).append((seats.setdefault(place, len(seats)), group))
        where = [(cpu, touched) for cpu, touched, _ in seats]
        self.pool = _native.Pool(
            str(programs.COPY), str(programs.TARGET), str(folder), where, collect()["llc_bytes"] or 0
        )
        self.slots = {variant: slot for slot, variant in enumerate(variants)}

    def prepare(self, *variants: tuple[str, str]) -> None:
        for variant in variants or self.slots:
            index, record = param(*variant)
            number = KERNELS[variant[0]]["number"]
            self.pool.prepare(self.slots[variant], number, index, record["value"], self.placed[variant])

    def sample(self, variant: tuple[str, str], ops: int, window_ns: int = 0, copies: int | None = None,
               deadline_ns: int = DEADLINE_NS, due_ns: int = DUE_NS) -> list[dict[str, Any]]:  # fmt: skip
        seats = [seat for seat, _ in self.placed[variant][:copies]]
        return self.pool.sample(self.slots[variant], seats, ops, window_ns, deadline_ns, due_ns)

    def ns(self, variant: tuple[str, str], ops: int) -> float:
        """Nanoseconds per operation of one batch on the first copy."""
        answer = self.sample(variant, ops, copies=1)[0]
        return answer["elapsed_ns"] / answer["ops"]

    def release(self, variant: tuple[str, str]) -> list[dict[str, Any]]:
        return self.pool.release(self.slots[variant])


@contextmanager
def rig(variants: list[tuple[str, str]], folder: Path, copies: int | None = 1) -> Iterator[Rig]:
    made = Rig(variants, folder, copies)
    try:
        yield made
    finally:
        made.pool.close()


def at_most(variant: tuple[str, str], ops: int) -> int:
    """That many operations, or as many as a batch of the kernel may have."""
    return min(ops, KERNELS[variant[0]]["max_ops"] or ops)


def enough_ops(made: Rig, variant: tuple[str, str], target_ns: int) -> int:
    """Operations that last about ``target_ns`` in one batch, as a run finds them."""
    found = one_copy(lambda ops: round(made.ns(variant, ops) * ops), target_ns, KERNELS[variant[0]]["max_ops"])
    assert found
    return found[0]


def children() -> list[int]:
    """Pids of this process's children that live; a zombie that nobody reaped yet does not.

    The tracker of ``multiprocessing`` is none of ours: once started it lives as long as this process.
    """
    import psutil

    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.status() != "zombie" and not any("resource_tracker" in word for word in child.cmdline()):
                found.append(child.pid)
        except psutil.NoSuchProcess:
            continue
    return found


def lived(pid: int) -> bool:
    """Whether the process is still there; zombies of an init that does not reap are not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
