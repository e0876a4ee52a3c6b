"""Which of several runs is ahead, and whether that stands when the weights of the families are not quite these.

The weights are a prior, so each pair of runs is compared under 1,000 draws of them, every weight between half and one
and a half of the scenario's. Two runs are only told apart where 95 % of the draws agree and the intervals of their
headlines do not overlap. Those intervals speak of these runs only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from cpubench.analysis.estimates import CONFIDENCE
from cpubench.analysis.scenarios import Scenario, load_scenarios, pick
from cpubench.analysis.task_times import other_work

DRAWS = 1000
BAND = 0.5
SEED = 1  # any; the same runs must give the same share again
ALIKE = {"suite": "suite", "reference": "reference", "scenario": "scenario", "weights_sha256": "hash of the weights"}
TASKS_ALIKE = ALIKE | {
    "cap": "power cap",
    "divisor_kind": "kind of core",
    "covers": "share of the tasks that is covered",
}

Json = dict[str, Any]


def ranks(documents: Sequence[Json], scenarios: Mapping[str, Scenario] | None = None) -> list[Json]:
    """Each pair of score documents, as positions: the ``share`` (0..1) of draws in which ``a`` is ahead per core.

    ``share`` is null with a reason where the two cannot be compared. ``scenarios`` are by default the shipped ones.
    """
    known = load_scenarios() if scenarios is None else scenarios
    return [_pair(a, b, documents, known) for a, b in combinations(range(len(documents)), 2)]


def _pair(a: int, b: int, documents: Sequence[Json], scenarios: Mapping[str, Scenario]) -> Json:
    one, other = documents[a], documents[b]
    reason = _obstacle(one, other)
    if reason:
        return {"a": a, "b": b, "share": None, "separable": False, "reason": reason}
    weights = pick(scenarios, one["scenario"]).families
    ahead = {
        family: math.log(one["families"][family]["per_core"]["value"] / row["per_core"]["value"])
        for family, row in other["families"].items()
        if weights.get(family)
    }
    return {"a": a, "b": b, **_order(ahead, weights, [document["headline"]["per_core"] for document in (one, other)])}


def task_ranks(documents: Sequence[Json]) -> list[Json]:
    """The same of the task scores of several hosts: their documents, which hold weights and tasks themselves."""
    return [_task_pair(a, b, documents[a], documents[b]) for a, b in combinations(range(len(documents)), 2)]


def _task_pair(a: int, b: int, one: Json, other: Json) -> Json:
    heads = [one["score"], other["score"]]
    reason = next((f"no task score: {head['reason']}" for head in heads if head["value"] is None), None)
    reason = reason or next((f"the {words} of the two differs" for key, words in TASKS_ALIKE.items()
                             if one.get(key) != other.get(key)), None)  # fmt: skip
    reason = reason or other_work(one.get("work", {}), other.get("work", {}))
    if reason:
        return {"a": a, "b": b, "share": None, "separable": False, "reason": reason}
    weights = {row["task"]: row["weight"] for row in one["tasks"] if row["weight"]}
    points = [{row["task"]: row["score"]["value"] for row in document["tasks"]} for document in (one, other)]
    ahead = {task: math.log(points[0][task] / points[1][task]) for task in weights if points[0][task] is not None}
    return {"a": a, "b": b, **_order(ahead, weights, heads)}


def _order(ahead: Mapping[str, float], weights: Mapping[str, float], heads: Sequence[Json]) -> Json:
    """In how many of the draws the first is ahead, from its log ratios, and whether the two are told apart."""
    share = _share(ahead, weights)
    reason = "the order depends on the weights" if 1 - CONFIDENCE < share < CONFIDENCE else None
    if reason is None and _overlap(*heads):
        reason = "the intervals of the headlines overlap"
    return {"share": share, "separable": reason is None, "reason": reason}


def _obstacle(one: Json, other: Json) -> str | None:
    """Why two documents have no common scale."""
    for key, words in ALIKE.items():
        if one.get(key) != other.get(key):
            return f"the {words} of the two differs"
    kinds = [document["divisor"]["kind"] for document in (one, other)]
    if kinds[0] != kinds[1]:
        return f"points per {kinds[0]} and per {kinds[1]} are not compared"
    heads = [document["headline"]["per_core"] for document in (one, other)]
    return next((f"no headline: {head['reason']}" for head in heads if head["value"] is None), None)


def _share(ahead: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The share of draws whose weighted sum of log ratios is positive; a sum of 0 counts half."""
    rng = random.Random(SEED)
    won = 0.0
    for _ in range(DRAWS):
        total = math.fsum(weights[f] * rng.uniform(1 - BAND, 1 + BAND) * log for f, log in sorted(ahead.items()))
        won += (total > 0) + 0.5 * (total == 0)
    return won / DRAWS


def _overlap(one: Json, other: Json) -> bool:
    """Whether the intervals of two quantities have a common value; without an interval they may."""
    if None in (one["low"], one["high"], other["low"], other["high"]):
        return True
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])
