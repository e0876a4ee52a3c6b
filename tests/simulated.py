"""Simulated passes of known truth, many runs at once, and how often the shipped intervals and words are right.

Arrays are trials x rows x passes, of logs. The sizes of the noise are those of a shared virtual machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import starmap
from typing import Any

import numpy as np

from cpubench.analysis.estimates import (
    Estimate,
    average,
    ends,
    half_width,
    of_passes,
    of_runs,
    paired,
    sign_ends,
    unpaired,
)  # fmt: skip
from cpubench.analysis.verdicts import verdicts
from cpubench.measure.profiles import PROFILES

Array = Any
PASS_SD = 0.05  # of a row from pass to pass: 5 to 10 % were measured
COMMON_SD = 0.06  # what rows share of a pass: the headline, a mean over 16 rows, deviated by 6.6 %
RUN_EFFECT = 0.3  # of a pass's deviation, from run to run
ROWS = 12  # of a composite
TRUTH = math.log(1.05)  # of B to A
PASSES = (8, 12, 24, 40)
RUNS = (3, 4, 5, 6)
LEAST = (PROFILES["quick"].min_passes, PROFILES["standard"].min_passes)
MOST, TARGET = PROFILES["standard"].max_passes, PROFILES["standard"].target_ppm / 1e6
STOPPING_SDS = (0.02, 0.03, 0.05, 0.08)  # of a family: such runs stop at once, early, late, hardly ever


def own(rng: np.random.Generator, shape: tuple[int, ...], sd: float = PASS_SD) -> Array:
    return sd * rng.standard_normal(shape)


def autoregressive(rng: np.random.Generator, shape: tuple[int, ...], rho: float = 0.3) -> Array:
    """AR(1) along the last axis, from its stationary state on."""
    noise = rng.standard_normal(shape)
    logs = np.empty(shape)
    last = logs[..., 0] = noise[..., 0]
    for at in range(1, shape[-1]):
        last = logs[..., at] = rho * last + math.sqrt(1 - rho**2) * noise[..., at]
    return PASS_SD * logs


def drifting(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """10 % from the first pass to the last, up in one run and down in another, the same for all rows of a run."""
    slope = rng.choice([-0.1, 0.1], (*shape[:-2], 1, 1)) * np.linspace(-0.5, 0.5, shape[-1])
    return own(rng, shape) + slope


def shared(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """3 % that all rows of a pass have in common, beside their own noise."""
    return own(rng, shape) + 0.03 * rng.standard_normal((*shape[:-2], 1, shape[-1]))


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Log-normal, and a tail of fast passes: a host that is left alone for a while."""
    return own(rng, shape, 0.03) + 0.05 * (rng.standard_exponential(shape) - 1)


def in_common(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """AR(1) 0.3 in each row and, of the size that a whole run of 96 passes had, in what all rows share."""
    return autoregressive(rng, shape) + COMMON_SD / PASS_SD * autoregressive(rng, (*shape[:-2], 1, shape[-1]))


def moments(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """AR(1) 0.3 in what all rows share, and independent noise of each: moments of the host, as passes showed them."""
    return own(rng, shape) + COMMON_SD / PASS_SD * autoregressive(rng, (*shape[:-2], 1, shape[-1]))


NOISES: dict[str, Callable[..., Array]] = {
    "independent": own, "AR(1) 0.3": autoregressive, "drift of 10 %": drifting, "shared 3 %": shared,
    "heavy tails": heavy, "AR(1) 0.3 in common": in_common, "AR(1) 0.3 of the host": moments,
}  # fmt: skip
BEYOND: dict[str, Callable[..., Array]] = {
    "AR(1) 0.5": lambda rng, shape: autoregressive(rng, shape, 0.5),
}


def covered(interval: tuple[Array, Array], truth: float) -> tuple[float, float]:
    """Share of the intervals that hold the truth, and their mean half-width in logs."""
    low, high = interval
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low) / 2)


def within_runs(noise: Callable[..., Array], passes: int, trials: int, seed: int = 1) -> dict[str, tuple[float, float]]:
    """Coverage and half-width of every interval inside runs, at a number of passes."""
    rng = np.random.default_rng(seed)
    a, b = (noise(rng, (trials, ROWS, passes)) for _ in "ab")
    one, whole = a[:, 0], a.mean(axis=1)
    found = {
        "ratio": covered(ends(unpaired(of_passes(one), of_passes(b[:, 0] + TRUTH))), TRUTH),
        "ratio of composites": covered(ends(unpaired(of_passes(whole), of_passes(b.mean(axis=1) + TRUTH))), TRUTH),
        "paired ratio": covered(ends(paired(one, a[:, 1] + TRUTH)), TRUTH),
        "composite": covered(ends(of_passes(whole)), 0.0),
    }
    signs = sign_ends(one, a[:, 1] + TRUTH)
    assert signs is not None
    return found | {"sign test": covered(signs[1:], TRUTH)}


