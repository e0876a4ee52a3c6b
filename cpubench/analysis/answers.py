"""Who does most: candidates in tiers for each question of a page, without a cap and under each, and who is in none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.analysis.tiers import comparable, tiers
from cpubench.results.parse import shown
from cpubench.results.states import BASE_CAP, HELD

Json = dict[str, Any]
Pairs = Mapping[tuple[int, int], Json]
FREE, CAPPED = ("per_core", "speed", "per_watt"), ("per_core", "per_watt")


def answers(labels: Sequence[str], candidates: Sequence[Json], pairs: Pairs) -> list[Json]:
    """An answer for each measure without a cap, then under each.

    It has ``measure``, ``level``, ``tiers``, ``reason`` and ``left_out``. ``level`` is None without a cap. ``tiers``
    hold labels, none with a ``reason``; ``left_out`` says of each candidate that is in no tier why. ``pairs`` are
    documents of ``compare`` (B against A) by positions of candidates.
    """
    made = [_answer(labels, candidates, pairs, measure, None) for measure in FREE]
    names = dict.fromkeys(level["level"] for one in candidates for level in _levels(one))
    under = [name for name in names if name != BASE_CAP]
    return made + [_answer(labels, candidates, pairs, measure, level) for level in under for measure in CAPPED]


def _levels(one: Mapping[str, Any]) -> Sequence[Json]:
    return one["power"]["levels"] if one["power"] is not None else ()


def _figure(one: Mapping[str, Any], measure: str, level: str | None) -> tuple[float | None, str]:
    """A candidate's points, and why it has none that count."""
    if level is None:
        made = one["score"]["headline"][measure]
        return made["value"], str(made["reason"])
    row = next((row for row in _levels(one) if row["level"] == level), None)
    if row is None:
        return None, "was not measured under it"
    if row["state"] not in HELD:
        return None, f"R7: {row['state']}"
    return row[measure]["value"], str(row[measure]["reason"])


def _answer(labels: Sequence[str], candidates: Sequence[Json], pairs: Pairs, measure: str, level: str | None) -> Json:
    found = [_figure(one, measure, level) for one in candidates]
    if measure == "per_watt":
        found = _of_one_kind(candidates, found)
    there = [at for at, (value, _) in enumerate(found) if value is not None]
    answer: Json = {
        "measure": measure, "level": level, "tiers": [], "reason": None,
        "left_out": [[labels[at], why] for at, (value, why) in enumerate(found) if value is None],
    }  # fmt: skip
    if len(there) < 2:
        alone = "one candidate alone: nothing to order"
        which = f"only {labels[there[0]]} has a figure" if there else "no candidate has a figure"
        return answer | {"reason": alone if len(candidates) < 2 else which}
    own = {at: made for at, made in pairs.items() if set(at) <= set(there)}
    heads = {at: {"headline": head} for at, made in own.items()
             if "error" not in made and (head := _headline(made, level)) is not None}  # fmt: skip
    if not comparable(len(there), heads, measure):
        return answer | {"reason": _obstacle(labels, own, measure, level)}
    ordered = tiers([value for value, _ in found], heads, measure)
    return answer | {"tiers": [[labels[at] for at in tier] for tier in ordered]}


def _of_one_kind(candidates: Sequence[Json], found: list[tuple[float | None, str]]) -> list[tuple[float | None, str]]:
    """The figures whose watts are of the scope and kind that most have; where no kind has most, of none."""
    kinds = [_kind(one) if value is not None else None for one, (value, _) in zip(candidates, found, strict=True)]
    counts = Counter(kind for kind in kinds if kind is not None).most_common(2)
    if len(counts) < 2:
        return found
    most = counts[0][0] if counts[0][1] > counts[1][1] else None
    told = [f"R4: watts of {', '.join(shown(word, 24) for word in kind)}" if kind else "" for kind in kinds]
    return [(None, text) if kind is not None and kind != most else one
            for one, kind, text in zip(found, kinds, told, strict=True)]  # fmt: skip


def _kind(one: Json) -> tuple[str, str]:
    return str(one["power"]["scope"]), str(one["power"]["provenance"])


def _headline(made: Mapping[str, Any], level: str | None) -> Json | None:
    """The claims of a comparison on the whole, without a cap or under one; None where it has none."""
    if level is None:
        return made["headline"]  # type: ignore[no-any-return]
    return next((one["headline"] for one in made.get("levels", ()) if one["level"] == level), None)


def _obstacle(labels: Sequence[str], pairs: Pairs, measure: str, level: str | None) -> str:
    """Why there are no tiers, with the first pair that has none."""
    text = "not every pair of candidates could be compared"
    for (a, b), made in pairs.items():
        if why := _why(made, measure, level):
            return f"{text}: {labels[a]} and {labels[b]}: {why}"
    return text


def _why(made: Mapping[str, Any], measure: str, level: str | None) -> str | None:
    """Why a comparison has no word on the whole; None where it has one."""
    if "error" in made:
        return f"{made['rule']}, {made['error']}"
    head = _headline(made, level)
    if head is not None:
        claim = head[measure]
        return str(claim["ratio"]["reason"]) if claim["verdict"] == "not compared" else None
    start = f"{shown(str(level), 80)}: "
    refused = [one["text"] for one in made["refused"] if one["code"] == "cap" and one["text"].startswith(start)]
    return refused[0].removeprefix(start) if refused else "the level is not in all runs of both"
