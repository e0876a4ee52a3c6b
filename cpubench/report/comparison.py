"""What is said of a comparison, as sentences and tables; ``show_comparison`` writes them at 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from cpubench.report.page import console_of, line, pairs, table_of
from cpubench.report.terminal import MEASURES, REASONS, floor_line
from cpubench.results.names import row_key

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]
Lines = tuple[str, list[tuple[str, str]]]  # a title, and names with sentences
Table = tuple[list[str], list[list[str]]]  # heads, those of numbers with a leading ">"; and lines

ONE_RUN = (
    "Two runs of one shared virtual machine, half an hour apart, differed by 9 %; "
    "three or more runs a side, spread over time, make claims on the hosts."
)
DRIFT = 0.45  # correlation of passes at 0.5 of which 24 + 24 are covered 0.90 instead of 0.95
DAY = 24  # hours
KEYS = ("per_core", "speed", "per_watt")
BASE_CAP = "as-is"
OF_WATTS = ("cap", "scope", "provenance", "estimated")


def show_comparison(doc: Json, out: IO[str]) -> None:
    """Nothing; writes a comparison: the sides, sentences on the whole, tables, and every reason for a "-"."""
    console = console_of(out)
    for number, text in enumerate(header(doc)):
        console.print(line(console, text, "bold" if number < 2 else ""))
    _lists(console, differing(doc))
    console.print()
    for sentence in sentences(doc):
        console.print(line(console, sentence))
    for heads, lines in tables(doc):
        table = table_of(console, *heads)
        for cells in lines:
            table.add_row(*(line(console, cell) for cell in cells))
        console.print()
        console.print(table)
    _lists(console, lists(doc))
    console.print(line(console, f"\n{rules(doc)}"))


def _lists(console: Console, found: Sequence[Lines]) -> None:
    for title, named in found:
        console.print(line(console, f"\n{title}", "bold"))
        pairs(console, [(f"  {name}", text) for name, text in named])


def header(doc: Json) -> list[str]:
    """Who is compared, what the claims speak of, and which way the ratios go."""
    made = [text(name.upper(), side) for text in (_side, _noise) for name, side in doc["sides"].items()]
    ids = {side["host_id"] for side in doc["sides"].values()}
    same = len(ids) == 1 and "unknown" not in ids
    pairing = doc["pairing"]
    times = "" if pairing else "times, "
    hosts = [f"A and B are one host: what differs is in the {times}settings and builds."] if same else []
    if doc["scope"] == "runs":
        scope = "Claims are on the hosts: intervals over runs, of which A and B have three or more."
    elif pairing:
        scope = f"{_only(doc).capitalize()}: no claim on other days or hosts."
    else:
        scope = f"{_only(doc).capitalize()}: no claim on the hosts. {ONE_RUN}"
    bad = [f"NOT PUBLISHABLE: {name.upper()}: {'; '.join(side['not_publishable'][:3])}"
           for name, side in doc["sides"].items() if side["not_publishable"]]  # fmt: skip
    for name, side in ((name.upper(), side) for name, side in doc["sides"].items()):
        if doc["scope"] == "runs":
            if side["span_hours"] is not None and side["span_hours"] < DAY:
                bad.append(f"The runs of {name} are of one day: what other days give is not in the intervals.")
        elif not pairing and (side["correlation"] or 0) > DRIFT:
            much = f"{side['correlation']:.1f}"
            bad.append(f"{name} drifts: its passes are correlated by {much}; its intervals may be too narrow.")
    how = "Unpaired."
    if pairing:
        how = f"Paired: {pairing['passes']} passes of both, measured in turns; what a pass does to both cancels."
        if (pairing["correlation"] or 0) > DRIFT:
            much = f"{pairing['correlation']:.1f}"
            bad.append(f"The difference drifts: it is correlated by {much}; its intervals may be too narrow.")
    weighed = f"Headlines are weighed by the scenario {doc['scenario']}, weights {doc['weights_sha256']}."
    return [*made, *hosts, scope, f"Ratio: {doc['direction']}. {how}", weighed, *doc["unalike"], *bad]


def sentences(doc: Json) -> list[str]:
    """The claims on the whole, or why there are none; the common subset is named as such."""
    made = [f"{MEASURES[key]}: {_sentence(doc, doc['headline'][key], key)}" for key in KEYS]
    for key, claim in (doc["subset"] or {}).items():
        made.append(f"{MEASURES[key]} of a subset, no headline: {_sentence(doc, claim)}")
    for level in doc["levels"]:
        made += [f"{MEASURES[key]} at {level['level']}: {_sentence(doc, claim, key)}"
                 for key, claim in level["headline"].items()]  # fmt: skip
    return made


def tables(doc: Json) -> list[Table]:
    """The whole, the families and the rows: ratio, plain interval, word."""
    claims, verdict = f"for {doc['claims']} claims", "verdict" if doc["scope"] == "runs" else _only(doc)
    whole = [[MEASURES[key], *_cells(doc["headline"][key]), _range(doc["headline"][key]["adjusted"]),
              doc["headline"][key]["verdict"]] for key in KEYS]  # fmt: skip
    families = [
        [family, MEASURES[key], *_cells(row[key]), row[key]["verdict"]]
        for family, row in _families(doc)
        for key in KEYS
        if key in row and row[key]["ratio"]["value"] is not None
    ]
    rows = [
        [f"{row['name']}{' *' if row['scored'] else ''}{_at(row)}", row["copies"] or "-", *_cells(row), row["verdict"]]
        for row in [*doc["rows"], *(row for level in doc["levels"] for row in level["rows"])]
        if row["ratio"]["value"] is not None
    ]
    found: list[Table] = [(["", ">B / A", "95 % CI", claims, verdict], whole)]
    if families:
        found.append((["family", "", ">B / A", "95 % CI", verdict], families))
    if rows:
        found.append((["variant (* scored)", "copies", ">B / A", "95 % CI", verdict], rows))
    return found


def differing(doc: Json) -> list[Lines]:
    """The facts, settings and builds that are not the same on both sides."""
    made = [(str(one["what"]), f"A: {one['a']}; B: {one['b']}") for one in doc["differences"]]
    return [("A and B differ in", made)] if made else []


def lists(doc: Json) -> list[Lines]:
    """What is said of families and rows, and all that is not compared, by its reason."""
    # Why a whole has no figure stands with it; what holds for all of a level is said once.
    known = {made["reason"] for where in (doc, *doc["levels"]) for made in (where["headline"].get("per_watt"),) if made}
    families = [(f"{family} {MEASURES[key]}", made) for family, row in _families(doc) for key, made in row.items()
                if key != "per_watt" or made["ratio"]["value"] is not None or made["reason"] not in known]  # fmt: skip
    levels = {level["level"]: level["remark"] for level in doc["levels"] if level["remark"]}
    every = [*doc["rows"], *(row for level in doc["levels"] for row in level["rows"])]
    rows = [(f"{row_key(row['name'], row['copies']) if row['copies'] else row['name']}{_at(row)}", row)
            for row in every]  # fmt: skip
    remarks = [(f"all at {level}", text) for level, text in levels.items()]
    remarks += [(name, text) for name, made in [*families, *rows]
                if made["ratio"]["value"] and (text := _remark(made)) and text not in levels.values()]  # fmt: skip
    reasons: dict[str, list[str]] = {}
    for name, made in [*families, *rows]:
        if made["ratio"]["value"] is None:
            reasons.setdefault(str(made["reason"]), []).append(name)
    missing = [(reason, ", ".join(names)) for reason, names in reasons.items()]
    missing += [("watts and caps", one["text"]) for one in doc["refused"] if one["code"] in OF_WATTS]
    return [(title, lines) for title, lines in (("Said of figures", remarks), ("Not compared", missing)) if lines]


def rules(doc: Json) -> str:
    """How the words are found."""
    least = f" and takes passes for correlated by {doc['least_correlation']:g} or more"
    passes = "" if doc["scope"] == "runs" else least
    return (
        f"Faster and slower: the interval that holds for all {doc['claims']} claims together (Holm, 95 %){passes} lies "
        f"beyond {doc['band_percent']:.3g} %; equivalent: it lies within {doc['margin_percent']:g} %. "
        f"The 95 % CI is of one claim alone. {floor_line(doc)}."
    )


def _side(name: str, side: Json) -> str:
    runs, divisor = side["runs"], side["divisor"]
    passes = sum(run["passes"] for run in runs)
    files = runs[0]["file"] if len(runs) == 1 else f"{runs[0]['file']} and {len(runs) - 1} more"
    span = "" if len(runs) == 1 or side["span_hours"] is None else f" over {side['span_hours']:.3g} h"
    count = f"{len(runs)} run{'s' * (len(runs) != 1)}{span}, {passes} passes ({files})"
    return f"{name}: {side['host']}, {side['cpu_model']}, {divisor['n']:g} x {divisor['kind']}: {count}"


def _noise(name: str, side: Json) -> str:
    """ "A was disturbed: 4 % of blocks (contended 3 %, stolen 1 %); samples: preempted 2 %"."""
    made = side["noise"]
    again = f", {made['set_aside']} measured again" if made["set_aside"] else ""
    blocks = "nobody looked" if made["flagged"] is None else f"{_share(made['flagged'])} of blocks"
    kinds = _shares(made["blocks"] or {})
    kinds = f" ({kinds})" if kinds else ""
    return f"{name} was disturbed: {blocks}{kinds}{again}; samples: {_shares(made['samples']) or 'none'}"


def _shares(shares: Json) -> str:
    return ", ".join(f"{code} {_share(share)}" for code, share in shares.items())


def _share(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 0.95 or not percent else "under 1 %"


def _sentence(doc: Json, claim: Json, measure: str = "") -> str:
    """ "B needs 3.1 % less time than A (95 % CI 2.0..4.2, 60 + 60 passes, this run only): faster"; per watt, "B needs
    3.1 % less energy than A"."""
    made = claim["ratio"]
    if made["value"] is None:
        return f"{claim['verdict']}: {REASONS.get(made['reason'], made['reason'])}"
    if made["value"] >= 1:
        value, low, high, word = (*(100 * (1 - 1 / made[end]) for end in ("value", "low", "high")), "less")
    else:
        value, high, low, word = (*(100 * (1 / made[end] - 1) for end in ("value", "low", "high")), "more")
    counts = [len(side["runs"]) for side in doc["sides"].values()]
    runs = "" if counts == [1, 1] else f"{counts[0]} + {counts[1]} runs, "
    only = "" if doc["scope"] == "runs" else f", {_only(doc)}"
    a, b = claim["passes"].values()
    passes = f"{a} paired passes{only}" if claim["paired"] else f"{runs}{a} + {b} passes, unpaired{only}"
    remark = f"; {_remark(claim)}" if _remark(claim) else ""
    ends = f"{_percent(low)}..{_percent(high)}"
    what = "energy" if measure == "per_watt" else "time"
    return f"B needs {_percent(value)} % {word} {what} than A (95 % CI {ends}, {passes}): {claim['verdict']}{remark}"


