"""The answers of page one: which candidate does most per core, per watt and under a cap, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from cpubench.report.html.words import MISSING, ONLY, basis, ratio
from cpubench.report.terminal import REASONS
from cpubench.results.parse import shown

Json = Mapping[str, Any]
NAMES = {"per_core": "per core", "speed": "speed of one copy", "per_watt": "per watt"}
NONE = "not concluded"
FLOOR = 2.0  # per cent: an A/A floor above it decides more than the interval does
LONGEST = 24  # characters of the name of a level on page one
MOST = 3  # cap levels on page one; all are in the section on power


def answer_rows(doc: Json) -> list[list[str]]:
    """A row for each question: the question, who does most, the tiers, and the ratio that decides."""
    return [_row(doc, one) for one in _asked(doc)]


def _asked(doc: Json) -> list[Json]:
    levels = [level for level in _levels(doc["answers"]) if _candidates(doc, level) > 1]
    chosen = [doc["under"]] if doc["under"] is not None else levels[:MOST]
    return [one for one in doc["answers"] if one["level"] is None or one["level"] in chosen]


def _levels(found: Sequence[Json]) -> list[str]:
    return list(dict.fromkeys(one["level"] for one in found if one["level"] is not None))


def _candidates(doc: Json, level: str) -> int:
    """How many were measured under a level: one alone is no question of who does most."""
    return sum(any(row["level"] == level for row in (one["power"] or {"levels": []})["levels"])
               for one in doc["candidates"])  # fmt: skip


def more_levels(doc: Json) -> str:
    """What page one does not answer for, where it leaves levels out."""
    rest = len(_levels(doc["answers"])) - len(_levels(_asked(doc)))
    return f"{rest} more cap level{'s are' if rest > 1 else ' is'} in the section on power." if rest else ""


def only(doc: Json) -> str:
    """What is said once above the answers instead of in each."""
    return "" if any(pair["scope"] == "runs" for pair in doc["pairs"] if pair["headline"]) else ONLY


def _row(doc: Json, one: Json) -> list[str]:
    where = "" if one["level"] is None else f" under {shown(one['level'], LONGEST)}"
    question = f"{NAMES[one['measure']]}{where}"
    out = _left_out(one["left_out"])
    if one["reason"]:
        alike = {reason for _, reason in one["left_out"]}
        if len(one["left_out"]) == len(doc["candidates"]) and len(alike) == 1:
            (reason,) = alike
            return [question, NONE, MISSING, f"no candidate has a figure: {REASONS.get(reason, reason)}"]
        return [question, NONE, MISSING, "; ".join(filter(None, (one["reason"], out)))]
    tiers = one["tiers"]
    ordered: list[str] = [label for tier in tiers for label in tier]
    first, others = ordered[0], ordered[1:]
    pair, claim, turned = _claim(doc["pairs"], first, others[0], one)
    made = claim["ratio"]
    value, low, high = (made[end] for end in (("value", "low", "high") if not turned else ("value", "high", "low")))
    if turned:
        value, low, high = (one and 1 / one for one in (value, low, high))
    sure = basis(pair, claim).removesuffix(only(doc))
    told = f"{first} / {others[0]} {ratio(value)} ({ratio(low)} .. {ratio(high)}), {sure}"
    floor = pair["floor_percent"]
    if claim["verdict"] == "inconclusive" and floor is not None and floor > FLOOR:
        told += f"; nothing within the A/A floor of {floor:.2g} % is told apart"
    words = "; ".join(f"{at}: {', '.join(labels)}" for at, labels in enumerate(tiers, 1))
    return [question, _first(doc["pairs"], one), words, "; ".join(filter(None, (told, claim["reason"], out)))]


def _first(pairs: Sequence[Json], one: Json) -> str:
    """Who does most, or between whom that is open; equal are those of which each two were shown to be."""
    both = list(combinations(one["tiers"][0], 2))
    if both and all(_claim(pairs, a, b, one)[1]["verdict"] == "equivalent" for a, b in both):
        return f"{', '.join(one['tiers'][0])} equal"
    return " or ".join(one["tiers"][0])


def _claim(pairs: Sequence[Json], first: str, other: str, one: Json) -> tuple[Json, Json, bool]:
    """The pair of two candidates, its claim, and whether its ratio is that of the other over the first."""
    pair = next(pair for pair in pairs if {pair["a"], pair["b"]} == {first, other})
    heads = {None: pair["headline"]} | {under["level"]: under["headline"] for under in pair["levels"]}
    return pair, heads[one["level"]][one["measure"]], pair["a"] == first


def _left_out(found: Sequence[Sequence[str]]) -> str:
    """ "left out: B, C (no meter was read)"."""
    reasons: dict[str, list[str]] = {}
    for label, reason in found:
        reasons.setdefault(REASONS.get(reason, reason), []).append(label)
    told = [f"{', '.join(labels)} ({reason})" for reason, labels in reasons.items()]
    return f"left out: {'; '.join(told)}" if told else ""
