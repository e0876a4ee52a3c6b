"""Differences inside blocks: what a round does to both cancels; the floor is what a kernel differs from itself."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from made import made_cell, made_run, made_variants

from cpubench.analysis.estimates import ends
from cpubench.analysis.twins import CONTROL, difference, floor_percent, log_times
from cpubench.results.names import split_key
from cpubench.results.records import Block

ROUNDS = 5


def twin_blocks(passes: int, b: float, noise: float, seed: int = 0) -> list[Block]:
    """Blocks in which the second label takes ``b`` times as long; rounds are slowed at will, samples by noise."""
    rng = random.Random(seed)
    shape = made_variants()[0]
    labels = [split_key(key)[0].partition("[")[2][:-1] for key in CONTROL]
    variants = [msgspec.structs.replace(shape, kernel="test_work", params=label, copies="1") for label in labels]
    blocks = made_run(passes, samples=ROUNDS, variants=variants)["passes"]
    for block in (one["blocks"][0] for one in blocks):
        slow = [math.exp(rng.gauss(0, 0.5)) for _ in range(ROUNDS)]
        block["cells"] = [made_cell(v, ROUNDS, 1.0) for v in variants]
        for cell, factor in zip(block["cells"], (1.0, b), strict=True):
            columns = cell["samples"]
            columns["elapsed_ns"] = [
                round(ns * factor * at * math.exp(rng.gauss(0, noise)))
                for ns, at in zip(columns["elapsed_ns"], slow, strict=True)
            ]
    return [msgspec.convert(one["blocks"][0], Block) for one in blocks]


def test_what_slows_a_whole_round_does_not_move_a_difference() -> None:
    logs = log_times(twin_blocks(10, 1.05, noise=0.0), *CONTROL)
    assert logs == pytest.approx([math.log(1.05)] * 10, abs=1e-5)


def test_a_difference_needs_eight_passes_with_both() -> None:
    blocks = twin_blocks(9, 1.02, noise=0.001)
    found = difference(blocks, *CONTROL)
    assert found is not None
    assert float(found.log) == pytest.approx(math.log(1.02), abs=0.002)
    lost = [msgspec.structs.replace(block, cells=block.cells[:1]) for block in blocks[:2]]
    assert difference(lost + blocks[2:], *CONTROL) is None
    assert floor_percent(lost + blocks[2:]) is None
    assert floor_percent([]) is None


def test_the_floor_is_the_larger_end_of_the_interval() -> None:
    blocks = twin_blocks(20, 0.99, noise=0.004)
    found = difference(blocks, *CONTROL)
    assert found is not None
    low, _ = ends(found)
    assert floor_percent(blocks) == pytest.approx(100 * (math.exp(-float(low)) - 1))
    floor = floor_percent(blocks)
    assert floor is not None
    assert 1.0 < floor < 2.0


def test_the_floor_of_equal_labels_falls_with_passes_and_rises_with_noise() -> None:
    few, many, loud = (floor_percent(twin_blocks(n, 1.0, noise)) for n, noise in ((8, 0.01), (60, 0.01), (60, 0.1)))
    assert few is not None
    assert many is not None
    assert loud is not None
    assert many < few < loud
