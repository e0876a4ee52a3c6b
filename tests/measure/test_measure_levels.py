"""Levels, windows and times in the plan of a run: pure functions."""

from __future__ import annotations

from collections import Counter

import made
import msgspec
import pytest
from made_watts import made_power

from cpubench.errors import UsageError
from cpubench.measure import plan as planning
from cpubench.measure.asked import Asked, asked_of
from cpubench.measure.levels import before_ns, check_times, predicted, times_of, with_power
from cpubench.measure.powered import asked_again
from cpubench.power.levels import External
from cpubench.results.orders import level_order
from cpubench.results.records import Plan
from cpubench.results.windows import Merged

S = 10**9
CAPS = ["as-is", "250W", "70%"]


def drafted(**fields):
    return msgspec.convert(made.made_run(0, budget_ns=110 * S, **fields)["plan"], Plan)


def planned(caps=CAPS, window_us=0, budget_given=False, plan=None, **power):
    return with_power(plan or drafted(), caps, made_power(idle=msgspec.UNSET, **power), S, window_us, budget_given)


def test_each_level_is_once_in_a_pass_and_once_at_each_place_of_a_square():
    orders = [level_order(7, CAPS, index) for index in range(300)]
    assert all(sorted(order) == sorted(CAPS) for order in orders)
    for square in range(100):
        for place in range(3):
            assert {orders[3 * square + row][place] for row in range(3)} == set(CAPS)
    assert len({tuple(order) for order in orders}) == 6
    first = Counter(order[0] for order in orders)
    assert set(first.values()) == {100}
    assert level_order(7, ["as-is"], 5) == ["as-is"]
    assert orders != [level_order(8, CAPS, index) for index in range(300)]


def test_windows_are_of_scored_families_and_add_up_over_the_fewest_passes():
    plan = planned()
    assert [window.family for window in plan.windows] == ["spawn", "file", "switch", "lock", "memory"]
    assert plan.min_passes == 8
    assert {window.length_ns * 8 for window in plan.windows} == {10 * S}
    assert {window.settle_ns for window in plan.windows} == {S}
    slow = planned(window_us=2_000_000)
    assert {(window.settle_ns, window.length_ns) for window in slow.windows} == {(2 * S, 6 * S)}
    only_meter = planned(caps=[])
    assert (only_meter.caps, only_meter.min_passes) == (["as-is"], 12)
    assert {window.length_ns for window in only_meter.windows} == {S}


def test_the_budget_grows_by_what_levels_take_where_none_was_given():
    plan, given = planned(), planned(budget_given=True)
    pass_ns = 3 * (5 * 2.25 * S + 10 * S) + 2 * planning.BLOCK_OVERHEAD_NS
    shown_ns = 10 * S + 30 * S + 2 * 30 * S
    assert before_ns(plan) == shown_ns
    assert plan.budget_ns == 110 * S + shown_ns + 10 * S + 8 * pass_ns
    assert given.budget_ns == 110 * S
    found = {"sizes": {v.key: [10, 0, 0] for v in plan.variants}, "errors": {}, "prepare_ns": 0, "floor_ps": None}
    sized = planning.sized(plan, found)
    rounds_ns = 2 * len(plan.variants) * planning.SAMPLE_OVERHEAD_NS + planning.BLOCK_OVERHEAD_NS
    assert sized.predicted_pass_ns == pass_ns + rounds_ns
    planning.check_budget(sized, 0, sized.predicted_pass_ns)
    with pytest.raises(UsageError, match=r"cannot hold 8 passes of .* s of calibration and of showing the caps"):
        planning.check_budget(msgspec.structs.replace(sized, budget_ns=200 * S), 0, sized.predicted_pass_ns)
    assert predicted(sized).startswith("levels as-is, 250W, 70%: 1:40 before the passes, then 8 or more of 1:04: 10:")


def test_without_a_meter_no_load_shows_anything():
    assert before_ns(planned(meter="")) == 0
    outside = planned(caps=["external=300W:package"])
    assert before_ns(outside) == 10 * S + 30 * S  # nobody can take it away for the free load


