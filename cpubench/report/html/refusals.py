"""What the report does not claim, and why: rules R1 to R15, found in its document.

Of each: ``kind`` says whether a claim is ``refused``, ``relabelled``, or only ``noted``; ``who`` names candidates.
R4, R5 and R7 on watts and caps are in ``power_rules``; R11 and R12 always hold, so they are a sentence of every report
(``NEVER``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cpubench.report.html.facts import in_virtual_machine
from cpubench.report.html.power_rules import power_rules
from cpubench.report.html.prices import MAX_DAYS

Json = Mapping[str, Any]
Rule = dict[str, Any]

NEVER = (
    "R11: nothing is projected to other numbers of cores, clocks or sizes; what was not measured is not here.",
    "R12: points are on this suite's own scale; they are not compared with SPEC, Geekbench or PassMark.",
)
ALLOWED = ("R13",)  # what --allow may show all the same: other refusals have no figure to show
# Facts by which two hosts are set up otherwise; a comparison is then of configurations, not of CPU models.
SETTINGS = ("governor", "turbo", "SMT", "microcode", "huge pages", "kernel command line", "clock source", "quota CPUs",
            "tmpfs")  # fmt: skip
STATUSES = ("VALID", "VALID WITH NOTES", "NOT PUBLISHABLE", "NOT COMPARABLE")


def refusals(doc: Json) -> list[Rule]:
    """All that applies to a report document, by the number of the rule."""
    found = [*_of_pairs(doc["pairs"]), *_of_candidates(doc["candidates"]), *_of_prices(doc)]
    found += [_rule(name, kind, text, *who) for name, kind, text, who in power_rules(doc)]
    return sorted(_together(found), key=lambda one: int(one["id"][1:]))


def _together(found: Sequence[Rule]) -> list[Rule]:
    """Rules that say the same of several candidates as one; those on pairs stay apart."""
    made: dict[tuple[str, str, str, object], Rule] = {}
    for at, one in enumerate(found):
        of_pair = at if one["id"] in ("R1", "R3", "R4", "R8") else None
        known = made.setdefault((one["id"], one["kind"], one["text"], of_pair), {**one, "who": []})
        known["who"] += [label for label in one["who"] if label not in known["who"]]
    return list(made.values())


def status(doc: Json, found: Sequence[Rule]) -> str:
    """The word of the status bar."""
    pairs = doc["pairs"]
    if pairs and all(pair["headline"] is None for pair in pairs):
        return STATUSES[3]
    if not all(one["score"]["publishable"] for one in doc["candidates"]):
        return STATUSES[2]
    return STATUSES[1] if found else STATUSES[0]


def _rule(name: str, kind: str, text: str, *who: str) -> Rule:
    return {"id": name, "kind": kind, "text": text, "who": list(who)}


def _of_pairs(pairs: Sequence[Json]) -> Iterator[Rule]:
    for pair in pairs:
        who = (pair["a"], pair["b"])
        if pair["headline"] is None:
            yield _rule(pair["rule"], "refused", f"not compared: {pair['error']}", *who)
            continue
        if pair["headline"]["per_core"]["verdict"] == "inconclusive":
            yield _rule("R1", "refused", "no winner per core: the interval of their ratio does not decide it", *who)
        differing = {one["what"] for one in pair["differences"]}
        build = sorted(what for what in differing if what.startswith("build: ") or what in ("cpubench", "architecture"))
        if build:
            yield _rule("R3", "noted", f"different build: {', '.join(build)}", *who)
        settings = sorted(what for what in differing if what in SETTINGS or what.startswith("mitigation of "))
        if settings:
            text = f"different configuration, no claim on the CPU model: {', '.join(settings)}"
            yield _rule("R8", "relabelled", text, *who)


def _of_candidates(candidates: Sequence[Json]) -> Iterator[Rule]:
    few = [one["label"] for one in candidates if len(one["runs"]) < 3]
    if few:
        text = "fewer than three runs: every sentence is on this run only, not on the host"
        yield _rule("R2", "relabelled", text, *few)
    models: dict[str, set[str]] = {}
    for facts in (run["facts"] for one in candidates for run in one["runs"]):
        models.setdefault(str(facts["CPU"]), set()).add(str(facts["host id"]))
    lone = [one["label"] for one in candidates
            if min(len(models[str(run["facts"]["CPU"])]) for run in one["runs"]) < 3]  # fmt: skip
    if lone:
        yield _rule("R9", "relabelled", "fewer than three units of its model: this unit, not this model", *lone)
    for one in candidates:
        yield from _of_candidate(one)
    unsigned = [one["label"] for one in candidates if not all(run["signer"] for run in one["runs"])]
    if unsigned:
        text = "run files are sealed by a hash of their content; whether they are signed was not asked (--signers)"
        yield _rule("R14", "noted", text, *unsigned)


def _of_candidate(one: Json) -> Iterator[Rule]:
    who, score = one["label"], one["score"]
    kinds = [run["noise"]["blocks"]["flags"] for run in one["runs"]]

    def blocks(flag: str) -> int:
        return sum(flags.get(flag, 0) for flags in kinds)

    virtual = {
        "a virtual machine": in_virtual_machine(one) or score["divisor"]["kind"] == "vcpu",
        "a CPU quota": score["divisor"]["kind"] == "granted_cpu" or blocks("quota") > 0,
        "stolen time": blocks("stolen") > 0,
    }
    if any(virtual.values()):
        told = ", ".join(what for what, found in virtual.items() if found)
        text = f"virtualised ({told}): not a hardware claim; per {score['divisor']['kind']}, no claim on placement"
        yield _rule("R6", "relabelled", text, who)
    throttled = {"hot": blocks("hot"), "capped": blocks("capped")}
    if any(throttled.values()):
        told = ", ".join(f"{flag} in {count} blocks" for flag, count in throttled.items() if count)
        yield _rule("R7", "noted", f"throttled: {told}", who)
    gone = [note for note in score["notes"] if note["code"] == "missing"]
    if gone:
        text = f"{len(gone)} scored rows are missing, the first: {gone[0]['where']}; their composites are blank"
        yield _rule("R10", "refused", text, who)
    drifting = [row for row in score["variants"] if "drift" in row["flags"] and row["scored"]]
    if drifting:
        text = f"{len(drifting)} scored rows drifted during the run (badge drift)"
        yield _rule("R15", "noted", text, who)


def _of_prices(doc: Json) -> Iterator[Rule]:
    rows = (doc["prices"] or {}).get("rows", [])
    for row in rows:
        if row["reason"] and row["reason"].startswith("R13"):
            yield _rule("R13", "refused", row["reason"].removeprefix("R13: "), row["label"])
        elif row["days"] is not None and row["days"] > MAX_DAYS:
            yield _rule("R13", "allowed", f"the price is {row['days']} days older than the newest run", row["label"])
    currencies = sorted({row["price"]["currency"] for row in rows if row["price"]})
    if len(currencies) > 1:
        labels = [row["label"] for row in rows if row["price"]]
        yield _rule("R13", "refused", f"prices in {', '.join(currencies)}: not compared with each other", *labels)
