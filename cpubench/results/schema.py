"""The JSON Schema of a run file, made from the records; run as a module it writes ``cpubench/data/run.schema.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from cpubench.results.files import write_atomic
from cpubench.results.records import Run

FILE = Path(__file__).parents[1] / "data" / "run.schema.json"


def run_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of ``run.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "cpubench.run/1",
        "title": "A run of cpubench",
        **msgspec.json.schema(Run),
    }


def schema_bytes() -> bytes:
    """The schema as the shipped file holds it."""
    return json.dumps(run_schema(), indent=1, sort_keys=True).encode() + b"\n"


if __name__ == "__main__":
    write_atomic(FILE, schema_bytes())
