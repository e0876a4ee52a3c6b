"""How sure the order of several runs is, as people see it: pair by pair, or each run beside the next."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from made import made_run

from cpubench.analysis.ranks import ranks
from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.report.ranking import by_pair, in_order, show_scores
from cpubench.results.records import Divisor, Run

Doc = dict[str, Any]
REFERENCE = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")


def scored(seed: int, slower: float = 1.0, passes: int = 12, **made: Any) -> Doc:
    return score(msgspec.convert(made_run(passes, seed=seed, slower=slower, **made), Run), REFERENCE)


def several(*documents: Doc) -> Doc:
    return {"runs": list(documents), "ranks": ranks(documents)}


def test_each_pair_has_its_share_and_its_reason() -> None:
    slow, fast = scored(1, 1.3), scored(2)
    found = dict(by_pair(several(slow, fast, fast, scored(3, passes=4))["ranks"]))
    assert found["  run 2 ahead of run 1"] == "separable: in 100 % of the draws"
    assert found["  run 2 and run 3"] == "not separable: in 50 % of the draws; the order depends on the weights"
    assert found["  run 1 and run 4"] == "not separable: no headline: 8 passes are needed; 4 of 4 are complete"
    assert len(found) == 6


def test_overlapping_intervals_do_not_separate() -> None:
    (line,) = by_pair(several(scored(1, 1.01, noise=0.1), scored(2, noise=0.1))["ranks"])
    assert line[1].startswith("not separable: in ")


def test_many_runs_are_in_order_each_with_the_next() -> None:
    doc = several(*(scored(seed, 1 + seed % 4 / 5 + seed / 1000) for seed in range(7)), scored(9, passes=4))
    lines = in_order(doc)
    values = [one["headline"]["per_core"]["value"] for one in doc["runs"]]
    order = sorted(range(7), key=lambda at: -values[at])
    assert [name.split(",")[0] for name, _ in lines] == [f"  run {at + 1}" for at in order] + ["  run 8"]
    for (_, text), following in zip(lines, order[1:], strict=False):
        assert text.startswith(f"before run {following + 1}: ")
    assert {"separable", "not separable"} == {text.split(": ")[1] for _, text in lines[:6]}
    assert (lines[6][1], lines[7][1]) == ("", "8 passes are needed; 4 of 4 are complete")


def test_runs_without_a_common_scale_are_listed_apart_and_in_no_order_with_the_others() -> None:
    """Points per core are more here than those per vcpu, and say nothing of them."""
    cores = Divisor(kind="physical_core", n=2)
    runs = [scored(seed, 1 + seed / 10) for seed in range(4)]
    runs[1:1] = [scored(seed, 0.5 + seed / 100, divisor=cores) for seed in (5, 6)]
    doc = several(*runs, {**scored(7, 0.2), "weights_sha256": "f" * 64}, scored(9, passes=4))
    lines = in_order(doc)
    assert [int(name.split(",")[0].removeprefix("  run ")) for name, _ in lines] == [1, 4, 5, 6, 2, 3, 7, 8]
    texts = [text for _, text in lines]
    assert [text.partition(":")[0] for text in texts[:3]] == ["before run 4", "before run 5", "before run 6"]
    assert texts[3] == ""
    assert texts[4].startswith("apart from run 1: points per vcpu and per physical_core are not compared; before run 3")
    assert texts[5] == ""
    assert texts[6] == "apart from run 1: the hash of the weights of the two differs"


@pytest.mark.parametrize("count", [2, 6, 7])
def test_the_page_names_each_run_and_keeps_80_columns(count: int) -> None:
    doc = several(*(scored(seed, 1 + seed / 10) for seed in range(count)))
    names = [f"results/{seed}\x1b[31m" + "x" * 90 * seed for seed in range(count)]
    out = io.StringIO()
    show_scores(doc, names, out)
    shown = out.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert [f"run {at + 1}: results/{at}\\x1b" in " ".join(shown.split()) for at in range(count)] == [True] * count
    assert shown.index("1000 points") < shown.index("Order per core") < shown.index("Separable")
    assert ("ahead of" in shown, "before run" in shown) == (count <= 6, count > 6)
