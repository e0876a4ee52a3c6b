"""The first page: each candidate's figures, tiers, a few sentences, and what could not be concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cpubench.report.html.answers import answer_rows, more_levels, only
from cpubench.report.html.power import efficient
from cpubench.report.html.refusals import NEVER
from cpubench.report.html.words import counted, interval, ratio, sentence, why
from cpubench.report.terminal import points
from cpubench.results.parse import shown
from cpubench.results.states import HELD

Json = Mapping[str, Any]
SENTENCES, MOST, FEW = 6, 8, 3
LONGEST = 40  # characters of a name on a card
# Rules on pairs, in one line each: eight candidates have 28 pairs, and the first page is one page.
BRIEF = {
    "R1": {"refused": "no winner per core, the interval of the ratio does not decide it, between"},
    "R3": {"refused": "did other work and are not compared:"},
    "R4": {"refused": "watts are of other scopes or kinds, so nothing per watt is said of"},
    "R8": {"relabelled": "different configuration, so no claim on CPU models, between"},
}
MEASURES = {"per_core": "points per core", "speed": "speed of one copy"}
CARD = {"per_core": "points/core", "per_watt": "points/watt", "speed": "speed"}  # short: eight cards fit on a page


@dataclass(frozen=True)
class Card:
    """A candidate on the first page: (name, value, interval or reason) of each measure."""

    label: str
    title: str
    host: str
    tier: str
    figures: list[tuple[str, str, str]]
    publishable: bool


@dataclass(frozen=True)
class Summary:
    status: str
    scale: str
    cards: list[Card]
    answers: list[list[str]]
    only: str
    said: list[str]
    open: list[str]
    never: list[str]


def summary(doc: Json) -> Summary:
    """The first page of a report document."""
    reference, scenario = doc["reference"], doc["scenario"]
    measured = min(one["score"]["covers"] for one in doc["candidates"])
    scale = (
        f"1000 points are what the reference {reference['name']} does: a scale, no rival. Weights of the scenario "
        f"{scenario['name']}; the measured families cover {100 * measured:.0f} % of it. Ranges are 95 % intervals."
    )
    cards = [] if doc["fleet"] else [_card(doc, one) for one in doc["candidates"]]
    return Summary(doc["status"], scale, cards, answer_rows(doc) if len(cards) > 1 else [], only(doc), _said(doc),
                   _open(doc), list(NEVER))  # fmt: skip


def _card(doc: Json, one: Json) -> Card:
    head, divisor = one["score"]["headline"], one["score"]["divisor"]
    figures = []
    for measure, words in CARD.items():
        made = head[measure]
        if made["value"] is None:
            figures.append((words, "-", why(made)))
        else:
            figures.append((words, points(made["value"]), _sure(one, made)))
    under = [one for one in (one["power"] or {"levels": []})["levels"] if one["level"] == doc["under"]]
    for row in under:
        for measure in ("per_core", "per_watt"):
            made, held = row[measure], row["state"] in HELD
            ends = _sure(one, made) if made["value"] is not None else why(made)
            figures.append((f"{CARD[measure]} under {row['level']}", points(made["value"] if held else None),
                            ends if held else f"R7: {row['state']}"))  # fmt: skip
    tiers = _tiers(doc)
    place = next((at for at, labels in enumerate(tiers, 1) if one["label"] in labels), None)
    host = f"{shown(one['facts']['CPU'] or 'unknown CPU', LONGEST)}, {divisor['n']:g} x {divisor['kind']}"
    tier = f"tier {place} of {len(tiers)} per core" if place and len(doc["answers"]) <= FEW else ""
    return Card(one["label"], shown(one["title"], LONGEST), host, tier, figures, one["score"]["publishable"])


def _sure(one: Json, made: Json) -> str:
    """The interval of a figure, or why it has none, and of how many passes or runs it is the mean."""
    ends = interval(made) if made["low"] is not None else why(made)
    return f"{ends}, {counted(made, len(one['runs']))}"


def _tiers(doc: Json) -> Sequence[Sequence[str]]:
    """The tiers per core without a cap."""
    found: Sequence[Sequence[str]] = next(
        (one["tiers"] for one in doc["answers"] if (one["measure"], one["level"]) == ("per_core", None)), []
    )
    return found


def _said(doc: Json) -> list[str]:
    """Three to six sentences: on pairs, those with the leader first; on one host, against the reference."""
    if doc["fleet"]:
        return [
            f"{len(doc['candidates'])} units: shown as a fleet, by model. More than eight are not compared in pairs."
        ]
    if len(doc["candidates"]) == 1:
        one = doc["candidates"][0]
        return [*(_alone(doc, one, measure) for measure in ("per_core", "speed")), *_watts(one)]
    tiers = _tiers(doc)
    first = tiers[0][0] if tiers else doc["candidates"][0]["label"]
    pairs = sorted(doc["pairs"], key=lambda pair: first not in (pair["a"], pair["b"]))
    said = [sentence(pair, "per_core") for pair in pairs]
    if len(doc["answers"]) > FEW:  # the table above them is long, and the first page is one page
        said = said[: FEW - 1]
    elif len(pairs) < 4:
        said += [sentence(pair, "speed") for pair in pairs if pair["headline"] is not None]
    best = [f"{one['label']} {level}{'' if one['power']['most_efficient']['separable'] else ' (not shown to be more)'}"
            for one in doc["candidates"]
            if one["power"] and (level := one["power"]["most_efficient"]["level"]) is not None]  # fmt: skip
    more = [f"Most points per watt, of the levels of each: {', '.join(best)}."] if best else []
    rest = ["All other pairs are in the table of pairs."] if len(pairs) > len(said[:SENTENCES]) else []
    rest += [text] if (text := more_levels(doc)) else []
    return said[:SENTENCES] + more + ([" ".join(rest)] if rest else [])


def _watts(one: Json) -> list[str]:
    """What is said of the watts of a host alone; the reference has none."""
    power, made = one["power"], one["score"]["headline"]["per_watt"]
    if power is None or not power["meter"]:
        return []
    ends = f"95 % CI {interval(made)}" if made["low"] is not None else why(made)
    of = f"watts of {power['scope']}, {power['provenance']}; the reference has none"
    told = [f"Per watt, {one['label']} has {points(made['value'])} points ({ends}, {of})."]
    best = power["most_efficient"]["level"] is not None
    return (told if made["value"] is not None else []) + ([efficient(one)] if best else [])


def _alone(doc: Json, one: Json, measure: str) -> str:
    made, name = one["score"]["headline"][measure], MEASURES[measure]
    if made["value"] is None:
        return f"No {name}: {why(made)}."
    ends = "no interval" if made["low"] is None else f"95 % CI {interval(made, 1000)}"
    only = "" if len(one["runs"]) >= 3 else ", this run only"
    return (
        f"In {name}, {one['label']} is {ratio(made['value'] / 1000)} times the reference "
        f"({ends}, {counted(made, len(one['runs']))}{only})."
    )


def _open(doc: Json) -> list[str]:
    """What a buyer may want to know and this report cannot tell."""
    found = [
        f"{one['id']}{_who(one)}: {one['text']}."
        for one in doc["refusals"]
        if one["kind"] in ("refused", "relabelled") and not _brief(one)
    ]
    for name, words in BRIEF.items():
        pairs = [" and ".join(one["who"]) for one in doc["refusals"] if one["id"] == name and _brief(one)]
        if pairs:
            found.append(f"{name}: {words[next(iter(words))]} {_some(pairs)}.")
    leaning = [f"{one['a']} and {one['b']} ({100 * one['share']:.0f} %)" for one in doc["order"]
               if one["share"] is not None and "weights" in (one["reason"] or "")]  # fmt: skip
    if leaning:
        found.append(
            "The order per core depends on the families' weights for (the share of 1,000 draws of them in which the "
            f"first is ahead): {_some(leaning)}."
        )
    found.sort(key=lambda text: int(text[1:].partition(":")[0].partition(" ")[0]) if text[0] == "R" else 99)
    free = [one["label"] for one in doc["candidates"] if one["power"] is None or len(one["power"]["levels"]) < 2]
    if len(free) == len(doc["candidates"]):
        found.append("No power caps: no run was made under one, so nothing is said of a rack's limit.")
    elif free:
        found.append(f"No power caps on {', '.join(free[:8])}: nothing is said of them under one.")
    return found


def _brief(rule: Json) -> bool:
    """Whether all of its kind are told in one line, which has the names of those it is on."""
    return rule["kind"] in BRIEF.get(rule["id"], {}) and bool(rule["who"])


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:MOST]) + (f"; and {len(names) - MOST} more" if len(names) > MOST else "")


def _who(rule: Json) -> str:
    return f" ({', '.join(rule['who'][:8])}{' ..' if len(rule['who']) > 8 else ''})" if rule["who"] else ""
