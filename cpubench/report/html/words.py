"""How numbers are written on the page, and the closed set of sentences on two candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpubench.report.terminal import REASONS, points

Json = Mapping[str, Any]
MISSING = "-"
ONLY = ", these runs only"


def ratio(value: float | None) -> str:
    """Three decimals around 1, else three digits."""
    if value is None:
        return MISSING
    return f"{value:.3f}" if 0.01 <= value < 9.9995 else f"{value:.3g}"


def interval(made: Json, scale: float = 0) -> str:
    """ "1052 .. 1091" in points, or as a ratio of ``scale``; why there is none, where there is none."""
    if made["low"] is None:
        return MISSING
    tell = points if not scale else (lambda end: ratio(end / scale))
    return f"{tell(made['low'])} .. {tell(made['high'])}"


def why(made: Json) -> str:
    """The reason of a missing value, in words."""
    reason = made["reason"] or "not measured"
    return REASONS.get(reason, str(reason))


def counted(made: Json, runs: int) -> str:
    """Of what a figure of a candidate is the mean: of passes, or of runs."""
    return f"{made['passes']} passes" if runs == 1 else f"{runs} runs"


def sentence(pair: Json, measure: str) -> str:
    """What is claimed on two candidates: one of six sentences, each with its interval and number of passes."""
    a, b = pair["a"], pair["b"]
    if pair["headline"] is None:
        return f"{a} and {b} are not compared: {pair['rule']}, {pair['error']}."
    claim = pair["headline"][measure]
    made, word = claim["ratio"], claim["verdict"]
    if made["value"] is None:
        return f"{a} and {b} are not compared {NAMES[measure]}: {why(made)}."
    ends = f"95 % CI {ratio(made['low'])} .. {ratio(made['high'])}"
    what = f"{b} / {a} is {ratio(made['value'])} {NAMES[measure]} ({ends}"
    tail = f"{what}, {basis(pair, claim)})"
    if word == "faster":
        return f"{b} does more work than {a}: {tail}."
    if word == "slower":
        return f"{a} does more work than {b}: {tail}."
    if word == "equivalent":
        return f"{a} and {b} are equal within {pair['margin_percent']:g} %: {tail}."
    return f"Inconclusive between {a} and {b}: {tail}. That is not a claim that they are equal."


def basis(pair: Json, claim: Json) -> str:
    """Of what a claim on two candidates is made: "16 + 16 passes, these runs only"."""
    if pair["scope"] == "runs":
        return f"{pair['runs']['a']} + {pair['runs']['b']} runs"
    counts = claim["passes"]
    passes = f"{counts['a']} paired passes" if claim["paired"] else f"{counts['a']} + {counts['b']} passes"
    return f"{passes}{ONLY}"


def claim_cells(pair: Json, claim: Json) -> list[str]:
    """Ratio, plain interval, the one that decided, the word and the passes or runs of a claim on two candidates."""
    made, adjusted = claim["ratio"], claim["adjusted"]
    wide = MISSING if adjusted is None else f"{ratio(adjusted['low'])} .. {ratio(adjusted['high'])}"
    word = claim["verdict"] if made["value"] is not None else f"not compared: {why(made)}"
    remark = f" ({claim['reason']})" if claim["reason"] and made["value"] is not None else ""
    return [ratio(made["value"]), interval(made, 1), wide, word + remark, basis(pair, claim).removesuffix(ONLY)]


NAMES = {"per_core": "per core", "speed": "in speed of one copy", "per_watt": "per watt"}
