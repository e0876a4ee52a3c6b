"""Mean logs and their differences with standard errors: by passes, by pairs of passes, or by runs.

The last axis of an array is passes (or runs), so that a simulation makes a thousand intervals by the code that makes
one. This is the one rule for intervals: scores, references, comparisons and the stop of a run have theirs from here.
The widening follows the data: headlines of a shared virtual machine had a correlation at lag one of 0.14 to 0.76 in six
runs of 40 to 60 passes, 0.48 on average, and an interval that takes 0.3 for granted covers 0.87 at 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CONFIDENCE = 0.95
RHO = 0.4  # lag-1 correlation of passes, assumed: of three runs rows had 0.24, families 0.39, headlines 0.55
PAIRED_RHO = 0.15  # of paired differences: 0.08 between rows and 0.16 between families of a pass, in the same runs
LEAST_RHO = 0.3  # that words count with
PRIOR = 24  # passes that the assumed correlation weighs as much as; see `correlation`
MAX_RHO = 0.9  # from there on a run is one long drift, and the factor would be above 4
SIGN_PASSES = 6  # the two farthest of five passes hold the median in 0.9375 of cases only


@dataclass(frozen=True)
class Estimate:
    """A mean of logs, its standard error and its degrees of freedom; arrays where many are made at once."""

    log: Array
    error: Array
    freedom: Array


def of_passes(logs: Array, cautious: bool = False, rho: float = RHO) -> Estimate:
    """The mean over passes that follow each other; two at least. ``rho`` is the correlation that is assumed as long as
    few passes show another.

    ``cautious`` is for words that a reader will act upon: the correlation then counts as assumed and 0.3 at least, and
    degrees of freedom are those of so many independent passes as say as much. Far out, where the level of one claim
    among many lies, the plain estimate is wrong more often than it says: with 0.3 assumed, 2.2 % of tables of 26
    claims on two equal sides with 12 passes and a correlation of 0.3 had a wrong one, of 0.5 12 %; the cautious one
    0.3 and 2.4 %.
    """
    found = correlation(logs, rho)
    if cautious:
        found = np.maximum(found, max(rho, LEAST_RHO))
    worth = (1 - found) / (1 + found)  # of a pass, in independent ones
    plain = of_runs(logs)
    freedom = np.maximum((plain.freedom + 1) * worth - 1, 1.0) if cautious else plain.freedom
    return Estimate(plain.log, plain.error / np.sqrt(worth), freedom)


def of_runs(logs: Array) -> Estimate:
    """The mean over runs, which are taken as independent; two at least."""
    count = np.shape(logs)[-1]
    error = np.std(logs, axis=-1, ddof=1) / np.sqrt(count)
    return Estimate(np.mean(logs, axis=-1), error, np.full_like(error, count - 1))


def correlation(logs: Array, rho: float = RHO) -> Array:
    """Lag-1 correlation of passes: what they show, weighed with 24 passes that show ``rho``.

    Eight passes tell next to nothing about it (their own estimate has a standard error of 0.35), sixty do. With this
    weight and RHO, composites of 8 to 40 passes with a true 0.3 are covered 0.949 to 0.951, independent ones 0.984 to
    0.974, and 40 with 0.5 are covered 0.924 (docs/coverage.md). What few passes show of it is too low by (1 + 4 r) / n.
    """
    count = np.shape(logs)[-1]
    centred = logs - np.mean(logs, axis=-1, keepdims=True)
    square = np.sum(centred**2, axis=-1)
    found = np.sum(centred[..., 1:] * centred[..., :-1], axis=-1) / np.where(square > 0, square, 1.0)
    unbiased = found + (1 + 4 * found) / count
    made: Array = np.clip((count * unbiased + PRIOR * rho) / (count + PRIOR), 0.0, MAX_RHO)
    return made


def paired(a: Array, b: Array, cautious: bool = False) -> Estimate:
    """B minus A where both were measured in the same passes: what a pass does to both cancels."""
    return of_passes(b - a, cautious, PAIRED_RHO)


def unpaired(a: Estimate, b: Estimate) -> Estimate:
    """B minus A of two sides that share no passes, with the degrees of freedom of Welch and Satterthwaite."""
    return Estimate(b.log - a.log, np.hypot(a.error, b.error), _freedom([a, b]))


def average(runs: Sequence[Estimate]) -> Estimate:
    """The mean of runs as these runs alone have it: what other runs of the host would give is not in its error."""
    error = np.sqrt(np.sum([run.error**2 for run in runs], axis=0)) / len(runs)
    return Estimate(np.mean([run.log for run in runs], axis=0), error, _freedom(runs))


def _freedom(parts: Sequence[Estimate]) -> Array:
    squares = [part.error**2 for part in parts]
    total = np.sum(squares, axis=0)
    weighed = np.sum([s**2 / part.freedom for s, part in zip(squares, parts, strict=True)], axis=0)
    fallback = np.sum([part.freedom for part in parts], axis=0)  # of sides that do not vary at all
    made: Array = np.where(weighed > 0, total**2 / np.where(weighed > 0, weighed, 1.0), fallback)
    return made


def ends(estimate: Estimate, confidence: float | Array = CONFIDENCE) -> tuple[Array, Array]:
    """The ends of the interval, as logs."""
    half = quantile(estimate.freedom, confidence) * estimate.error
    return estimate.log - half, estimate.log + half


def half_width(estimate: Estimate) -> Array:
    """Relative distance of the farther, upper end from the value (0.02 is 2 %), at 95 %."""
    half = quantile(estimate.freedom) * estimate.error
    return np.asarray(np.expm1(np.minimum(half, 700.0)))  # finite, like the ends of `span`


def span(estimate: Estimate) -> tuple[float, float, float]:
    """Of one estimate the value and the ends of its 95 % interval, no longer as logs."""
    low, high = ends(estimate)
    return bounded_exp(float(estimate.log)), bounded_exp(float(low)), bounded_exp(float(high))


def bounded_exp(log: float) -> float:
    """exp(log), kept inside 1e-304 .. 1e304: from files come absurd numbers, too, and JSON knows no infinity."""
    return math.exp(max(-700.0, min(700.0, log)))


def quantile(freedom: Array, confidence: float | Array = CONFIDENCE) -> Any:
    """The two-sided quantile of Student's t, also between whole degrees of freedom."""
    from scipy.special import stdtrit  # 0.4 s, a quarter of it with numpy there; scipy.stats would take 2 s

    return stdtrit(freedom, (1 + np.asarray(confidence)) / 2)


def sign_ends(a: Array, b: Array, confidence: float = CONFIDENCE) -> tuple[Array, Array, Array] | None:
    """Median of the paired differences B minus A and the ends of its exact sign-test interval; None below six passes.

    It assumes no shape of the noise, only independent pairs: a cross-check of `paired`, 40 % wider with ten passes.
    """
    from scipy.special import bdtr

    differences = np.sort(b - a, axis=-1)
    count = differences.shape[-1]
    if count < SIGN_PASSES:
        return None
    below = bdtr(np.arange(count), count, 0.5)  # probability that at most so many are below the median
    out = int(np.searchsorted(below, (1 - confidence) / 2, side="right")) - 1  # left out at either end
    if out < 0:
        return None
    return np.median(differences, axis=-1), differences[..., out], differences[..., count - 1 - out]
