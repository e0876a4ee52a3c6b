"""Two sides compared: the ratio of B's rate to A's with its interval and a word, for every row, family and the whole.

With three or more runs a side the run is the unit and the claims are on the hosts; with fewer, the passes are, and the
claims are on these runs only. Two runs whose passes were measured in turns are compared pass by pass; all others share
no passes and are not paired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from cpubench.analysis.claims import COPIES, Claim, by_runs, composite_claim, missing, row_claim, told
from cpubench.analysis.compare_levels import left_out, level_documents
from cpubench.analysis.compare_watts import watt_claims
from cpubench.analysis.differences import differences, pairing, side_facts, unalike
from cpubench.analysis.estimates import LEAST_RHO, PAIRED_RHO, RHO
from cpubench.analysis.members import NO_FREE, Member
from cpubench.analysis.obstacles import Sides, as_sides, check_runs, row_obstacle
from cpubench.analysis.reference import BASE_CAP, as_reference
from cpubench.analysis.scenarios import Scenario
from cpubench.analysis.verdicts import BAND, MARGIN, verdicts
from cpubench.errors import UsageError
from cpubench.results.names import kernel_of, row_key, split_key

Json = dict[str, Any]
Place = tuple[str, str]  # "headline", "subset", a family or a row's key; and the measure of a composite, else ""


def compare(
    groups: Sequence[Sequence[Member]], reference: Mapping[str, Any], scenario: Scenario,
    fail_band: float | None = None, tables: int = 1,
) -> Json:  # fmt: skip
    """The comparison of two groups of runs, or of all runs by host; the ``reference`` says which rows are scored.

    No difference inside the A/A floor is called one. ``fail_band`` (0.03 is 3 %) adds ``slower``: the names of all that
    B is slower in by more than that. It is a question of its own, with Holm's rule of its own; the words of the table
    answer another. ``tables``: how many comparisons share one page, and with it the 5 % of its wrong words.
    """
    sides = as_sides(groups)
    check_runs(sides)
    families: dict[str, list[str]] = {}
    for name, row in as_reference(dict(reference)).variants.items():
        families.setdefault(row.family, []).append(name)
    keys = _keys(sides)
    scored = [row_key(name, copies) for names in families.values() for name in names for copies in COPIES.values()]
    gone = {key: reason for key in [*keys, *scored] if (reason := missing(sides, key))}
    both = [key for key in keys if all(key in one.obtained for side in sides for one in side)]
    obstacles = {key: why for key in both if (why := row_obstacle(key, sides))}
    refused = {key: why for key, why in obstacles.items() if key not in gone}
    claims = _composites(sides, families, scenario, gone, refused)
    for key in keys:
        reason = gone.get(key) or (refused[key][1] if key in refused else None)
        claims[key, ""] = Claim(None, reason) if reason else row_claim(sides, key)
    claims |= watt_claims(sides, families, scenario, obstacles)
    made = [claim.decisive for claim in claims.values() if claim.decisive is not None]
    if not made:
        _refuse([claim.reason or "" for (_, measure), claim in claims.items() if not measure])
    floor, unknown = _floor(sides)
    band_percent = max(100 * BAND, floor or 0.0)
    found = iter(verdicts(made, band_percent / 100, tables))
    results = {place: told(claim, next(found) if claim.decisive else None) for place, claim in claims.items()}
    document = _document(sides, reference, scenario, families, results, keys, len(made))
    document |= {"band_percent": band_percent, "floor_percent": floor, "floor_reason": unknown}
    told_of = obstacles if document["levels"] else refused
    document["refused"] = [{"code": code, "text": f"{key}: {text}"} for key, (code, text) in told_of.items()]
    document["refused"] += left_out(sides)
    if fail_band is not None:
        placed = [place for place, claim in claims.items() if claim.decisive is not None]
        document["fail_band_percent"] = fail_percent = max(100 * fail_band, band_percent)
        words = verdicts(made, fail_percent / 100, tables)
        document["slower"] = [" ".join(filter(None, place)) for place, v in zip(placed, words, strict=True)
                              if v.word == "slower" and place[1] != "per_watt"]  # fmt: skip
    return document


def _floor(sides: Sides) -> tuple[float | None, str | None]:
    """The largest A/A floor of the runs in per cent, and why that of others is unknown."""
    floors = [one.floor_percent for side in sides for one in side if one.floor_percent is not None]
    reasons: dict[str, list[str]] = {}
    for name, side in zip("AB", sides, strict=True):
        for one in side:
            if one.floor_reason:
                reasons.setdefault(one.floor_reason, []).append(name)
    told = [f"{' and '.join(dict.fromkeys(names))}: {reason}" for reason, names in reasons.items()]
    return max(floors, default=None), "; ".join(told) or None


def _keys(sides: Sides) -> list[str]:
    """The rows of either side in the order of A's plan, those that were skipped last."""
    plans = [one.plan for side in sides for one in side]
    planned = list(dict.fromkeys(variant.key for plan in plans for variant in plan.variants))
    names = {split_key(key)[0] for key in planned}
    skipped = dict.fromkeys(skip.variant for plan in plans for skip in plan.skipped)
    return planned + [key for key in skipped if key not in planned and (split_key(key)[1] or key not in names)]


