"""Plateaus of made-up ladders, and what a score says of them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from made import made_run, made_variants

from cpubench.analysis.plateaus import Plateau, edges, plateaus
from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.results.records import Run, Variant

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8 * KIB << n for n in range(17)]  # to 512 MiB


def made(*steps: tuple[int, float]) -> dict[int, float]:
    """The ladder whose sets up to each size take so many ns."""
    return {size: next(ns for end, ns in steps if size <= end) for size in SIZES}


CLEAN = made((32 * KIB, 1.3), (MIB, 4.2), (4 * MIB, 29), (8 * MIB, 80), (1 << 40, 160))


def ends(ladder: dict[int, float]) -> list[tuple[int, int]]:
    return [(one.from_bytes, one.to_bytes) for one in plateaus(ladder)]


def test_clean_steps_are_plateaus_and_a_set_on_the_slope_is_none() -> None:
    assert ends(CLEAN) == [
        (8 * KIB, 32 * KIB), (64 * KIB, MIB), (2 * MIB, 4 * MIB), (16 * MIB, 512 * MIB),
    ]  # fmt: skip
    assert [round(one.ns, 6) for one in plateaus(CLEAN)] == [1.3, 4.2, 29, 160]


def test_sets_within_a_factor_of_two_of_an_end_are_edges() -> None:
    assert edges(CLEAN) == {32 * KIB, 64 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB}


def test_noise_moves_no_end() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        noisy = {size: ns * rng.uniform(0.95, 1.05) for size, ns in CLEAN.items()}
        assert ends(noisy) == ends(CLEAN)
        assert edges(noisy) == edges(CLEAN)


def test_one_slow_set_is_no_end() -> None:
    assert ends(CLEAN | {128 * KIB: 6.0}) == ends(CLEAN)


def test_misses_of_the_tlb_do_not_end_a_plateau() -> None:
    last = {size: 150 * 1.08**n for n, size in enumerate(s for s in SIZES if s >= 16 * MIB)}
    assert ends(CLEAN | last) == ends(CLEAN)


def test_one_plateau_has_no_end() -> None:
    flat = made((1 << 40, 90.0))
    assert plateaus(flat) == [Plateau(SIZES[0], SIZES[-1], plateaus(flat)[0].ns)]
    assert edges(flat) == set()


def test_a_missing_set_is_bridged_and_a_ladder_with_holes_says_nothing() -> None:
    bridged = {size: ns for size, ns in CLEAN.items() if size != 128 * KIB}
    assert ends(bridged) == ends(CLEAN)
    quick = {size: CLEAN[size] for size in (16 * KIB, 256 * KIB, 4 * MIB, 32 * MIB, 256 * MIB)}
    assert (plateaus(quick), edges(quick)) == ([], set())
    assert plateaus({}) == []


def test_the_order_of_the_sets_does_not_matter() -> None:
    shuffled = dict(random.Random(1).sample(sorted(CLEAN.items()), len(CLEAN)))
    assert plateaus(shuffled) == plateaus(CLEAN)


def ladder_run(sizes: list[int]) -> dict[str, Any]:
    """A made-up run whose chases are these sets."""
    scored = {16 * KIB, 256 * KIB, 4 * MIB, 32 * MIB, 256 * MIB}
    other = [v for v in made_variants() if v.kernel != "mem_chase"]
    pattern = next(v for v in made_variants() if v.kernel == "mem_chase" and v.copies == "1")
    chases: list[Variant] = []
    for size in sizes:
        row = msgspec.structs.replace(pattern, kernel="mem_chase", params=f"ns={CLEAN[size]},{size}", value=size)
        chases.append(msgspec.structs.replace(row, scored=size in scored))
        if size in scored:
            chases.append(msgspec.structs.replace(row, scored=True, copies="cores", window_ns=1))
    return made_run(12, noise=0, variants=other + chases)


def scored(sizes: list[int]) -> dict[str, Any]:
    run = msgspec.convert(ladder_run(sizes), Run)
    return score(run, make_reference(run, "made"))


def test_a_score_badges_scored_sets_at_an_edge_and_says_where_the_plateaus_end(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("made.true_ns", lambda v: CLEAN.get(v.value) or 1000.0)
    doc = scored(SIZES)
    badged = {(row["name"], row["copies"]) for row in doc["variants"] if "plateau_edge" in row["flags"]}
    assert badged == {(f"mem_chase[ns=29,{4 * MIB}]", "1")}
    (said,) = [note["text"] for note in doc["notes"] if note["code"] == "plateaus"]
    assert said.startswith(
        "one copy on huge pages takes 1.3 ns up to 32 KiB, 4.2 ns up to 1 MiB, 29 ns up to 4 MiB, 160 ns"
    )
    assert doc["publishable"]


def test_five_sets_are_no_ladder(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("made.true_ns", lambda v: CLEAN.get(v.value) or 1000.0)
    doc = scored([16 * KIB, 256 * KIB, 4 * MIB, 32 * MIB, 256 * MIB])
    assert not [row for row in doc["variants"] if row["flags"]]
    assert "plateaus" not in {note["code"] for note in doc["notes"]}
