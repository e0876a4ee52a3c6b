"""Several runs of one host as one score document, in the shape of a run's, so that a page shows both alike."""

from __future__ import annotations

from collections.abc import Sequence

from cpubench.analysis.pooling import Json, over, rows_over
from cpubench.analysis.power_over_runs import mixed_watts, power_over_runs


def score_over_runs(documents: Sequence[Json]) -> Json:
    """The score document of one run as it is; of several runs against one reference, all figures over the runs."""
    first = documents[0]
    if len(documents) == 1:
        return first
    floors = [one["floor_percent"] for one in documents if one["floor_percent"] is not None]
    unknown = [one["floor_reason"] for one in documents if one["floor_reason"]]
    mixed = mixed_watts([one["power"] for one in documents])
    return first | {
        "covers": min(one["covers"] for one in documents),
        "publishable": all(one["publishable"] for one in documents),
        "passes": sum(one["passes"] for one in documents),
        "floor_percent": max(floors, default=None),
        "floor_reason": unknown[0] if unknown else None,
        "notes": _notes(documents),
        "headline": over([one["headline"] for one in documents], mixed),
        "families": {name: over([one["families"][name] for one in documents], mixed) for name in first["families"]},
        "power": power_over_runs([one["power"] for one in documents]),
        "variants": rows_over([one["variants"] for one in documents], mixed),
        "badges": {code: text for one in documents for code, text in one["badges"].items()},
    }


def _notes(documents: Sequence[Json]) -> list[Json]:
    """Each note once, however many runs have it."""
    return list(
        {(note["code"], note["text"], note["where"]): note for one in documents for note in one["notes"]}.values()
    )
