from __future__ import annotations

import msgspec
from made import made_run

from cpubench.analysis.floor import near_floor, sentence
from cpubench.analysis.rates import run_rates
from cpubench.results.records import Run


def run_with(floor_ps: int | None) -> Run:
    run = msgspec.convert(made_run(passes=8), Run)
    return msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, floor_ps=floor_ps))


def test_short_operations_are_badged_and_named() -> None:
    rates = run_rates(run_with(None), "as-is")
    scored = {v.key for v in run_with(None).plan.variants if v.scored}
    least = min(float(rates.ns_per_op[key].max()) for key in scored)
    run = run_with(round(least * 1000))  # the shortest takes about as long as nothing
    found = near_floor(run.plan, rates)
    assert found
    assert set(found) <= scored
    assert all(badge == ["near_floor"] for badge in found.values())
    text = sentence(run.plan, rates)
    assert text is not None
    assert all(key.partition("@")[0] in text for key in found)


def test_long_operations_and_an_unknown_floor_say_nothing() -> None:
    for floor_ps in (None, 1):
        run = run_with(floor_ps)
        assert near_floor(run.plan, run_rates(run, "as-is")) == {}
        assert sentence(run.plan, run_rates(run, "as-is")) is None
