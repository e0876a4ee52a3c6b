"""A load that draws power: one process on each CPU that hashes a block in its L2 cache, and counts.

For looking at caps only; no sample is ever timed beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

# Other interpreters, not forks: a fork would keep the guardian's pipe and the lock. BLAKE2b is dense integer SIMD code,
# and 256 KiB come from L2. The burner ends itself when its parent is gone, whatever the end of that was.
BURN = """
import hashlib, mmap, os, sys
file, slot, cpu, parent = map(int, sys.argv[1:])
try:
    os.sched_setaffinity(0, {cpu})
except OSError:
    pass
shared, block, count = mmap.mmap(file, 0), bytes(range(256)) * 1024, 0
while os.getppid() == parent:
    hashlib.blake2b(block).digest()
    count += 1
    shared[slot:slot + 8] = count.to_bytes(8, sys.byteorder)
"""
SLOT_BYTES = 64  # a cache line each


@contextmanager
def burning(cpus: Sequence[int]) -> Iterator[Callable[[], int]]:
    """A function that counts the blocks which all CPUs have hashed so far; at the end every burner is gone."""
    counts = os.memfd_create("cpubench-virus")
    burners: list[subprocess.Popen[bytes]] = []
    try:
        os.ftruncate(counts, SLOT_BYTES * len(cpus))
        for number, cpu in enumerate(cpus):
            arguments = [str(n) for n in (counts, SLOT_BYTES * number, cpu, os.getpid())]
            command = [sys.executable, "-I", "-S", "-c", BURN, *arguments]
            nothing = subprocess.DEVNULL
            burners.append(subprocess.Popen(
                command, pass_fds=(counts,), stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True,
            ))  # fmt: skip
        yield lambda: _total(counts, len(cpus))
    finally:
        for burner in burners:
            burner.kill()
        for burner in burners:
            burner.wait()
        os.close(counts)


def _total(counts: int, cpus: int) -> int:
    data = os.pread(counts, SLOT_BYTES * cpus, 0)
    return sum(int.from_bytes(data[at : at + 8], sys.byteorder) for at in range(0, len(data), SLOT_BYTES))
