"""What a comparison tells of cap levels: a document for each that both sides have, and those that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpubench.analysis.compare_watts import Families, Place, at, common_levels, curve_at, meter_obstacle, remark_of
from cpubench.analysis.obstacles import Sides
from cpubench.analysis.reference import BASE_CAP
from cpubench.results.parse import shown

Json = dict[str, Any]


def left_out(sides: Sides) -> list[Json]:
    """Levels that are not compared, and why."""
    runs, compared = [one for side in sides for one in side], common_levels(sides)
    caps = [cap for cap in dict.fromkeys(cap for one in runs for cap in one.plan.caps) if cap != BASE_CAP]
    scopes = sorted({one.curves.cap_scope for one in runs if one.curves is not None})
    found = []
    for cap in (cap for cap in caps if cap not in compared):
        absent = "not every run has windows at it"
        why = f"the caps limit {' and '.join(scopes)}" if len(scopes) > 1 else absent
        found.append({"code": "cap", "text": f"{shown(cap, 80)}: {why}"})
    obstacle = meter_obstacle(sides)
    if obstacle is not None and obstacle[0] != "no_meter":
        found.append({"code": obstacle[0], "text": f"per watt: {obstacle[1]}"})
    return found


def level_documents(
    sides: Sides, families: Families, results: Mapping[Place, Json]
) -> list[Json]:  # fmt: skip
    """A document for each compared level: headline and families, per core and per watt; its rows by their keys."""
    return [
        {"level": level, "source": "windows", "remark": remark_of(sides, level),
         "headline": {m: results[at(level, "headline"), m] for m in ("per_core", "per_watt")},
         "families": {f: {m: results[at(level, f), m] for m in ("per_core", "per_watt")} for f in families},
         "rows": _level_rows(sides, level, results)}
        for level in common_levels(sides)
    ]  # fmt: skip


def _level_rows(sides: Sides, level: str, results: Mapping[Place, Json]) -> list[tuple[str, Json]]:
    """Key and result of each row under a cap."""
    keys = [key for side in sides for one in side if (c := curve_at(one, level)) for key in c.per_core]
    return [(key, results[at(level, key), ""]) for key in dict.fromkeys(keys)]
