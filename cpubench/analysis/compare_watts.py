"""Comparing watts and cap levels: from windows alone, level by level, and within one scope of one kind of meter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from cpubench.analysis.claims import Claim, claim_of
from cpubench.analysis.composite import MIN_PASSES, Array, family_logs, present, weighted_logs
from cpubench.analysis.curves import Curve, key_of
from cpubench.analysis.members import Member
from cpubench.analysis.obstacles import Sides
from cpubench.analysis.reference import BASE_CAP
from cpubench.analysis.scenarios import Scenario
from cpubench.results.parse import shown

Place = tuple[str, str]
Families = Mapping[str, Sequence[str]]
Refused = Mapping[str, tuple[str, str]]
Logs = Callable[[Member], Array]


def watt_claims(
    sides: Sides, families: Families, scenario: Scenario, refused: Refused
) -> dict[Place, Claim]:  # fmt: skip
    """The claims per watt without a cap, and all those of levels that every run has; by where and measure.

    ``refused`` says by key which rows had other memory or files on one side, with a code; other pages stay in families
    and the whole, and are said there.
    """
    claims = _per_watt(sides, BASE_CAP, families, scenario, refused)
    for level in common_levels(sides):
        made = _per_watt(sides, level, families, scenario, refused)
        made |= _per_core(sides, level, families, scenario, refused)
        claims |= {(at(level, where), measure): claim for (where, measure), claim in made.items()}
    return claims


def at(level: str, where: str) -> str:
    """The place of a level's headline, family or row."""
    return f"{where} at {level}"


def common_levels(sides: Sides) -> list[str]:
    """The levels with a cap that all runs have windows of, in the order of A's plan."""
    runs = [one for side in sides for one in side]
    if any(one.curves is None for one in runs):
        return []
    scopes = {one.curves.cap_scope for one in runs if one.curves is not None}
    first = runs[0].curves
    assert first is not None
    every = [level for level in first.levels if level != BASE_CAP]
    return [level for level in every if len(scopes) == 1 and all(curve_at(one, level) is not None for one in runs)]


def meter_obstacle(sides: Sides) -> tuple[str, str] | None:
    """Code and reason why figures per watt of these runs are not compared; None where they are."""
    runs = [one for side in sides for one in side]
    without = [f"{name}" for name, side in zip("AB", sides, strict=True)
               for one in side if one.curves is None or not one.curves.meter]  # fmt: skip
    if without:
        both = set(without) == {"A", "B"}
        return "no_meter", "no_meter" if both else f"{without[0]} was measured without a meter"
    every = [one.curves for one in runs if one.curves is not None]
    if not all(one.scope for one in every):
        return "to_merge", "watts are to be merged with a run"
    for code, values in (("scope", [c.scope for c in every]), ("provenance", [c.provenance for c in every])):
        if len(set(values)) > 1:
            named = " and ".join(dict.fromkeys(shown(value, 40) for value in values))
            return code, f"watts of {named} are not compared: they are other quantities"
    if any("estimated" in one.provenance for one in every):
        return "estimated", "watts that a hypervisor estimates are not compared"
    return None


def curve_at(one: Member, level: str) -> Curve | None:
    curve = one.curves.levels.get(level) if one.curves is not None else None
    return curve if curve is not None and curve.per_core else None


def _per_core(
    sides: Sides, level: str, families: Families, scenario: Scenario, refused: Refused
) -> dict[Place, Claim]:  # fmt: skip
    """Rates of rows, families and the whole under a cap."""
    remark = remark_of(sides, level)
    rows = list(
        dict.fromkeys(key for side in sides for one in side if (c := curve_at(one, level)) for key in c.per_core)
    )
    gone = {key: why for names in families.values() for key in map(key_of, names)
            if (why := _absent(sides, level, key))}  # fmt: skip
    gone |= {key: why for key in rows if (why := _absent(sides, level, key))}
    gone = {key: text for key, (_, text) in refused.items()} | gone
    pages = {key for key in _pages(refused) if gone[key] == refused[key][1]}
    claims: dict[Place, Claim] = {}
    for key in rows:
        claims[key, ""] = (
            Claim(None, gone[key]) if key in gone else claim_of(sides, _logs(sides, _of_row(level, key)), remark)
        )

    def logs(parts: Families, weights: Mapping[str, float] | None) -> Logs:
        def of(one: Member) -> Array:
            curve = curve_at(one, level)
            assert curve is not None
            own = {f: family_logs({n: curve.per_core[key_of(n)] for n in names}) for f, names in parts.items()}
            return weighted_logs(own, weights or dict.fromkeys(own, 1.0))

        return of

    for where, parts, weights in _wholes(families, scenario):
        keys = [key_of(n) for names in parts.values() for n in names]
        short = [f"{key} ({gone[key]})" for key in keys if key in gone and key not in pages]
        said = _said(remark, pages.intersection(keys))
        claims[where, "per_core"] = _claim(sides, short, bool(parts), logs(parts, weights), said)
    return claims