def _remark(claim: Json) -> str:
    """What must be said beside a figure; of the sign test, where it and the interval disagree on a difference."""
    said, sign = [claim["reason"]] if claim["reason"] else [], claim.get("sign")
    if sign and sign["disagrees"]:
        value, low, high = (_percent(100 * (sign[end] - 1)) for end in ("value", "low", "high"))
        said.append(f"sign test disagrees: median {'' if value[0] == '-' else '+'}{value} % ({low} .. {high})")
    return "; ".join(said)


def _only(doc: Json) -> str:
    return "these runs only" if any(len(side["runs"]) > 1 for side in doc["sides"].values()) else "this run only"


def _families(doc: Json) -> list[tuple[str, Json]]:
    """The families, and those at each level with a cap, by a name that says so."""
    made = list(doc["families"].items())
    return made + [
        (f"{name} at {level['level']}", row) for level in doc["levels"] for name, row in level["families"].items()
    ]


def _at(row: Json) -> str:
    return "" if row["cap"] == BASE_CAP else f" at {row['cap']}"


def _percent(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{round(value, 1) + 0.0:.1f}"  # + 0.0: no "-0.0"


def _cells(claim: Json) -> Sequence[str]:
    made = claim["ratio"]
    return "-" if made["value"] is None else _ratio(made["value"]), _range(made)


def _range(made: Json | None) -> str:
    return "-" if made is None or made["low"] is None else f"{_ratio(made['low'])} .. {_ratio(made['high'])}"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if 0.01 <= value < 9.9995 else f"{value:.3g}"
