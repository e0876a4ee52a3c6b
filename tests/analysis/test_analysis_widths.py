"""Widths need no reference, and a run does not stop on a quantity that is not there yet."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from made import made_run

from cpubench.analysis.estimates import half_width, of_passes
from cpubench.analysis.widths import half_widths, headline_half_width
from cpubench.results.records import Block, Plan, Run


def parts(document: dict[str, Any]) -> tuple[Plan, list[Block]]:
    run = msgspec.convert(document, Run)
    return run.plan, [one.blocks[0] for one in run.passes]


def drop(document: dict[str, Any], passes: range, kernel: str) -> None:
    for one in document["passes"][passes.start : passes.stop]:
        one["blocks"][0]["cells"] = [c for c in one["blocks"][0]["cells"] if c["kernel"] != kernel]


def test_widths_are_those_of_the_composites() -> None:
    plan, blocks = parts(made_run(12))
    widths = half_widths(plan, blocks)
    families = ("spawn", "file", "switch", "lock", "memory")
    assert set(widths) == {f"{m}{f}" for m in ("per_core", "speed") for f in ("", *(f" {n}" for n in families))}
    cells = [next(c for c in b.cells if (c.kernel, c.copies) == ("file_create", "1")) for b in blocks]
    by_hand = half_width(of_passes(np.array([math.log(c.copy_elapsed_ns[0] / c.copy_ops[0]) for c in cells])))
    assert widths["speed file"] == pytest.approx(by_hand, rel=1e-2)
    assert headline_half_width(plan, blocks) == max(widths.values())
    assert widths["speed"] < max(widths[f"speed {f}"] for f in families)  # noise of its own averages out


def test_there_is_no_width_before_two_passes() -> None:
    plan, blocks = parts(made_run(2))
    assert headline_half_width(plan, []) is None
    assert headline_half_width(plan, blocks[:1]) is None
    assert headline_half_width(plan, blocks) is not None


def test_a_row_that_never_was_is_left_out() -> None:
    document = made_run(9)
    drop(document, range(9), "file_create")
    widths = half_widths(*parts(document))
    assert "per_core file" not in widths
    assert math.isfinite(widths["per_core"])


def test_a_row_that_came_late_holds_the_run_until_eight_passes_have_it() -> None:
    document = made_run(12)
    drop(document, range(5), "file_create")
    assert half_widths(*parts(document))["per_core file"] == math.inf
    assert headline_half_width(*parts(document)) is None
    document = made_run(13)
    drop(document, range(5), "file_create")
    assert headline_half_width(*parts(document)) is not None


def test_a_width_beyond_a_million_times_the_value_is_none() -> None:
    """Two passes on a busy host had 1e14: its ppm are no number of 64 bits, so that nobody could read the file."""
    document = made_run(2, noise=0.0)
    for cell in document["passes"][1]["blocks"][0]["cells"]:
        cell["copy_elapsed_ns"] = [20 * ns for ns in cell["copy_elapsed_ns"]]
    plan, blocks = parts(document)
    assert max(half_widths(plan, blocks).values()) > 1e9
    assert headline_half_width(plan, blocks) is None