def _per_watt(
    sides: Sides, level: str, families: Families, scenario: Scenario, refused: Refused
) -> dict[Place, Claim]:  # fmt: skip
    """Rates of the whole host by watts, of families and the whole."""
    remark, obstacle = remark_of(sides, level), meter_obstacle(sides)

    def logs(parts: Families, weights: Mapping[str, float] | None) -> Logs:
        def of(one: Member) -> Array:
            curve = curve_at(one, level)
            assert curve is not None
            own = {f: family_logs({n: curve.whole[key_of(n)] for n in _metered(curve, names)}) - curve.watts[f]
                   for f, names in parts.items()}  # fmt: skip
            return weighted_logs(own, weights or dict.fromkeys(own, 1.0))

        return of

    claims = {}
    for where, parts, weights in _wholes(families, scenario):
        if obstacle is not None:
            claims[where, "per_watt"] = Claim(None, obstacle[1])
            continue
        keys, pages = [key_of(n) for names in parts.values() for n in names], _pages(refused)
        short = [f"{key} ({refused[key][1]})" for key in keys if key in refused and key not in pages]
        short += [why for family, names in parts.items() if (why := _unwatched(sides, level, family, names))]
        said = _said(remark, pages.intersection(keys))
        claims[where, "per_watt"] = _claim(sides, short, bool(parts), logs(parts, weights), said)
    return claims


def _pages(refused: Refused) -> set[str]:
    """The rows that had other pages: how the host is configured, and no other work."""
    return {key for key, (code, _) in refused.items() if code == "page_size"}


def _said(remark: str | None, pages: Collection[str]) -> str | None:
    return "; ".join(filter(None, (remark, "different page sizes" if pages else None))) or None


def _wholes(families: Families, scenario: Scenario) -> list[tuple[str, Families, Mapping[str, float] | None]]:
    """The headline's families with their weights, and each family alone."""
    weighed = {family: names for family, names in families.items() if scenario.families.get(family)}
    each: list[tuple[str, Families, Mapping[str, float] | None]] = [
        (f, {f: names}, None) for f, names in families.items()
    ]
    return [("headline", weighed, scenario.families), *each]


def _claim(sides: Sides, short: Sequence[str], anything: bool, logs: Logs, remark: str | None) -> Claim:
    if short or not anything:
        more = f" and {len(short) - 3} more" if len(short) > 3 else ""
        return Claim(None, f"missing: {'; '.join(short[:3])}{more}" if short else "nothing is scored")
    return claim_of(sides, _logs(sides, logs), remark)


def _logs(sides: Sides, of: Logs) -> list[list[Array]]:
    return [[of(one) for one in side] for side in sides]


def _of_row(level: str, key: str) -> Logs:
    def of(one: Member) -> Array:
        curve = curve_at(one, level)
        assert curve is not None
        return curve.per_core[key]

    return of


def _metered(curve: Curve, names: Sequence[str]) -> list[str]:
    return [name for name in names if key_of(name) in curve.whole]


def _absent(sides: Sides, level: str, key: str) -> str | None:
    """Which side lacks a row in its windows."""
    for name, side in zip("AB", sides, strict=True):
        for one in side:
            curve = curve_at(one, level)
            logs = curve.per_core.get(key) if curve is not None else None
            if logs is None:
                return f"{name}: not in its windows"
            if present(logs) < MIN_PASSES:
                said = curve.errors.get(key, "not measured") if curve is not None else ""
                return f"{name}: in {present(logs)} of {len(logs)} passes ({MIN_PASSES} are needed): {said}"
    return None


def _unwatched(sides: Sides, level: str, family: str, names: Sequence[str]) -> str | None:
    """Why a family has no figure per watt that all runs have."""
    sets = []
    for name, side in zip("AB", sides, strict=True):
        for one in side:
            curve = curve_at(one, level)
            if curve is None:
                return f"{name}: no windows at {level}"
            lacking = [key for key in map(key_of, names) if key not in curve.per_core]
            if lacking:
                return f"{name}: {lacking[0]} is not in its windows"
            if family not in curve.watts:
                return f"{name}: {family}: {curve.reasons.get(family, 'no watts')}"
            sets.append(tuple(_metered(curve, names)))
    if not sets[0]:
        return f"{family}: no row is metered"
    return f"{family}: other rows are metered in A than in B" if len(set(sets)) > 1 else None


def remark_of(sides: Sides, level: str) -> str | None:
    """What must be said of a level whose cap was not shown to hold in every run."""
    if level == BASE_CAP:
        return None
    states = [[curve.state for one in side if (curve := curve_at(one, level))] for side in sides]
    if all(state.startswith("verified") for side in states for state in side):
        return None
    a, b = (" or ".join(dict.fromkeys(shown(state, 30) for state in side)) for side in states)
    return f"cap {a} in A, {b} in B"