def _composites(
    sides: Sides, families: Mapping[str, list[str]], scenario: Scenario,
    gone: Mapping[str, str], refused: Mapping[str, tuple[str, str]],
) -> dict[Place, Claim]:  # fmt: skip
    # Other pages are how the host is configured: that stays in the whole and is said there. Other work does not.
    pages = {key for key, (code, _) in refused.items() if code == "page_size"}
    unusable = {**gone, **{key: text for key, (_, text) in refused.items() if key not in pages}}
    weighed = {family: names for family, names in families.items() if scenario.families.get(family)}
    claims: dict[Place, Claim] = {}
    for measure, copies in COPIES.items():
        odd = {split_key(key)[0] for key in pages if split_key(key)[1] == copies}
        whole = composite_claim(sides, measure, weighed, scenario.families, unusable, _pages(weighed, odd))
        claims["headline", measure] = whole
        if whole.estimate is None:
            common = {f: [n for n in names if row_key(n, copies) not in {**unusable, **refused}]
                      for f, names in weighed.items()}  # fmt: skip
            parts = {family: names for family, names in common.items() if names}
            count, of = (sum(map(len, which.values())) for which in (parts, weighed))
            remark = f"subset: {count} of {of} scored rows"
            claims["subset", measure] = composite_claim(sides, measure, parts, scenario.families, unusable, remark)
        for family, names in families.items():
            one = {family: names}
            claims[family, measure] = composite_claim(sides, measure, one, None, unusable, _pages(one, odd))
    return claims


def _pages(parts: Mapping[str, Sequence[str]], odd: Collection[str]) -> str | None:
    return "different page sizes" if any(name in odd for names in parts.values() for name in names) else None


def _refuse(reasons: Sequence[str]) -> NoReturn:
    """Two sides without one common figure are no comparison. Where both have caps, their rows say more."""
    reasons = [reason for reason in reasons if NO_FREE not in reason] or reasons
    ((common, count),) = Counter(reasons).most_common(1) or [("no rows are planned", 0)]
    rest = f" (and {len(reasons) - count} rows for other reasons)" if len(reasons) > count else ""
    raise UsageError("nothing", f"nothing can be compared: {common}{rest}")


def _document(
    sides: Sides, reference: Mapping[str, Any], scenario: Scenario, families: Mapping[str, list[str]],
    results: Mapping[Place, Json], keys: Sequence[str], claims: int,
) -> Json:  # fmt: skip
    def measures(where: str) -> Json:
        return {measure: results[where, measure] for measure in (*COPIES, "per_watt")}

    subset = {measure: results["subset", measure] for measure in COPIES if ("subset", measure) in results}
    return {
        "suite": sides[0][0].plan.suite,
        "reference": reference["name"],
        "scenario": scenario.name,
        "weights_sha256": scenario.sha256,
        "direction": "rate of B / rate of A: above 1, B is faster",
        "scope": "runs" if by_runs(sides) else "this run only",
        "pairing": (pair := pairing(sides)),
        "least_correlation": max(PAIRED_RHO if pair else RHO, LEAST_RHO),  # that words take passes to have
        "claims": claims,
        "margin_percent": 100 * MARGIN,
        "sides": {name: side_facts(side) for name, side in zip("ab", sides, strict=True)},
        "differences": differences(sides),
        "unalike": unalike(sides),
        "refused": [],
        "headline": measures("headline"),
        "subset": subset or None,
        "families": {family: measures(family) for family in families},
        "levels": [
            level | {"rows": [_row(sides, families, key, made, level["level"]) for key, made in level["rows"]]}
            for level in level_documents(sides, families, results)
        ],
        "rows": [_row(sides, families, key, results[key, ""]) for key in keys],
    }


def _row(
    sides: Sides, families: Mapping[str, list[str]], key: str, result: Json, cap: str = BASE_CAP
) -> Json:  # fmt: skip
    name, copies = split_key(key)
    variants = (v for side in sides for one in side for v in one.plan.variants if v.kernel == kernel_of(name))
    known = {member: family for family, members in families.items() for member in members}
    family = known.get(name) or next((variant.family for variant in variants), None)
    scored = name in known and copies != "cpus"
    return {"name": name, "family": family, "copies": copies or None, "cap": cap, "scored": scored, **result}