def stopped(
    noise: Callable[..., Array], sd: float, least: int, families: int, trials: int, seed: int = 1
) -> tuple[float, float, float]:
    """Coverage of a family and of the headline in runs that stop by width, and their mean passes.

    Half of a family's variance is common to all: of three runs of a virtual machine that is so. The widest of the
    families and the headline decides; with one family they are the same, which is the hardest case.
    """
    rng = np.random.default_rng(seed)
    parts = noise(rng, (trials, families, MOST)) + noise(rng, (trials, 1, MOST))
    logs = sd / PASS_SD / math.sqrt(2) * np.concatenate([parts, parts.mean(axis=1, keepdims=True)], axis=1)
    going, held, taken = np.arange(trials), np.zeros(families + 1), 0
    for passes in range(least, MOST + 1):
        seen = logs[going, :, :passes]
        done = (half_width(of_passes(seen)).max(axis=-1) <= TARGET) | (passes == MOST)
        low, high = ends(of_passes(seen[done]))
        held += np.count_nonzero((low <= 0) & (high >= 0), axis=0)
        taken += passes * int(np.count_nonzero(done))
        going = going[~done]
    return float(np.mean(held[:-1])) / trials, float(held[-1]) / trials, taken / trials


def with_run_effects(rng: np.random.Generator, runs: int, passes: int, trials: int, rows: int = 1) -> Array:
    """Trials x runs x rows x passes: what a run does to all its passes, in a row and in common, beside such noise."""
    effect = PASS_SD * rng.standard_normal((trials, runs, rows, 1))
    effect = effect + COMMON_SD * rng.standard_normal((trials, runs, 1, 1))
    return RUN_EFFECT * effect + in_common(rng, (trials, runs, rows, passes))


def between_runs(runs: int, trials: int, passes: int = 12, seed: int = 2) -> dict[str, tuple[float, float]]:
    """Coverage over runs of a ratio, and of the ratio of two composites."""
    rng = np.random.default_rng(seed)
    a, b = (with_run_effects(rng, runs, passes, trials, ROWS) for _ in "ab")
    rows = [side[:, :, 0].mean(axis=-1) for side in (a, b)]
    wholes = [side.mean(axis=(2, 3)) for side in (a, b)]
    return {
        name: covered(ends(unpaired(of_runs(one), of_runs(other + TRUTH))), TRUTH)
        for name, (one, other) in {"ratio": rows, "ratio of composites": wholes}.items()
    }


def one_run_of_hosts(runs: int, trials: int, passes: int = 12) -> float:
    """How often the interval of these runs only would cover the hosts: why it says that it does not speak of them."""
    rng = np.random.default_rng(3)
    a, b = (with_run_effects(rng, runs, passes, trials)[:, :, 0] for _ in "ab")
    sides = [average([of_passes(side[:, at]) for at in range(runs)]) for side in (a, b)]
    return covered(ends(unpaired(*sides)), 0.0)[0]


def cautious(logs: Array) -> Estimate:
    """What words inside runs are found by."""
    return of_passes(logs, cautious=True)


def called_different(a: Array, b: Array, make: Callable[[Array], Estimate] = cautious) -> tuple[float, float]:
    """Share of trials with identical sides in which the headline, and in which anything, is called different.

    The table is that of two quick runs: 20 rows, five families, the whole; the last axis is passes or run means.
    """
    wrong_head = wrong_any = 0
    tables = [_table(side, make) for side in (a, b)]
    both = list(starmap(unpaired, zip(*tables, strict=True)))
    for trial in range(len(a)):
        table = [Estimate(one.log[trial], one.error[trial], one.freedom[trial]) for one in both]
        words = [verdict.word in ("faster", "slower") for verdict in verdicts(table)]
        wrong_head += words[-1]
        wrong_any += any(words)
    return wrong_head / len(a), wrong_any / len(a)


def _table(side: Array, make: Callable[[Array], Estimate]) -> list[Estimate]:
    families = [side[:, at : at + 4].mean(axis=1) for at in range(0, 20, 4)]
    return [make(logs) for logs in [*(side[:, at] for at in range(20)), *families, np.mean(families, axis=0)]]
