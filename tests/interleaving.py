"""What taking turns earns: two labels in one block, sampled in rounds or one after the other, at the same time spent.

``nox -s interleaving`` prints a Markdown table after four minutes; docs/method.md has one. It needs an installed
cpubench and an idle machine: it makes its own neighbour, on the CPU that it measures.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pools import DEADLINE_NS, DUE_NS, KERNELS, enough_ops, param, rig
from scipy.special import fdtri

from cpubench.analysis.estimates import quantile, sign_ends

Array = Any
SAMPLE_NS = 10_000_000
SAMPLES = 25  # of each label
REPETITIONS = 16  # blocks of each kind; their deviations are then known to 18 %
SEED = 1


class Pair(NamedTuple):
    """Two variants that one copy holds at once, and the truth on them."""

    name: str
    a: tuple[str, str]
    b: tuple[str, str]
    truth: float  # log of B's time to A's


PAIRS = (
    Pair("work, 5 % more", ("test_work", "steps=1000"), ("test_work", "steps=1050"), math.log(1.05)),
    Pair("4 MiB chase, itself", ("mem_chase", "set=4M"), ("mem_chase", "set=4M"), 0.0),
)

# Spins for a while and sleeps for a while, each of random length with a mean of half a second; or spins for good.
NEIGHBOUR = """
import os, random, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
rng = random.Random(1)
print(flush=True)
while True:
    end = time.monotonic() + rng.expovariate(2)
    while time.monotonic() < end or sys.argv[2] == "always": pass
    time.sleep(rng.expovariate(2))
"""
NEIGHBOURS = ("none", "now and then", "always")


@contextlib.contextmanager
def neighbour(cpu: int, how: str) -> Iterator[None]:
    """A competing process on the CPU."""
    if how == "none":
        yield
        return
    with subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(cpu), how], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it runs
            yield
        finally:
            process.kill()


def in_rounds(rng: random.Random) -> list[int]:
    """The side of each sample: both once a round, in random order."""
    return [side for _ in range(SAMPLES) for side in rng.sample((0, 1), 2)]


def in_a_row(rng: random.Random) -> list[int]:
    """All samples of one side, then all of the other; who comes first is drawn, so that drift is no bias."""
    return [side for side in rng.sample((0, 1), 2) for _ in range(SAMPLES)]


def of_rounds(a: Array, b: Array) -> tuple[float, float]:
    """Median of the log ratios of rounds, and half of its sign-test interval."""
    return middle(b - a)


def of_rows(a: Array, b: Array) -> tuple[float, float]:
    """Difference of the medians, and half of its interval if samples were independent."""
    (one, half), (other, other_half) = middle(a), middle(b)
    return other - one, math.hypot(half, other_half)


def middle(logs: Array) -> tuple[float, float]:
    """Median and half of its exact interval by ranks."""
    found = sign_ends(np.zeros(len(logs)), logs)
    assert found is not None
    median, low, high = map(float, found)
    return median, (high - low) / 2


KINDS: dict[str, tuple[Callable[..., list[int]], Callable[..., tuple[float, float]]]] = {
    "one after the other": (in_a_row, of_rows),
    "in rounds": (in_rounds, of_rounds),
}


def block(pair: Pair, ops: int, sides: list[int], folder: Path) -> tuple[Array, Array]:
    """Logs of ns per operation of both sides' samples, in order, from one fresh process."""
    taken: tuple[list[float], list[float]] = ([], [])
    with rig([pair.a], folder) as made:
        seats = made.placed[pair.a]
        for slot, variant in enumerate((pair.a, pair.b)):
            index, record = param(*variant)
            made.pool.prepare(slot, KERNELS[variant[0]]["number"], index, record["value"], seats)
        for side in sides:
            (answer,) = made.pool.sample(side, [seats[0][0]], ops, 0, DEADLINE_NS, DUE_NS)
            taken[side].append(math.log(answer["elapsed_ns"] / answer["ops"]))
    return np.array(taken[0]), np.array(taken[1])


def calibrated(pair: Pair, folder: Path) -> tuple[int, int]:
    """Operations of a sample, the same for both sides, and the CPU of the copy."""
    with rig([pair.a], folder) as made:
        made.prepare(pair.a)
        return enough_ops(made, pair.a, SAMPLE_NS), made.placed[pair.a][0][1][0]


def measured(pair: Pair, how: str, repetitions: int, folder: Path, rng: random.Random) -> list[str]:
    """The rows of a pair beside a neighbour."""
    ops, cpu = calibrated(pair, folder)
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with neighbour(cpu, how):
        for at in range(repetitions):
            for kind in sorted(KINDS, reverse=bool(at % 2)):
                sides, estimate = KINDS[kind]
                found[kind].append(estimate(*block(pair, ops, sides(rng), folder)))
    return rows(f"{pair.name} | {how}", pair.truth, {kind: np.array(made) for kind, made in found.items()})


def rows(name: str, truth: float, found: dict[str, Array]) -> list[str]:
    """Of each kind: mean error, deviation of the estimates, what that makes the half-width of a block, and what the
    block's own samples say it is; and how many times narrower rounds are, with its 95 % interval (F of variances)."""
    sds = {kind: float(np.std(made[:, 0], ddof=1)) for kind, made in found.items()}
    lines, freedom = [], len(next(iter(found.values()))) - 1
    for kind, made in found.items():
        error, inside = np.mean(made, axis=0) - (truth, 0)
        cells = [100 * error, 100 * sds[kind], 100 * float(quantile(freedom)) * sds[kind], 100 * inside]
        factor = ""
        if kind == "in rounds":
            times = sds["one after the other"] / sds[kind]
            known_to = math.sqrt(fdtri(freedom, freedom, 0.975))
            factor = f"{times:.2g} ({times / known_to:.2g} to {times * known_to:.2g})"
        lines.append(f"| {name} | {kind} | {' | '.join(f'{one:.2g}' for one in cells)} | {factor} |")
    return lines


def main(arguments: list[str]) -> None:
    rng, repetitions = random.Random(SEED), int(arguments[0]) if arguments else REPETITIONS
    print(f"{repetitions} blocks of each kind, {SAMPLES} samples of {SAMPLE_NS / 1e6:.0f} ms a label; in per cent\n")
    print("| pair | neighbour | samples | mean error | sd of the ratio | half-width of a block | what its samples say "
          "| narrower by |\n|---|---|---|--:|--:|--:|--:|--:|")  # fmt: skip
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        for pair in PAIRS:
            for how in NEIGHBOURS:
                print(*measured(pair, how, repetitions, Path(folder), rng), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
