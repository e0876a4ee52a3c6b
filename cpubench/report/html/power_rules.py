"""Rules R4, R5 and R7: watts that are other quantities, that were not read, and caps that did not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cpubench.report.html.words import why
from cpubench.results.states import HELD

Json = Mapping[str, Any]
Found = tuple[str, str, str, tuple[str, ...]]  # rule, kind, text, who


def power_rules(doc: Json) -> Iterator[Found]:
    """What of watts and caps is refused or noted in a report document."""
    every = doc["candidates"]
    by_label = {one["label"]: one for one in every}
    for pair in doc["pairs"]:
        both = [by_label[pair[side]]["power"] for side in "ab"]
        if pair["headline"] is not None and all(one is not None and one["meter"] for one in both):
            yield from _of_pair(pair, both)
    if doc["fleet"] and doc["mixed_watts"]:
        yield "R4", "refused", doc["mixed_watts"].removeprefix("R4: "), ()
    for one in every:
        made = one["score"]["headline"]["per_watt"]
        if made["value"] is None and not str(made["reason"]).startswith("R4"):
            unread = made["reason"] == "no_meter"
            text = "no power was read: per watt is blank, never 0" if unread else f"no points per watt: {why(made)}"
            yield "R5", "refused", text, (one["label"],)
        elif made["value"] is None:
            yield "R4", "refused", str(made["reason"]).removeprefix("R4: "), (one["label"],)
        if one["power"] is not None:
            yield from _of_levels(one["label"], one["power"]["levels"])


def _of_pair(pair: Json, both: Sequence[Json]) -> Iterator[Found]:
    who = (pair["a"], pair["b"])
    a, b = both
    if (a["scope"], a["provenance"]) != (b["scope"], b["provenance"]):
        text = f"watts of {a['scope']}, {a['provenance']}, and of {b['scope']}, {b['provenance']}: not compared"
        yield "R4", "refused", text, who
    elif "estimated" in a["provenance"]:
        yield "R4", "refused", "watts that a hypervisor estimates are not compared", who
    elif a["meter"] != b["meter"]:
        yield "R4", "noted", f"two meters of one scope: {a['meter']} and {b['meter']}", who


def _of_levels(who: str, levels: Sequence[Json]) -> Iterator[Found]:
    for row in levels:
        level = row["level"]
        if row["state"] not in HELD:
            yield "R7", "refused", f"no claim under {level}: {row['state']}", (who,)
        if row["changed_passes"]:
            text = f"{level}: something else wrote to a limit in {row['changed_passes']} passes, which are left out"
            yield "R7", "noted", text, (who,)
        if row["throttles"]["thermal"]:
            yield "R7", "noted", f"{level}: throttled by heat {row['throttles']['thermal']} times", (who,)
