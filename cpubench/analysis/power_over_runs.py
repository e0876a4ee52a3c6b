"""Watts and cap levels of several runs of one host as one document, in the shape of a run's."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from cpubench.analysis.pooling import Json, over, over_runs, rows_over
from cpubench.analysis.quantity import null
from cpubench.results.parse import shown
from cpubench.results.states import BASE_CAP, CLAIMED, HELD

ABSENT = "no such level in it"
SUMS = ("passes", "over_cap_passes", "changed_passes", "flagged", "windows")
FIGURES = ("watts", "per_core", "per_watt", "per_watt_net")


def mixed_watts(documents: Sequence[Json | None]) -> str | None:
    """Why watts of these are not put together; None where they are of one scope and one kind, or there are none."""
    found = [(one["scope"], one["provenance"]) for one in documents if one is not None and one["meter"]]
    for at in (0, 1):
        named = list(dict.fromkeys(shown(str(one[at]), 40) for one in found))
        if len(named) > 1:
            return f"R4: watts of {' and '.join(named)} are other quantities and are not put together"
    return None


def mixed_caps(documents: Sequence[Json | None]) -> str | None:
    """Why levels of these under a cap are not put together: a name of watts of packages and of a node are two caps."""
    capped = [one for one in documents if one is not None and any(row["level"] != BASE_CAP for row in one["levels"])]
    named = list(dict.fromkeys(shown(str(one["cap_scope"] or "something not told"), 40) for one in capped))
    return f"the caps limit {' and '.join(named)}: other caps are not put together" if len(named) > 1 else None


def power_over_runs(documents: Sequence[Json | None]) -> Json | None:
    """The power documents of runs as one; None where no run has one. A level that a run lacks has no figures."""
    there = [one for one in documents if one is not None]
    if not there or len(documents) == 1:
        return documents[0]
    mixed, limits = mixed_watts(there), mixed_caps(there)
    apart = mixed or limits
    levels = [_level([_at(one, name) for one in documents], mixed, None if name == BASE_CAP else limits)
              for name in dict.fromkeys(level["level"] for one in there for level in one["levels"])]  # fmt: skip
    problems = [one["problem"] for one in there if one["problem"]]
    return {
        **{name: _named(there, name) for name in ("meter", "scope", "provenance", "cap_scope")},
        "problem": mixed or next(iter(problems), None), "shortened": any(one["shortened"] for one in there),
        "idle": {name: None if mixed else _mean([one["idle"][name] for one in there])
                 for name in ("before_watts", "after_watts")}
                | {"reason": mixed or next((one["idle"]["reason"] for one in there if one["idle"]["reason"]), None)},
        "levels": levels, "most_efficient": _most_efficient(levels, documents, apart),
        "efficiency": null(apart) if apart else _efficiency(documents),
    }  # fmt: skip


def _named(there: Sequence[Json], name: str) -> str | None:
    return " and ".join(dict.fromkeys(str(one[name]) for one in there if one[name])) or None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _efficiency(documents: Sequence[Json | None]) -> Json:
    """The mean over levels of all runs: of curves over the same levels alone."""
    if len({frozenset(level["level"] for level in one["levels"]) for one in documents if one is not None}) > 1:
        return null("its runs have other cap levels")
    return over_runs([null("no meter and no caps") if one is None else one["efficiency"] for one in documents])


def _at(one: Json | None, name: str) -> Json | None:
    return next((level for level in one["levels"] if level["level"] == name), None) if one is not None else None


def _level(rows: Sequence[Json | None], mixed: str | None, limits: str | None) -> Json:
    """One level over the runs. Its state is the worst: of a cap that did not hold, else of one that does not bind.

    ``mixed`` says why it has no figures of watts, ``limits`` why it has none at all.
    """
    there = [row for row in rows if row is not None]
    first = min(there, key=lambda row: 0 if row["state"] not in HELD else 1 if row["state"] not in CLAIMED else 2)
    alike = sum(row["state"] == first["state"] for row in there)
    absent = {name: null(ABSENT) for name in FIGURES}
    no_ratio = {name: null(ABSENT) for name in first["ratio"]}

    def pooled(measures: Sequence[Json]) -> Json:
        return {name: null(limits) for name in measures[0]} if limits else over(measures, mixed)

    families = {
        family: pooled([_figures(row, family) for row in rows])
        | {"ratio": pooled([_ratios(row, family) for row in rows])}
        for family in first["families"]
    }
    return {
        **first, **{name: sum(row[name] for row in there) for name in SUMS},
        "text": first["text"] if alike == len(there) else f"in {alike} of {len(there)} runs: {first['text']}",
        "cap_watts": None if limits else _mean([row["cap_watts"] for row in there]),
        **pooled([(row and {name: row[name] for name in FIGURES}) or absent for row in rows]),
        "ratio": pooled([row["ratio"] if row else no_ratio for row in rows]), "families": families,
        "energy_flags": _summed([row["energy_flags"] for row in there]),
        "frequency": _frequency([row["frequency"] for row in there]),
        "throttles": {name: _told([row["throttles"][name] for row in there]) for name in first["throttles"]},
        "variants": [] if limits else rows_over([row["variants"] if row else [] for row in rows], mixed),
    }  # fmt: skip


def _figures(row: Json | None, family: str) -> Json:
    """The figures of a family at a level; null where the run has no such level."""
    names = FIGURES[1:]
    return {name: row["families"][family][name] if row else null(ABSENT) for name in names}


def _ratios(row: Json | None, family: str) -> Json:
    return {name: row["families"][family]["ratio"][name] if row else null(ABSENT) for name in ("per_core", "per_watt")}


def _summed(counts: Sequence[Json]) -> dict[str, int]:
    return {name: sum(one.get(name, 0) for one in counts) for name in sorted({name for one in counts for name in one})}


def _told(counts: Sequence[int | None]) -> int | None:
    """The sum; None where a run does not tell, or it would be too small."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _frequency(found: Sequence[Json | None]) -> Json | None:
    """The widest range of the runs around their median."""
    told = [one for one in found if one is not None]
    if not told:
        return None
    return {"mean_mhz": fmean(one["mean_mhz"] for one in told), "p5_mhz": min(one["p5_mhz"] for one in told),
            "median_mhz": median(one["median_mhz"] for one in told),
            "p95_mhz": max(one["p95_mhz"] for one in told)}  # fmt: skip


def _most_efficient(levels: Sequence[Json], documents: Sequence[Json | None], apart: str | None) -> Json:
    """The level with the most points per watt of those whose caps hold; told from the next by an interval over runs."""
    able = [row for row in levels if row["per_watt"]["value"] is not None and row["state"] in CLAIMED]
    if len(able) < 2:
        why = apart or "fewer than two levels have points per watt and a cap that was shown to hold"
        return {"level": None, "next": None, "ratio": null(why), "separable": False, "reason": why}
    first, second = (row["level"] for row in sorted(able, key=lambda row: -row["per_watt"]["value"])[:2])
    better = over_runs([_quotient(_at(one, first), _at(one, second)) for one in documents])
    return {"level": first, "next": second, "ratio": better,
            "separable": better["low"] is not None and better["low"] > 1, "reason": better["reason"]}  # fmt: skip


def _quotient(one: Json | None, other: Json | None) -> Json:
    """The points per watt of a run at one level over those at another, without an interval of its own."""
    if one is None or other is None:
        return null(ABSENT)
    a, b = one["per_watt"], other["per_watt"]
    passes = min(a["passes"], b["passes"])
    return {"value": a["value"] / b["value"], "low": None, "high": None, "passes": passes, "reason": None}
