"""The scores of several runs, and which of them is ahead: pair by pair, or of many runs each with the next in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from cpubench.report.page import console_of, line, pairs
from cpubench.report.terminal import points, show_score

Json = Mapping[str, Any]

MANY = 6  # runs: their 15 pairs are a page
RULE = (
    "The families' weights are drawn anew around the scenario's. Separable: 95 % of the draws agree on the order, "
    "and the intervals of the headlines do not overlap. This speaks of these runs only, not of their hosts."
)


def show_scores(doc: Json, names: Sequence[str], out: IO[str]) -> None:
    """Nothing; writes the score documents of two or more runs by their names, and how sure their order is."""
    show_score(doc, out, names)
    console = console_of(out)
    console.print(line(console, "\nOrder per core", "bold"))
    pairs(console, by_pair(doc["ranks"]) if len(doc["runs"]) <= MANY else in_order(doc))
    if "task_ranks" in doc:
        console.print(line(console, "\nOrder of the task scores", "bold"))
        pairs(console, by_pair(doc["task_ranks"]))
    console.print(line(console, f"\n{RULE}"))


def by_pair(ranks: Sequence[Json]) -> list[tuple[str, str]]:
    """Each pair of runs, the one that is ahead in more of the draws first."""
    made = []
    for pair in ranks:
        share = 0.5 if pair["share"] is None else pair["share"]
        a, b = (pair["a"], pair["b"]) if share >= 0.5 else (pair["b"], pair["a"])
        word = "and" if share == 0.5 else "ahead of"
        made.append((f"  run {a + 1} {word} run {b + 1}", _verdict(pair, a)))
    return made


def in_order(doc: Json) -> list[tuple[str, str]]:
    """The runs by their points, each with how sure it is ahead of the next; then, apart and in no order with these, the
    runs that have no common scale with them; last those without a headline, and why."""
    heads = [one["headline"]["per_core"] for one in doc["runs"]]
    found = {frozenset((pair["a"], pair["b"])): pair for pair in doc["ranks"]}
    scales: list[list[int]] = []  # runs that can be compared with each other
    for at in (at for at, head in enumerate(heads) if head["value"] is not None):
        same = next((one for one in scales if found[frozenset((one[0], at))]["share"] is not None), None)
        if same is None:
            scales.append([at])
        else:
            same.append(at)
    made = []
    for scale in scales:
        order = sorted(scale, key=lambda at: -heads[at]["value"])
        apart = ""
        if scale is not scales[0]:
            apart = f"apart from run {scales[0][0] + 1}: {found[frozenset((scales[0][0], order[0]))]['reason']}"
        for at, following in zip(order, [*order[1:], None], strict=True):
            text = "" if following is None else _ahead(found, at, following)
            told = "; ".join(filter(None, (apart, text)))
            made.append((f"  run {at + 1}, {points(heads[at]['value'])} points", told))
            apart = ""
    return made + [(f"  run {at + 1}, -", head["reason"]) for at, head in enumerate(heads) if head["value"] is None]


def _ahead(found: Mapping[frozenset[int], Json], at: int, following: int) -> str:
    return f"before run {following + 1}: {_verdict(found[frozenset((at, following))], at)}"


def _verdict(pair: Json, first: int) -> str:
    """Whether two runs are told apart, in how many of the draws ``first`` is ahead, and what stands against it."""
    word = "separable" if pair["separable"] else "not separable"
    if pair["share"] is None:
        return f"{word}: {pair['reason']}"
    share = pair["share"] if first == pair["a"] else 1 - pair["share"]
    return f"{word}: in {100 * share:.0f} % of the draws" + (f"; {pair['reason']}" if pair["reason"] else "")
