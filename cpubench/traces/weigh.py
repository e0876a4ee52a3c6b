"""From a trace to weights: shares of time by class of call, times what each class of call does with the CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from cpubench.analysis.scenarios import PATHS, WHOLE, load_scenarios, weights_of
from cpubench.errors import UsageError
from cpubench.results.files import content_hash
from cpubench.results.load import typed
from cpubench.results.parse import located, parse, read
from cpubench.traces.span import CLASSES

FILE = Path(__file__).parents[1] / "data" / "matrix.json"
SCHEMA = "cpubench.matrix/1"
MAX_BYTES = 1_000_000
KERNEL = ("M1", "M3", "M4", "M5", "M6", "M7", "M8", "M9", "M12", "M14")  # paths whose work the kernel does

Json = dict[str, Any]


class Matrix(Struct, frozen=True, kw_only=True):
    """Per cent of CPU time by path, for each class of calls."""

    schema: Literal["cpubench.matrix/1"]
    name: Annotated[str, Meta(pattern="^[ -~]{1,60}$(?!\n)")]
    evidence: str = "no evidence"
    classes: dict[str, dict[str, float]]
    sha256: str = ""


def load_matrix(path: Path | None = None) -> Matrix:
    """The matrix of a file, checked; by default the shipped prior."""
    file = FILE if path is None else path
    try:
        document = parse(read(file, MAX_BYTES))
        made = typed(document, SCHEMA, Matrix)
        for name in made.classes:
            if name not in CLASSES:
                raise UsageError("matrix", f"is none of {', '.join(CLASSES)}", f"classes.{name[:40]}")
        rows = {name: weights_of(row, PATHS, f"classes.{name}") for name, row in document["classes"].items()}
    except UsageError as fault:
        raise located(file, fault) from None
    return structs.replace(made, classes=rows, sha256=content_hash(document))


def of_classes(classes: Mapping[str, Json], matrix: Matrix) -> tuple[dict[str, float], list[str]]:
    """Path weights that sum to 100, and the classes that the matrix has no row for and that have no part in them."""
    shares = {cls: row["share"] for cls, row in classes.items() if row["share"]}
    absent = [cls for cls in shares if cls not in matrix.classes]
    known = {cls: share for cls, share in shares.items() if cls in matrix.classes}
    total = math.fsum(known.values())
    if not total:
        return {}, absent
    sums = {path: math.fsum(share * matrix.classes[cls].get(path, 0.0) for cls, share in known.items()) / total
            for path in PATHS}  # fmt: skip
    return {path: round(weight, 4) for path, weight in sums.items() if weight}, absent


def of_system_calls(counted: Mapping[str, tuple[int, float]], base: str = "coding") -> tuple[dict[str, float], str]:
    """Path weights from a summary of ``strace -c``, and by what it was split: by seconds, or by calls without any.

    Such a summary says how the kernel's part splits and nothing of its size or of the rest: the weight that the
    scenario ``base`` gives the kernel's paths is shared out anew, the others stay as they are there.
    """
    prior = load_scenarios()[base].paths
    column = 1 if any(seconds > 0 for path, (_, seconds) in counted.items() if path in KERNEL) else 0
    found = {path: float(both[column]) for path, both in counted.items() if path in KERNEL}
    total = math.fsum(found.values())
    if not total:
        raise UsageError("strace", "holds no system call that is known")
    whole = math.fsum(weight for path, weight in prior.items() if path in KERNEL)
    made = {path: weight for path, weight in prior.items() if path not in KERNEL}
    made |= {path: round(whole * part / total, 4) for path, part in found.items() if part}
    scale = WHOLE / math.fsum(made.values())
    return {path: made[path] * scale for path in PATHS if path in made}, "seconds" if column else "calls"
