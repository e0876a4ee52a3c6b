"""Two runs measured in turns are compared pass by pass; all others are not, and nobody takes one for the other."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from broken import reseal
from made import made_run, made_variants

from cpubench.analysis.compare import compare
from cpubench.analysis.estimates import paired
from cpubench.analysis.members import Member, member
from cpubench.analysis.pairing import sign_test
from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import load_scenarios
from cpubench.errors import UsageError
from cpubench.report.comparison import header, lists, sentences, show_comparison
from cpubench.report.markdown import as_markdown
from cpubench.results.records import Run, Side

Doc = dict[str, Any]
REFERENCE = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")
EQUAL = load_scenarios()["equal"]
MOMENTS = (99, 0.1)  # what a pass does to all of both sides: ten times what it does to each cell
NOISE = 0.01


def side(label: str, pair: str = "one", **settings: str) -> Side:
    return Side(pair=pair, label=label, settings=settings)  # type: ignore[arg-type]


def document(seed: int, label: str | None, passes: int = 16, pair: str = "one", **made: Any) -> Doc:
    mark = {} if label is None else {"side": side(label, pair)}
    return made_run(passes, **{"seed": seed, "noise": NOISE, "moments": MOMENTS} | mark | made)


def as_member(made: Doc) -> Member:
    run = msgspec.convert(made, Run)
    return member(run, run.plan.id, REFERENCE, EQUAL)


def run(seed: int, label: str | None, passes: int = 16, pair: str = "one", **made: Any) -> Member:
    return as_member(document(seed, label, passes, pair, **made))


def compared(*groups: Member | list[Member]) -> Doc:
    found = compare([one if isinstance(one, list) else [one] for one in groups], REFERENCE, EQUAL)
    json.dumps(found, allow_nan=False)
    return found


def claims(found: Doc) -> list[Doc]:
    whole = [found["headline"][measure] for measure in ("per_core", "speed")]
    families = [row[measure] for row in found["families"].values() for measure in ("per_core", "speed")]
    return [*whole, *families, *found["rows"]]


def half_width(claim: Doc) -> float:
    return (math.log(claim["ratio"]["high"]) - math.log(claim["ratio"]["low"])) / 2


def test_what_a_pass_does_to_both_sides_cancels() -> None:
    """The noise of the passes is 10 %, that of cells 1 %: five times narrower is half of what there is to gain."""
    pairs = compared(run(1, "a"), run(2, "b", slower=1.05))
    apart = compared(run(1, None), run(2, None, slower=1.05))
    for one, other in zip(claims(pairs), claims(apart), strict=True):
        assert half_width(one) < half_width(other) / 5
        assert (one["paired"], other["paired"]) == (True, False)
        assert (one["passes"], one["ratio"]["passes"]) == ({"a": 16, "b": 16}, 16)
        assert one["ratio"]["value"] == pytest.approx(other["ratio"]["value"])
        assert (one["verdict"], other["verdict"]) == ("slower", "inconclusive")
        assert other["sign"] is None
        assert set(one["sign"]) == {"value", "low", "high", "disagrees"}
    assert (pairs["scope"], pairs["pairing"]["passes"], apart["pairing"]) == ("this run only", 16, None)
    assert pairs["headline"]["per_watt"]["paired"] is False


def test_intervals_of_pairs_hold_the_truth_and_equal_sides_stay_equal() -> None:
    """27 pairs of runs, 17 rows each; of independent passes 0.976 are covered with twelve: docs/coverage.md."""
    held, words = [], []
    for seed in range(27):
        a, b, c = (
            run(3 * seed + n, label, 12, slower=slower, moments=(seed, 0.1))
            for n, (label, slower) in enumerate((("a", 1.0), ("b", 1.05), ("b", 1.0)))
        )
        for one in compared(a, b)["rows"]:
            held.append(one["ratio"]["low"] < 1 / 1.05 < one["ratio"]["high"])
        words += [one["verdict"] for one in claims(compared(a, c))]
    assert 0.95 <= np.mean(held) <= 0.995
    assert not {"faster", "slower"} & set(words)


def cut(made: Doc, keep: range) -> Doc:
    made["passes"] = [one for one in made["passes"] if one["index"] in keep]
    return reseal(made)


def test_passes_are_put_together_by_their_index() -> None:
    """Side by side in their order instead, one pass would stand beside the next one, and nothing would cancel."""
    late, early = as_member(cut(document(1, "a"), range(3, 16))), as_member(cut(document(2, "b"), range(14)))
    found = compared(late, early)
    assert found["pairing"]["passes"] == 11
    for claim in claims(found):
        assert claim["passes"] == {"a": 11, "b": 11}
        assert half_width(claim) < 0.02


def test_a_pass_in_which_a_side_lacks_a_row_is_left_out_of_what_needs_it() -> None:
    made = document(2, "b")
    for one in made["passes"][:3]:
        cells = one["blocks"][0]["cells"]
        one["blocks"][0]["cells"] = [cell for cell in cells if cell["kernel"] != "file_create"]
    found = compared(run(1, "a"), as_member(reseal(made)))
    passes = {row["name"]: row["passes"]["b"] for row in found["rows"]}
    assert (passes["file_create"], passes["mem_chase[set=16K]"]) == (13, 16)
    assert found["headline"]["per_core"]["ratio"]["passes"] == 13
    assert found["families"]["lock"]["speed"]["ratio"]["passes"] == 16


def test_too_few_common_passes_are_no_comparison() -> None:
    a, b = as_member(cut(document(1, "a"), range(9))), as_member(cut(document(2, "b"), range(5, 16)))
    with pytest.raises(UsageError, match="8 passes are needed that both sides have, there are 4"):
        compared(a, b)


def test_the_given_order_decides_and_in_one_folder_the_labels() -> None:
    a, b = run(1, "a"), run(2, "b", slower=1.05)
    assert compared(b, a)["rows"][0]["verdict"] == "faster"
    assert compared(a, b) == compared([b, a]) == compared([a, b])


@pytest.mark.parametrize(
    "other",
    [run(2, None), run(2, "a"), run(2, "b", pair="another")],
    ids=["an ordinary run", "the same side", "a side of another pair"],
)
def test_runs_that_took_no_turns_are_not_paired(other: Member) -> None:
    found = compared(run(1, "a"), other)
    assert (found["pairing"], {claim["paired"] for claim in claims(found)}) == (None, {False})
    with pytest.raises(UsageError, match="all 2 runs are of one host"):
        compared([run(1, "a"), other])


def test_sides_without_any_noise_are_no_copies_of_each_other() -> None:
    a, b = (run(seed, label, noise=0, moments=(0, 0.0)) for seed, label in ((1, "a"), (2, "b")))
    found = compared(a, b)
    assert {claim["verdict"] for claim in claims(found)} == {"equivalent"}
    assert {claim["ratio"]["low"] for claim in claims(found)} == {1.0}
    with pytest.raises(UsageError, match="is the same run as made-1"):
        compared(a, run(1, "b", slower=1.05))


def test_several_pairs_are_sides_of_several_runs() -> None:
    sides = [[run(10 * n + at, "ab"[n], pair=str(at)) for at in range(3)] for n in (0, 1)]
    found = compared(*sides)
    assert (found["scope"], found["pairing"], found["rows"][0]["paired"]) == ("runs", None, False)


def test_both_sides_of_a_pair_are_never_one_side() -> None:
    first, second = ([run(n, "a", pair=str(n)), run(n + 1, "b", pair=str(n))] for n in (1, 3))
    with pytest.raises(UsageError, match="side A holds both sides of run --ab") as caught:
        compared(first, second)
    assert caught.value.code == "sides"


def test_settings_of_a_side_are_among_the_differences_and_harmless() -> None:
    evil = "\x1b[31m<b>@x"
    b = run(2, None, side=side("b", MALLOC_ARENA_MAX="1", **{f"E{evil}": evil}))
    found = compared(run(1, "a"), b)
    told = {one["what"]: (one["a"], one["b"]) for one in found["differences"]}
    assert told["setting MALLOC_ARENA_MAX"] == ("-", "1")
    out = io.StringIO()
    show_comparison(found, out)
    for text in (out.getvalue(), as_markdown(found)):
        assert "setting MALLOC" in " ".join(text.replace("\\", "").split())
        assert "\x1b" not in text
    assert "<b>" not in as_markdown(found).replace("\\<", "")
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_the_page_says_that_and_over_what_it_is_paired() -> None:
    found = compared(run(1, "a"), run(2, "b", slower=1.05))
    said = " ".join(header(found))
    assert "Paired: 16 passes of both, measured in turns" in said
    assert "This run only: no claim on other days or hosts." in said
    assert "A drifts" not in said
    assert "16 paired passes, this run only): slower" in sentences(found)[0]
    assert "16 paired passes, this run only" in as_markdown(found)


def test_a_difference_that_drifts_is_said_to() -> None:
    a, b = document(1, "a", 40), document(2, "b", 40)
    for made, way in ((a, 1), (b, -1)):
        for one in made["passes"]:
            for cell in one["blocks"][0]["cells"]:
                stretched(cell, math.exp(way * one["index"] / 400))
    assert "The difference drifts" in " ".join(header(compared(as_member(reseal(a)), as_member(reseal(b)))))


def stretched(cell: Doc, factor: float) -> None:
    times = [round(ns * factor) for ns in cell["copy_elapsed_ns"]]
    cell["copy_elapsed_ns"], samples = times, cell["samples"]
    samples["elapsed_ns"] = [sum(times), *[0] * (len(samples["elapsed_ns"]) - 1)]
    samples["ops"] = [sum(samples["ops"]), *[0] * (len(samples["ops"]) - 1)]


def test_the_sign_test_speaks_where_one_pass_decides_the_interval() -> None:
    """Fifteen passes say 3 % more time, one says half of it."""
    made = document(2, "b", slower=1.03)
    for cell in made["passes"][7]["blocks"][0]["cells"]:
        stretched(cell, 0.5)
    found = compared(run(1, "a"), as_member(reseal(made)))
    claim = found["headline"]["per_core"]
    assert claim["ratio"]["low"] < 1 < claim["ratio"]["high"]
    assert claim["sign"]["high"] < 1
    assert claim["sign"]["disagrees"]
    assert claim["reason"] is None
    assert "; sign test disagrees: median -" in sentences(found)[0]
    said = dict(dict(lists(found))["Said of figures"])
    assert said["file_create@1"].startswith("sign test disagrees: median -")
    assert "sign test disagrees" in as_markdown(found)


@pytest.mark.parametrize(
    ("differences", "disagrees"),
    [([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.0], False), ([-1.0, 1.1, -0.9, 1.0, -1.05, 0.95, 1.0, -1.0], False),
     ([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, -90.0], False), ([0.1] * 9 + [-20.0], True)],
    ids=["both see it", "neither does", "eight of which one is off", "ten of which one is off"],
)  # fmt: skip
def test_the_two_disagree_where_one_alone_sees_a_difference(differences: list[float], disagrees: bool) -> None:
    zeros, logs = np.zeros(len(differences)), np.array(differences) / 100
    found = sign_test(zeros, logs, paired(zeros, logs))
    assert found is not None
    assert found["disagrees"] is disagrees
    assert found["value"] == pytest.approx(math.exp(np.median(logs)))
    assert sign_test(zeros[:5], logs[:5], paired(zeros[:5], logs[:5])) is None


def test_rows_missing_on_a_side_of_a_pair_leave_a_paired_subset() -> None:
    left = [v for v in made_variants() if v.kernel != "file_create"]
    found = compared(run(1, "a"), run(2, "b", slower=1.05, variants=left))
    assert found["headline"]["speed"]["reason"] == "missing: file_create@1 (B: not in the plan)"
    assert (found["subset"]["speed"]["paired"], found["subset"]["speed"]["verdict"]) == (True, "slower")
