"""The section on power: what watts are of, each cap level with its state, the curve over caps, and what is claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.report.html.blocks import Block, Section, Table, Text
from cpubench.report.html.figures.power import NO_METER, kinds, pareto, power_curve
from cpubench.report.html.words import MISSING, NAMES, claim_cells, counted, interval, ratio, why
from cpubench.report.terminal import amount, points, spread
from cpubench.results.states import BASE_CAP, HELD

Json = Mapping[str, Any]
NOTE = (
    "Figures at cap levels, and all per watt, are of windows: a contiguous load on all cores while the meter was read. "
    "Points per watt are those of the whole host, idle power included. They are not put beside points per core of "
    "samples, which are in the other sections, nor beside watts of another scope or kind (R4)."
)


def power(doc: Json) -> Section:
    """Nothing of it is drawn or said where no run has a meter or caps."""
    every = [one for one in doc["candidates"] if one["power"] is not None]
    if not every:
        text = f"No figures: {NO_METER}, and none was made under a power cap. A missing watt is blank, never 0."
        return Section("power", "Power", [Text([text])])
    blocks: list[Block] = [Text([NOTE]), _meters(doc["candidates"]), _levels(every), _ratios(every), _states(every)]
    blocks.append(Text([efficient(one) for one in every], bullets=True))
    for number, kind in enumerate(kinds(every)):
        ending = f"-{number + 1}" if number else ""
        blocks.append(pareto(doc["candidates"], kind, f"pareto{ending}"))
        blocks.append(power_curve(doc["candidates"], kind, f"power-curve{ending}"))
    blocks += [table for table in (_pairs(doc),) if table.rows]
    if absent := [*_absent(every), *_not_compared(doc)]:
        blocks.append(Text(absent, bullets=True))
    blocks += [table for table in (_families(every),) if table.rows]
    return Section("power", "Power", [*blocks, *(_tests(one) for one in every if _has_tests(one))])


def _width(made: Json) -> str:
    return f"{points(made['value'])}{spread(made)}".replace("+-", "±")


def _watts(value: float | None) -> str:
    return MISSING if value is None else f"{value:.1f}"


def _meters(every: Sequence[Json]) -> Table:
    rows = []
    for one in every:
        made = one["power"]
        if made is None:
            rows.append([one["label"], "none", *[MISSING] * 5, "the run read no meter and has no caps"])
            continue
        idle = made["idle"]
        rows.append([one["label"], made["meter"] or "none", made["scope"] or MISSING, made["provenance"] or MISSING,
                     made["cap_scope"] or "nothing", _watts(idle["before_watts"]), _watts(idle["after_watts"]),
                     made["problem"] or idle["reason"] or ""])  # fmt: skip
    heads = ["candidate", "meter", "watts of", "kind", "caps limit", ">W at rest before", ">after", "what is missing"]
    return Table("meters", "Where the watts come from", heads, rows)


def _levels(every: Sequence[Json]) -> Table:
    rows = [
        [one["label"], row["level"], row["state"], _watts(row["cap_watts"]), _watts(row["watts"]["value"]),
         *(_width(row[key]) for key in ("per_core", "per_watt", "per_watt_net")),
         counted(row, len(one["runs"]))]
        for one in every for row in one["power"]["levels"]
    ]  # fmt: skip
    heads = ["candidate", "level", "state", ">cap W", ">W drawn", ">points per core", ">points per W",
             ">above idle", "of"]  # fmt: skip
    return Table("levels", "Cap levels: work, watts, and work per watt", heads, rows)


def _ratios(every: Sequence[Json]) -> Table:
    """What a cap costs and gives, with the clock and throttling during the windows."""
    rows = []
    for one in every:
        for row in one["power"]["levels"]:
            told, clock = row["ratio"], row["frequency"]
            mhz = MISSING
            if clock is not None:
                mhz = f"{clock['median_mhz']:.0f} ({clock['p5_mhz']:.0f} .. {clock['p95_mhz']:.0f})"
            grown = [MISSING if count is None else str(count) for count in row["throttles"].values()]
            rows.append([one["label"], row["level"], _times(told["per_core"]), _times(told["per_watt"]), mhz,
                         *grown, f"{row['flagged']} of {row['passes']}"])  # fmt: skip
    heads = ["candidate", "level", ">x per core", ">x per W", ">MHz (5 .. 95 %)", ">heat", ">limit",
             ">disturbed"]  # fmt: skip
    caption = (
        "Cap levels: times the level without a cap, sustained clock, and how often heat or a power limit throttled"
    )
    return Table("level-ratios", caption, heads, rows)


def _times(made: Json) -> str:
    """ "0.800 ±0.3 %"."""
    return MISSING if made["value"] is None else f"{ratio(made['value'])}{spread(made)}".replace("+-", "±")


def _states(every: Sequence[Json]) -> Table:
    rows = []
    for one in every:
        for row in one["power"]["levels"]:
            if row["level"] == BASE_CAP:
                continue
            said = [row["text"]]
            if row["over_cap_passes"]:
                said.append(f"in {row['over_cap_passes']} of {row['passes']} passes it drew more than its cap")
            if row["changed_passes"]:
                said.append(f"something else wrote to a limit in {row['changed_passes']} passes, which are left out")
            rows.append([one["label"], row["level"], row["state"], "; ".join(dict.fromkeys(said))])
    return Table("level-states", "Whether each cap held", ["candidate", "level", "state", "what was seen"], rows)


def efficient(one: Json) -> str:
    """The level of a candidate with the most points per watt, and how sure that is."""
    best = one["power"]["most_efficient"]
    if best["level"] is None:
        return f"{one['label']}: no most efficient level: {best['reason']}."
    made = best["ratio"]
    ends = f"95 % CI {interval(made, 1)}" if made["low"] is not None else why(made)
    word = "is shown to do most per watt" if best["separable"] else "has the most points per watt, not shown to be more"
    return f"{one['label']}: {best['level']} {word}: {ratio(made['value'])} times {best['next']} ({ends})."


def _loose(doc: Json, pair: Json, level: str) -> str:
    """Which candidates of a pair were not shown to draw no more than a cap: "R7: B over_cap"; "" where both were."""
    states = [(one["label"], row["state"]) for one in doc["candidates"] if one["label"] in (pair["a"], pair["b"])
              for row in one["power"]["levels"] if row["level"] == level]  # fmt: skip
    told = ", ".join(f"{label} {state}" for label, state in states if state not in HELD)
    return f"R7: {told}" if told else ""


def _pairs(doc: Json) -> Table:
    """The claims on candidates under one cap that held on both."""
    rows = []
    for pair in doc["pairs"]:
        for one in pair["levels"]:
            for measure, claim in one["headline"].items():
                if claim["ratio"]["value"] is not None and not _loose(doc, pair, one["level"]):
                    rows.append([f"{pair['b']} / {pair['a']}", one["level"], NAMES[measure], *claim_cells(pair, claim)])
    heads = ["pair", "level", "measure", ">ratio", ">95 % CI", ">for all claims", "verdict", "of"]
    return Table("level-pairs", "Pairs under a cap: ratio of rates, or of rates per watt", heads, rows)


def _absent(every: Sequence[Json]) -> list[str]:
    """Why levels have no figure, each reason once."""
    reasons: dict[str, list[str]] = {}
    for one in every:
        for row in one["power"]["levels"]:
            words = {"per_core": f"no points {NAMES['per_core']}", "per_watt": f"no points {NAMES['per_watt']}"}
            words |= {"watts": "no watts drawn"} if one["power"]["meter"] else {}
            for measure, missing in words.items():
                if row[measure]["value"] is None:
                    reasons.setdefault(f"{missing}: {why(row[measure])}", []).append(f"{one['label']} {row['level']}")
    return [f"{', '.join(who)}: {reason}." for reason, who in reasons.items()]


def _not_compared(doc: Json) -> list[str]:
    """Why pairs are not compared under a cap, each reason once."""
    reasons: dict[str, list[str]] = {}
    for pair in doc["pairs"]:
        name = f"{pair['b']} / {pair['a']}"
        for one in pair["levels"]:
            if loose := _loose(doc, pair, one["level"]):
                reasons.setdefault(f"not compared: {loose}", []).append(f"{name} {one['level']}")
                continue
            for measure, claim in one["headline"].items():
                if claim["ratio"]["value"] is None:
                    text = f"not compared {NAMES[measure]}: {why(claim['ratio'])}"
                    reasons.setdefault(text, []).append(f"{name} {one['level']}")
        if pair["headline"] is not None:
            for one in (one for one in pair["refused"] if one["code"] == "cap"):
                reasons.setdefault(f"not compared under {one['text']}", []).append(name)
    return [f"{', '.join(who)}: {reason}." for reason, who in reasons.items()]


def _families(every: Sequence[Json]) -> Table:
    rows = []
    for one in every:
        for family in one["power"]["levels"][0]["families"]:
            for row in one["power"]["levels"]:
                made = row["families"][family]
                if made["per_core"]["value"] is None and made["per_watt"]["value"] is None:
                    continue
                rows.append([one["label"], family, row["level"], _width(made["per_core"]), _width(made["per_watt"]),
                             _times(made["ratio"]["per_core"]), _times(made["ratio"]["per_watt"])])  # fmt: skip
    heads = ["candidate", "family", "level", ">points per core", ">points per W", ">x per core", ">x per W"]
    return Table("level-families", f"{len(rows)} families at cap levels", heads, rows, folded=True)


def _has_tests(one: Json) -> bool:
    return any(row["variants"] for row in one["power"]["levels"]) or any("watts" in row for row in _rows(one, BASE_CAP))


def _rows(one: Json, level: str) -> Sequence[Json]:
    if level == BASE_CAP:
        return [row for row in one["score"]["variants"] if row["copies"] == "cores" and row["scored"]]
    found: list[Json] = next((row["variants"] for row in one["power"]["levels"] if row["level"] == level), [])
    return [row for row in found if row["scored"]]


def _tests(one: Json) -> Table:
    """Time and energy of an operation of each scored test on all cores, level by level."""
    levels = [row["level"] for row in one["power"]["levels"]]
    known = {level: {row["name"]: row for row in _rows(one, level)} for level in levels}
    names = list(dict.fromkeys(name for rows in known.values() for name in rows))
    rows = []
    for name in names:
        cells = [name]
        for level in levels:
            row = known[level].get(name)
            for key, unit, scale in (("ns_per_op", "s", 1e-9), ("joules_per_op", "J", 1.0)):
                value = row[key]["value"] if row and key in row else None
                cells.append(MISSING if value is None else amount(value * scale, unit))
        rows.append(cells)
    heads = ["test, copies on all cores", *(head for level in levels for head in (f">{level}: time", ">energy"))]
    caption = f"{one['label']}: {len(rows)} tests at cap levels, time and energy of one operation"
    return Table(f"level-tests-{one['label']}", caption, heads, rows, folded=True)
