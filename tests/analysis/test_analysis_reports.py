"""What the report needs of the analysis: runs of one host together, tiers, portraits, and words that share a page."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from made import made_run
from made_reports import shown_variants

from cpubench.analysis.estimates import of_passes
from cpubench.analysis.over_runs import score_over_runs
from cpubench.analysis.pooling import over_runs
from cpubench.analysis.portrait import portrait
from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import load_scenarios
from cpubench.analysis.score import score
from cpubench.analysis.tiers import comparable, tiers
from cpubench.analysis.verdicts import verdicts
from cpubench.results.records import Run

REFERENCE = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")


def q(value: float | None, reason: str | None = None) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None, "passes": 16, "reason": reason}


def loaded(**made: Any) -> Run:
    return msgspec.convert(made_run(16, **made), Run)


def test_runs_make_an_interval_from_three_on() -> None:
    two = over_runs([q(100.0), q(121.0)])
    assert two["value"] == pytest.approx(110.0)
    assert (two["low"], two["passes"]) == (None, 32)
    assert "needs 3" in two["reason"]
    three = over_runs([q(100.0), q(110.0), q(121.0)])
    assert three["value"] == pytest.approx(110.0)
    assert three["low"] < three["value"] < three["high"]
    # t with 2 degrees of freedom: 4.303 standard errors, which are log 1.1 / sqrt 3.
    assert np.log(three["high"] / three["value"]) == pytest.approx(4.3027 * np.log(1.1) / np.sqrt(3), rel=1e-4)


def test_a_run_without_a_value_leaves_none_and_says_which() -> None:
    assert over_runs([q(1.0), q(None, "killed")])["reason"] == "run 2 of 2: killed"
    assert over_runs([q(None, "no_meter"), q(None, "no_meter")])["reason"] == "no_meter"


def test_one_run_stays_as_it_is_and_three_have_the_shape_of_one() -> None:
    documents = [score(loaded(seed=seed, id=str(seed)), REFERENCE) for seed in range(3)]
    assert score_over_runs(documents[:1]) is documents[0]
    whole = score_over_runs(documents)
    assert whole.keys() == documents[0].keys()
    assert whole["families"].keys() == documents[0]["families"].keys()
    assert [row["name"] for row in whole["variants"]] == [row["name"] for row in documents[0]["variants"]]
    values = [one["headline"]["per_core"]["value"] for one in documents]
    assert min(values) < whole["headline"]["per_core"]["value"] < max(values)


def pair(word: str) -> dict[str, Any]:
    return {"headline": {"per_core": {"verdict": word}}}


def test_a_tier_ends_where_one_was_shown_to_be_behind_its_first() -> None:
    pairs = {(0, 1): pair("faster"), (0, 2): pair("inconclusive"), (1, 2): pair("slower")}
    assert tiers([100, 120, 99], pairs, "per_core") == [[1], [0, 2]]
    # The one with the most points is not shown to be ahead of anybody: one tier.
    alike = {key: pair("inconclusive") for key in pairs}
    assert tiers([100, 120, 99], alike, "per_core") == [[1, 0, 2]]
    assert tiers([100, None, 99], alike, "per_core") == [[0, 2]]


def test_tiers_need_a_word_on_every_pair() -> None:
    pairs = {(0, 1): pair("faster"), (0, 2): pair("not compared"), (1, 2): pair("slower")}
    assert not comparable(3, pairs, "per_core")
    assert not comparable(3, {(0, 1): pair("faster")}, "per_core")
    assert comparable(2, {(0, 1): pair("faster")}, "per_core")


def test_a_portrait_holds_the_score_pass_by_pass_and_the_curves() -> None:
    run = loaded(seed=1, variants=shown_variants())
    told, made = portrait(run, REFERENCE, load_scenarios()["equal"]), score(run, REFERENCE)
    for measure in ("per_core", "speed"):
        mean = np.exp(np.mean(np.log(told[measure])))
        assert mean == pytest.approx(made["headline"][measure]["value"])
    assert told["passes"] == list(range(16))
    assert [n for n, _ in told["threads"]] == [1, 2]
    assert [(a, b) for a, b, _ in told["lines"]] == [(0, 1), (0, 2)]
    assert [size for size, _ in told["ladder"]["huge"]] == [8 << 10, 64 << 10, 512 << 10, 4096 << 10]


def test_words_that_share_a_page_are_harder_to_come_by() -> None:
    rng = np.random.default_rng(4)
    one = of_passes(0.03 + rng.normal(0, 0.02, 16), cautious=True)
    alone, among = (verdicts([one], tables=count)[0] for count in (1, 28))
    assert among.confidence == pytest.approx(1 - 0.05 / 28)
    assert among.low < alone.low
