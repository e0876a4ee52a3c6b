"""Every flag at both sides of its limit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from made import made_cell, made_environment, made_run, made_wide_variants

from cpubench.analysis.flags import Flag, block_flags, block_verdicts, row_flags, sample_flags
from cpubench.results.records import Block, Cell, Environment, Plan, Run, Variant

WALL_NS = 10**9  # between the snapshots of a made environment; two CPUs have twice that
ALONE = next(v for v in made_wide_variants(2, 1) if v.copies == "1")
TOGETHER = next(v for v in made_wide_variants(2, 1) if v.copies == "cores")


def plan_and_block(variants: list[Variant] | None = None, cap: str = "as-is", **moved: int) -> tuple[Plan, Block]:
    document = made_run(1, variants=variants, environment=lambda index: made_environment(**moved))
    run = msgspec.convert(document, Run)
    return run.plan, msgspec.structs.replace(run.passes[0].blocks[0], cap=cap)


@pytest.mark.parametrize(
    ("counter", "most", "flag"),
    [
        ("steal_ns", 2 * WALL_NS // 200, Flag.STOLEN),
        ("others_ns", 2 * WALL_NS // 20, Flag.CONTENDED),
        ("throttles", 0, Flag.QUOTA),
        ("core_throttles", 0, Flag.HOT),
        ("package_throttles", 0, Flag.HOT),
        ("power_limits", 0, Flag.CAPPED),
        ("suspended_ns", 10**7, Flag.SUSPENDED),
    ],
)
def test_a_block_is_flagged_beyond_the_limit(counter: str, most: int, flag: Flag) -> None:
    assert block_flags(*plan_and_block(**{counter: most})) == []
    assert block_flags(*plan_and_block(**{counter: most + 1})) == [flag]


@pytest.mark.parametrize("counter", ["stalled_ns", "kernel_ns", "busy_ns", "softirq_ns", "logins", "throttled_ns"])
def test_what_our_own_kernels_do_flags_nothing(counter: str) -> None:
    """Two processes of ours on one CPU are pressure too."""
    assert block_flags(*plan_and_block(**{counter: 2 * WALL_NS})) == []


def test_a_power_limit_under_a_cap_is_what_a_cap_does() -> None:
    assert block_flags(*plan_and_block(cap="250W", power_limits=9)) == []


@pytest.mark.parametrize("name", ["online", "allowed"])
def test_a_block_whose_cpus_changed_is_flagged(name: str) -> None:
    plan, block = plan_and_block()
    before, after = block.environment.before, block.environment.after
    assert before is not None
    assert after is not None
    for cpus, verdict in (("0", True), (None, None), ("0-1", False)):
        other = Environment(before=before, after=msgspec.structs.replace(after, **{name: cpus}))
        assert block_verdicts(plan, msgspec.structs.replace(block, environment=other))[Flag.CPUS] is verdict


def test_counters_that_went_backwards_say_nothing() -> None:
    plan, block = plan_and_block()
    before, after = block.environment.before, block.environment.after
    block = msgspec.structs.replace(block, environment=Environment(before=after, after=before))
    assert block_flags(plan, block) == []


def test_what_nobody_counted_is_not_known() -> None:
    plan, block = plan_and_block()
    assert set(block_verdicts(plan, block).values()) == {False}
    blind = msgspec.structs.replace(block, environment=Environment())
    assert set(block_verdicts(plan, blind).values()) == {None}
    assert block_flags(plan, blind) == []


def delayed(variant: Variant, delay_ns: int, wall_ns: int = 1000) -> tuple[Plan, Block]:
    document = made_run(1, variants=[variant])
    samples = document["passes"][0]["blocks"][0]["cells"][0]["samples"]
    samples["wall_ns"], samples["run_delay_ns"] = [wall_ns] * 2, [0, 2 * delay_ns]
    run = msgspec.convert(document, Run)
    return run.plan, run.passes[0].blocks[0]


def test_samples_that_waited_for_a_cpu_are_contended() -> None:
    assert block_flags(*delayed(ALONE, 50)) == []
    assert block_flags(*delayed(ALONE, 51)) == [Flag.CONTENDED]
    for own in ("blocking", "group", "pair"):  # they wait for each other
        assert block_flags(*delayed(msgspec.structs.replace(ALONE, flags=[own]), 900)) == []
    assert block_flags(*delayed(TOGETHER, 900)) == []


def cell_with(variant: Variant, samples: int = 5, **columns: list[int]) -> Cell:
    document = made_cell(variant, samples, 1.0)
    document["samples"] |= columns
    return msgspec.convert(document, Cell)


@pytest.mark.parametrize(
    ("column", "below", "above", "flag"),
    [
        ("run_delay_ns", 200_000, 200_001, Flag.PREEMPTED),
        ("moved", 0, 1, Flag.MIGRATED),
        ("majflt", 0, 1, Flag.FAULTED),
        ("overlap_ppm", 900_000, 899_999, Flag.SKEWED),
    ],
)
def test_samples_are_counted_beyond_the_limit(column: str, below: int, above: int, flag: Flag) -> None:
    assert sample_flags(ALONE, cell_with(ALONE, **{column: [below] * 5})) == {}
    assert sample_flags(ALONE, cell_with(ALONE, **{column: [above, below, above, below, below]})) == {flag: 2}
    one_in_five = [cell_with(ALONE, **{column: [above, *[below] * 4]})] * 2
    assert row_flags(ALONE, one_in_five) == []
    more = [*one_in_five, cell_with(ALONE, **{column: [above, above, *[below] * 3]})]
    assert row_flags(ALONE, more) == [flag]


def test_kernels_that_sleep_or_share_are_not_preempted() -> None:
    columns = {"nivcsw": [9] * 5, "run_delay_ns": [10**7] * 5}
    for variant in (TOGETHER, *(msgspec.structs.replace(ALONE, flags=[own]) for own in ("blocking", "group", "pair"))):
        assert sample_flags(variant, cell_with(variant, **columns)) == {}


def test_a_kernel_that_does_not_tell_delays_is_judged_by_its_switches() -> None:
    assert sample_flags(ALONE, cell_with(ALONE, run_delay_ns=[], nivcsw=[0, 0, 0, 0, 1])) == {Flag.PREEMPTED: 1}


def rows_of(factors: list[float]) -> list[Cell]:
    return [msgspec.convert(made_cell(ALONE, 3, factor), Cell) for factor in factors]


@pytest.mark.parametrize(("passes", "rise", "found"), [
    (9, 1.03, [Flag.DRIFT]), (9, 1.015, []), (9, 0.97, [Flag.DRIFT]), (8, 1.04, []), (40, 1.03, [Flag.DRIFT]),
])  # fmt: skip
def test_a_row_whose_last_third_is_apart_drifts(passes: int, rise: float, found: list[Flag]) -> None:
    last = passes // 3
    assert row_flags(ALONE, rows_of([1.0] * (passes - last) + [rise] * last)) == found


def test_a_step_within_the_noise_is_no_drift() -> None:
    noisy = [1.0, 1.1, 0.9, 1.05, 0.95] * 6
    assert row_flags(ALONE, rows_of([f * (1.03 if at >= 20 else 1) for at, f in enumerate(noisy)])) == []
    assert Flag.DRIFT in row_flags(ALONE, rows_of([f * (1.4 if at >= 20 else 1) for at, f in enumerate(noisy)]))


def bimodal(slow_ns: int) -> list[Flag]:
    """A row of 20 samples of 1000 ns, but for two."""
    elapsed = [slow_ns] * 2 + [1000] * 18
    document: dict[str, Any] = made_cell(ALONE, 20, 1.0)
    document["samples"] |= {"ops": [10] * 20, "elapsed_ns": elapsed}
    document |= {"copy_ops": [200], "copy_elapsed_ns": [sum(elapsed)]}
    return row_flags(ALONE, [msgspec.convert(document, Cell)])


def test_a_row_whose_mean_is_no_typical_time_is_bimodal() -> None:
    assert bimodal(1499) == []
    assert bimodal(1501) == [Flag.BIMODAL]  # 5.01 %
    assert row_flags(ALONE, []) == []


def test_codes_are_words_and_every_flag_has_a_sentence() -> None:
    assert all(flag.value.isidentifier() and len(flag.sentence) > 20 for flag in Flag)
    assert len({flag.value for flag in Flag}) == len(Flag) == 16
