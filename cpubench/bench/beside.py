"""The ``pytest-benchmark.json`` of a run folder: other tools read it, so it must say what the run says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpubench.bench.export import to_pytest_benchmark
from cpubench.errors import UsageError
from cpubench.results.parse import located, parse, read

if TYPE_CHECKING:
    from cpubench.results.records import Run

FILE = "pytest-benchmark.json"
CLOSE = 1e-9  # relative: another libm or another Python's statistics may end in other digits
AGAIN = "`cpubench export RUN --to pytest-benchmark` makes it anew"


def check_export(folder: Path, run: Run) -> None:
    """None if the folder has no such file, or one that holds what the run exports."""
    file = folder / FILE
    if not file.exists() and not file.is_symlink():
        return
    wanted = json.loads(json.dumps(to_pytest_benchmark(run)))
    try:
        found = parse(read(file))
        found["version"] = wanted["version"]  # of the pytest-benchmark that wrote it
        place = difference(found, wanted, "$")
        if place:
            raise UsageError("export", f"differs from what the run exports; {AGAIN}", place)
    except UsageError as fault:
        raise located(file, fault) from None


def difference(found: Any, wanted: Any, place: str) -> str | None:
    """The first place where two JSON documents differ; None where they say the same."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        odd = sorted(found.keys() ^ wanted.keys())
        inner = [(found[key], wanted[key], f"{place}.{key}") for key in wanted.keys() & found.keys()]
        return f"{place}.{odd[0]}" if odd else _first(inner)
    if isinstance(found, list) and isinstance(wanted, list):
        if len(found) != len(wanted):
            return place
        return _first([(a, b, f"{place}[{at}]") for at, (a, b) in enumerate(zip(found, wanted, strict=True))])
    return None if _same(found, wanted) else place


def _first(pairs: list[tuple[Any, Any, str]]) -> str | None:
    return next((place for place in (difference(*pair) for pair in pairs) if place), None)


def _same(found: Any, wanted: Any) -> bool:
    """Equal, and a number only to a number: True is 1 in Python."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, wanted))
    if numbers:
        return math.isclose(found, wanted, rel_tol=CLOSE)
    return type(found) is type(wanted) and bool(found == wanted)