def test_loads_that_no_meter_would_judge_take_no_time():
    idle_ns = 10 * S
    for power in ({"meter": "csv", "scope": ""}, {"scope": "wall"}, {"cap_scope": "proxy:freq"}):
        assert before_ns(planned(**power)) == idle_ns
    assert before_ns(planned(caps=["external=300W:wall"])) == idle_ns
    both = ["250W", "external=300W:wall"]
    assert before_ns(planned(caps=both)) == idle_ns + 30 * S + 30 * S
    assert before_ns(planned(caps=both, scope="wall")) == idle_ns + 30 * S


def test_a_run_is_gone_on_with_by_its_own_meter_and_not_once_its_watts_are_merged(tmp_path):
    plan = planned(caps=["250W", "external=300W:wall"], meter="csv", scope="", provenance="")
    again = asked_again(plan, Asked(root=tmp_path))
    assert (again.names, again.external) == (plan.caps, External(300, "wall"))
    merged = Merged(sha256="0" * 64, rows=9, unit="W", offset_s=None, run_sha256="1" * 64)
    there = msgspec.structs.replace(plan, power=msgspec.structs.replace(plan.powered, scope="wall", merged=merged))
    with pytest.raises(UsageError, match="its watts are merged: resume the run it was made of"):
        asked_again(there, Asked(root=tmp_path))


def test_a_cap_needs_rows_on_all_cores():
    alone = [v for v in made.made_variants() if v.copies == "1"]
    with pytest.raises(UsageError, match="--copies: rates under a cap are of scored variants on all cores"):
        planned(plan=drafted(variants=alone))
    assert planned(caps=[], plan=drafted(variants=alone)).windows == []


def test_times_are_the_profiles_or_said_to_be_others():
    assert times_of("standard", None).total == 60
    assert times_of("quick", "settle=0.1, idle=2").idle == 2
    for text in ("settle", "settle=x", "soon=1", "settle=601"):
        with pytest.raises(UsageError, match=r"is not like settle=0\.5; known: idle, least, settle, total"):
            times_of("quick", text)
    plan = planned()
    check_times(plan)
    check_times(planned(meter="", idle_ns=0))
    for change in ({"settle_ns": S}, {"verify_ns": 19 * S}, {"idle_ns": 11 * S}, {"total_ns": S}):
        odd = msgspec.structs.replace(plan, power=msgspec.structs.replace(plan.power, **change))
        with pytest.raises(UsageError, match=r"plan\.power\."):
            check_times(odd)
        check_times(msgspec.structs.replace(odd, power=msgspec.structs.replace(odd.power, shortened=True)))
    short = msgspec.structs.replace(plan, windows=[msgspec.structs.replace(plan.windows[0], length_ns=S)])
    with pytest.raises(UsageError, match=r"plan\.windows\[0\]: windows of 1000000000 ns are too short"):
        check_times(short)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((["0W"], None, None), "a cap is above 0"),
        ((["-5W"], None, None), "is no cap level"),
        ((["nanW"], None, None), "is no cap level"),
        ((["250W", "250 w"], None, None), "--cap: 250W is given twice"),
        ((["250W", "proxy:freq=2GHz"], None, None), "limits of power and of frequency are runs of their own"),
        ((["as-is"], "300W", None), "as-is is under the external cap too"),
        ((["70%"], "300", None), "per cent are of the power without any cap"),
        ((["70%"], None, "none"), "per cent need a meter of the cap's own scope"),
        ((["101%"], None, None), "at most 100%"),
        (([], "0", None), "--cap-external"),
        (([], "300W:psys", None), "--cap-external: '300W:psys': say what it limits by one of wall, board, package"),
    ],
)
def test_levels_that_cannot_be_meant_are_one_line(tmp_path, options, text):
    caps, external, meter = options
    with pytest.raises(UsageError) as caught:
        asked_of(caps, external, meter, False, tmp_path)
    assert text in str(caught.value)


def test_levels_are_named_as_a_plan_has_them(tmp_path):
    asked = asked_of(["250 W", "as-is", "70.0%"], None, None, False, tmp_path)
    assert asked.names == ["250W", "as-is", "70%"]
    assert asked_of(["250W"], "300", None, False, tmp_path).names == ["250W", "external=300W:wall"]
    assert not asked_of([], None, None, False, tmp_path).anything
    assert not asked_of([], None, "none", False, tmp_path).anything
    assert asked_of([], None, "auto", False, tmp_path).anything
