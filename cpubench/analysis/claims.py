"""Claims on two sides: an estimate of the log ratio of rates, B to A, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpubench.analysis.composite import MIN_PASSES, Array, family_logs, present, weighted_logs
from cpubench.analysis.estimates import (
    Estimate,
    average,
    bounded_exp,
    of_passes,
    of_runs,
    paired,
    span,
    unpaired,
)
from cpubench.analysis.members import Member, absence
from cpubench.analysis.obstacles import Sides
from cpubench.analysis.pairing import common_passes, is_pair, sign_test
from cpubench.analysis.quantity import null
from cpubench.analysis.verdicts import NOT_COMPARED, Verdict
from cpubench.results.names import row_key

Json = dict[str, Any]
MIN_RUNS = 3  # two runs a side have one degree of freedom each: t would be 12.7
COPIES = {"per_core": "cores", "speed": "1"}  # that a measure is made of


@dataclass(frozen=True)
class Claim:
    """What is estimated, from how many passes of A and of B; ``remark`` is what must be said beside its value.

    ``estimate`` makes the interval that is shown, ``decisive`` the one that words are found by; ``sign`` is the test
    of a paired one that assumes no shape of the noise.
    """

    estimate: Estimate | None
    reason: str | None = None
    passes: tuple[int, int] = (0, 0)
    remark: str | None = None
    decisive: Estimate | None = None
    paired: bool = False
    sign: Json | None = None


def by_runs(sides: Sides) -> bool:
    """Whether there are runs enough to speak of the hosts; else of these runs only."""
    return min(map(len, sides)) >= MIN_RUNS


def row_claim(sides: Sides, key: str) -> Claim:
    """The claim on a row that every run has."""
    return claim_of(sides, [[one.logs[key] for one in side] for side in sides])


def missing(sides: Sides, key: str) -> str | None:
    """Which side has no figure for a row, and why; with several runs, which of them."""
    for name, side in zip("AB", sides, strict=True):
        for one in side:
            reason = absence(one, key)
            if reason:
                return f"{name}{'' if len(side) == 1 else f' ({one.where})'}: {reason}"
    return None


def composite_claim(
    sides: Sides, measure: str, families: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None,
    gone: Mapping[str, str], remark: str | None = None,
) -> Claim:  # fmt: skip
    """The claim on rows together, computed inside each pass; ``gone`` says by key which rows cannot be used and why."""
    keys = {name: row_key(name, COPIES[measure]) for names in families.values() for name in names}
    lacking = [f"{key} ({gone[key]})" for key in keys.values() if key in gone]
    if lacking or not keys:
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        return Claim(None, f"missing: {'; '.join(lacking[:3])}{more}" if lacking else "nothing is scored")

    def logs(one: Member) -> Array:
        own = {
            family: family_logs({name: one.logs[keys[name]] for name in names}) for family, names in families.items()
        }
        return weighted_logs(own, weights or dict.fromkeys(own, 1.0))

    return claim_of(sides, [[logs(one) for one in side] for side in sides], remark)


def claim_of(sides: Sides, logs: Sequence[Sequence[Array]], remark: str | None = None) -> Claim:
    """The claim on logs per pass of each run of each side."""
    if is_pair([one for side in sides for one in side]):
        return _paired(sides, logs[0][0], logs[1][0], remark)
    complete = [[values[~np.isnan(values)] for values in side] for side in logs]
    passes = tuple(sum(map(len, side)) for side in complete)
    for name, members, side in zip("AB", sides, logs, strict=True):
        for one, values in zip(members, side, strict=True):
            if present(values) < MIN_PASSES:
                text = f"{MIN_PASSES} complete passes are needed, {name} has {present(values)} in {one.where}"
                return Claim(None, text, (passes[0], passes[1]))
    shown, decisive = (_difference(sides, complete, cautious) for cautious in (False, True))
    return Claim(shown, None, (passes[0], passes[1]), remark, decisive)


def _paired(sides: Sides, a: Array, b: Array, remark: str | None) -> Claim:
    in_a, in_b = common_passes(sides[0][0], sides[1][0])
    a, b = a[in_a], b[in_b]
    both = ~np.isnan(b - a)
    count = int(np.count_nonzero(both))
    if count < MIN_PASSES:
        text = f"{MIN_PASSES} passes are needed that both sides have, there are {count}"
        return Claim(None, text, (count, count), paired=True)
    a, b = a[both], b[both]
    shown = paired(a, b)
    return Claim(shown, None, (count, count), remark, paired(a, b, cautious=True), True, sign_test(a, b, shown))


def _difference(sides: Sides, logs: Sequence[Sequence[Array]], cautious: bool) -> Estimate:
    if by_runs(sides):
        a, b = (of_runs(np.array([np.mean(values) for values in side])) for side in logs)
    else:
        a, b = (average([of_passes(values, cautious) for values in side]) for side in logs)
    return unpaired(a, b)


def told(claim: Claim, verdict: Verdict | None) -> Json:
    """The JSON of a claim: ratio with its plain interval, the verdict and the interval that decided it."""
    counts = {"a": claim.passes[0], "b": claim.passes[1]}
    passes = claim.passes[0] if claim.paired else sum(claim.passes)
    if claim.estimate is None or verdict is None:
        reason = claim.reason or "not measured"
        return {"ratio": null(reason, passes), "verdict": NOT_COMPARED, "adjusted": None, "paired": claim.paired,
                "sign": None, "passes": counts, "reason": reason}  # fmt: skip
    value, low, high = span(claim.estimate)
    return {
        "ratio": {"value": value, "low": low, "high": high, "passes": passes, "reason": claim.remark},
        "verdict": verdict.word,
        "adjusted": {"low": bounded_exp(verdict.low), "high": bounded_exp(verdict.high),
                     "confidence": verdict.confidence},
        "paired": claim.paired,
        "sign": claim.sign,
        "passes": counts,
        "reason": claim.remark,
    }  # fmt: skip
