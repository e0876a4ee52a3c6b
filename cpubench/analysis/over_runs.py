"""Several runs of one host as one score: the geometric mean of the runs, with an interval over them from three on.

A document of several runs has the shape of a score document, so that a page shows both alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cpubench.analysis.claims import MIN_RUNS
from cpubench.analysis.estimates import of_runs, span
from cpubench.analysis.quantity import null

Json = dict[str, Any]


def over_runs(quantities: Sequence[Json]) -> Json:
    """The geometric mean of the runs' values; null where a run has none. Two runs make no interval over runs."""
    passes = sum(one["passes"] for one in quantities)
    reasons = {one["reason"] for one in quantities}
    if len(reasons) == 1 and quantities[0]["value"] is None:
        return null(quantities[0]["reason"], passes)
    for number, one in enumerate(quantities, 1):
        if one["value"] is None:
            return null(f"run {number} of {len(quantities)}: {one['reason']}", passes)
    logs = np.log([one["value"] for one in quantities])
    if len(quantities) < MIN_RUNS:
        made = null(f"an interval over runs needs {MIN_RUNS} of them", passes)
        return made | {"value": math.exp(float(np.mean(logs)))}
    value, low, high = span(of_runs(logs))
    return {"value": value, "low": low, "high": high, "passes": passes, "reason": None}


def score_over_runs(documents: Sequence[Json]) -> Json:
    """The score document of one run as it is; of several runs against one reference, all figures over the runs."""
    first = documents[0]
    if len(documents) == 1:
        return first
    floors = [one["floor_percent"] for one in documents if one["floor_percent"] is not None]
    unknown = [one["floor_reason"] for one in documents if one["floor_reason"]]
    return first | {
        "covers": min(one["covers"] for one in documents),
        "publishable": all(one["publishable"] for one in documents),
        "passes": sum(one["passes"] for one in documents),
        "floor_percent": max(floors, default=None),
        "floor_reason": unknown[0] if unknown else None,
        "notes": _notes(documents),
        "headline": _over([one["headline"] for one in documents]),
        "families": {name: _over([one["families"][name] for one in documents]) for name in first["families"]},
        "variants": _rows(documents),
        "badges": {code: text for one in documents for code, text in one["badges"].items()},
    }


def _over(measures: Sequence[Json]) -> Json:
    return {name: over_runs([one[name] for one in measures]) for name in measures[0]}


def _rows(documents: Sequence[Json]) -> list[Json]:
    known = [{(row["name"], row["copies"]): row for row in one["variants"]} for one in documents]
    made = []
    for key in dict.fromkeys(key for rows in known for key in rows):
        first = next(rows[key] for rows in known if key in rows)
        figures = [name for name, value in first.items() if isinstance(value, dict)]
        absent = dict.fromkeys(figures, null("not in its plan"))
        there = [rows.get(key, absent) for rows in known]
        flags = dict.fromkeys(flag for rows in known if key in rows for flag in rows[key]["flags"])
        made.append(first | {name: over_runs([row[name] for row in there]) for name in figures} | {"flags": [*flags]})
    return made


def _notes(documents: Sequence[Json]) -> list[Json]:
    """Each note once, however many runs have it."""
    return list(
        {(note["code"], note["text"], note["where"]): note for one in documents for note in one["notes"]}.values()
    )
