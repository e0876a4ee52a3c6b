"""What is fixed before the first pass, and when a run stops."""

import made
import msgspec
import pytest

from cpubench.errors import UsageError
from cpubench.measure import plan as planning
from cpubench.results.orders import orders
from cpubench.results.records import Missing, Plan

S = 10**9


@pytest.fixture
def plan():
    return msgspec.convert(made.made_run(passes=1)["plan"], Plan)


def changed(plan, **fields):
    return msgspec.structs.replace(plan, **fields)


@pytest.mark.parametrize(
    ("passes", "width", "spent", "reason"),
    [
        (11, 0.001, 10, None),  # narrow by luck: fewer than the least passes never stop it
        (12, 0.0201, 10, None),
        (12, 0.02, 10, "target"),
        (12, None, 10, None),
        (60, 0.5, 10, "max"),
        (13, 0.5, 100, "budget"),  # the next pass would end after the budget
        (3, None, 100, "budget"),
        (13, 0.5, 97, None),
    ],
)
def test_a_run_stops_by_width_budget_or_number(plan, passes, width, spent, reason):
    plan = changed(plan, budget_ns=100 * S)
    assert planning.stop(plan, passes, width, spent * S, 2 * S) == reason


def test_without_a_budget_time_does_not_stop_it(plan):
    assert planning.stop(changed(plan, budget_ns=0), 20, 0.5, 10**15, 2 * S) is None


def test_a_budget_that_cannot_hold_eight_passes_is_refused_with_the_one_that_can(plan):
    plan = changed(plan, budget_ns=20 * S, predicted_pass_ns=2 * S)
    planning.check_budget(plan, 4 * S, 2 * S)
    with pytest.raises(UsageError, match=r"--budget: 20 s cannot hold 8 passes of 2.0 s after 5 s .* allow 22 s"):
        planning.check_budget(plan, 5 * S, 2 * S)


def test_calibration_sizes_the_variants_and_names_those_that_failed(plan):
    first, second, *_ = plan.variants
    found = {
        "sizes": {first.key: [7, 0, 20_000_000]},
        "errors": {second.key: "it crashed"},
        "prepare_ns": S,
        "floor_ps": 300,
    }
    sized = planning.sized(plan, found)
    assert [(v.key, v.ops) for v in sized.variants] == [(first.key, 7)]
    assert sized.skipped == [Missing(second.key, "it crashed", scored=second.scored)]
    assert (
        sized.predicted_pass_ns
        == plan.samples * (20_000_000 + planning.SAMPLE_OVERHEAD_NS) + S + planning.BLOCK_OVERHEAD_NS
    )
    with pytest.raises(UsageError, match="it crashed"):
        planning.sized(plan, {"sizes": {}, "errors": {first.key: "it crashed"}, "prepare_ns": S, "floor_ps": 300})


def test_each_round_has_every_variant_once_in_an_order_of_its_own(plan):
    document = msgspec.to_builtins(changed(plan, samples=4))
    first, again = orders(document, 3, "as-is"), orders(document, 3, "as-is")
    assert first == again
    assert all(sorted(order) == list(range(len(plan.variants))) for order in first)
    assert len({tuple(order) for order in first}) == 4
    assert orders(document, 4, "as-is") != first
    assert orders({**document, "seed": document["seed"] + 1}, 3, "as-is") != first


def test_kernels_that_leave_state_behind_come_last(plan):
    document = msgspec.to_builtins(plan)
    document["variants"][0]["flags"] = ["isolate"]
    assert all(order[-1] == 0 for order in orders(document, 0, "as-is"))


def test_an_unknown_profile_is_refused():
    with pytest.raises(UsageError, match="unknown profile 'fast'; known: quick, standard, strict"):
        planning.profile_of("fast")
