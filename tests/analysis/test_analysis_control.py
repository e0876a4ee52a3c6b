"""The A/A floor: how far apart one kernel under two labels may be; it only makes differences harder to claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from made import made_controls, made_run, made_variants

from cpubench.analysis.cells import blocks_at
from cpubench.analysis.compare import compare
from cpubench.analysis.control import floor_facts
from cpubench.analysis.members import Member, member
from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import load_scenarios
from cpubench.analysis.score import score
from cpubench.results.records import Missing, Run

Doc = dict[str, Any]
REFERENCE = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")
EQUAL = load_scenarios()["equal"]
AGAIN = "test_work[steps=1000,again]@1"


def loaded(passes: int = 16, control: float | None = 1.0, **made: Any) -> Run:
    """A run with the control kernel, of whose labels the second takes that many times the first's time."""
    factors = {} if control is None else {AGAIN: control}
    variants = made_variants() + ([] if control is None else made_controls())
    return msgspec.convert(made_run(passes, **{"variants": variants, "factors": factors} | made), Run)


def as_member(run: Run) -> Member:
    return member(run, run.plan.id, REFERENCE, EQUAL)


def compared(a: Run, b: Run, **more: Any) -> Doc:
    return compare([[as_member(a)], [as_member(b)]], REFERENCE, EQUAL, **more)


@pytest.mark.parametrize("label", [1.03, 1 / 1.03])
def test_the_floor_is_the_farther_end_in_either_direction(label: float) -> None:
    percent, reason = floor_facts(blocks_at(loaded(noise=0, control=label), "as-is"))
    assert percent == pytest.approx(3.0, abs=0.01)
    assert reason is None


def test_the_floor_shrinks_with_passes_and_grows_with_noise() -> None:
    def floor(passes: int, noise: float) -> float:
        return floor_facts(blocks_at(loaded(passes, noise=noise), "as-is"))[0] or 0.0

    assert 0 < floor(60, 0.002) < floor(8, 0.002) < floor(8, 0.05)


@pytest.mark.parametrize(
    ("run", "text"),
    [(loaded(control=None), "no kernel was measured under two labels: the floor is unknown"),
     (loaded(7), "8 passes are needed, 7 have a kernel under two labels: the floor is unknown"),
     (loaded(0), "no kernel was measured under two labels: the floor is unknown")],
    ids=["no control", "few passes", "no passes"],
)  # fmt: skip
def test_an_unknown_floor_has_a_reason(run: Run, text: str) -> None:
    assert floor_facts(blocks_at(run, "as-is")) == (None, text)
    document = score(run, REFERENCE)
    assert (document["floor_percent"], document["floor_reason"]) == (None, text)


def test_a_score_has_the_floor_of_its_run() -> None:
    document = score(loaded(noise=0, control=1.004), REFERENCE)
    assert document["floor_percent"] == pytest.approx(0.4, abs=0.01)
    assert document["floor_reason"] is None
    assert "control" not in document["families"]
    assert document["headline"] == score(loaded(noise=0, control=None), REFERENCE)["headline"]


def test_the_control_kernel_is_no_row_and_no_claim() -> None:
    found, bare = (compared(loaded(seed=1, control=one), loaded(seed=2, control=one)) for one in (1.0, None))
    assert [row["name"] for row in found["rows"]] == [row["name"] for row in bare["rows"]]
    assert found["claims"] == bare["claims"]
    skipped = [Missing("test_work[steps=1000]@1", "no room")]
    assert compared(loaded(seed=1), loaded(seed=2, control=None, skipped=skipped))["claims"] == bare["claims"]


def test_another_version_of_the_control_kernel_is_no_other_work() -> None:
    other = [msgspec.structs.replace(v, version=9) for v in made_controls()]
    found = compared(loaded(seed=1), loaded(seed=2, variants=made_variants() + other))
    assert found["floor_reason"] is None


def words(found: Doc) -> set[str]:
    return {row["verdict"] for row in found["rows"]}


def test_no_difference_inside_the_floor_is_called_one() -> None:
    """B needs 3 % more time, which is sure; on a host where one kernel differs from itself by 5 % it says nothing."""
    for label, word in ((1.0, "slower"), (1.05, "inconclusive")):
        a, b = (
            loaded(40, noise=0.002, seed=1, control=label),
            loaded(40, noise=0.002, seed=2, control=label, slower=1.03),
        )
        found, back = compared(a, b), compared(b, a)
        assert words(found) == {word}
        assert words(back) == {word.replace("slower", "faster")}
    assert found["band_percent"] == found["floor_percent"] == pytest.approx(5, abs=0.2)


def test_a_floor_makes_no_two_sides_equivalent() -> None:
    """Equal sides are equivalent by their own intervals, whatever the floor; what is not within 2 % never is."""
    for label in (1.0, 1.05, 1.5):
        quiet = [loaded(40, noise=0.002, seed=seed, control=label) for seed in (1, 2)]
        noisy = [loaded(16, noise=0.2, seed=seed, control=label) for seed in (1, 2)]
        assert words(compared(*quiet)) == {"equivalent"}
        assert words(compared(*noisy)) == {"inconclusive"}


def test_a_floor_within_one_per_cent_changes_no_word() -> None:
    sides = [[loaded(40, noise=0.002, seed=seed, control=label, slower=seed**0.02) for seed in (1, 2)]
             for label in (None, 1.001)]  # fmt: skip
    bare, found = (compared(*side) for side in sides)
    assert found["floor_percent"] < 1
    assert [row["verdict"] for row in found["rows"]] == [row["verdict"] for row in bare["rows"]]
    assert found["band_percent"] == bare["band_percent"] == 1


def test_the_larger_of_two_floors_counts_and_an_unknown_one_is_said() -> None:
    a, b = loaded(40, noise=0.002, seed=1, control=1.02), loaded(40, noise=0.002, seed=2, control=1.04)
    assert compared(a, b)["floor_percent"] == as_member(b).floor_percent == pytest.approx(4, abs=0.2)
    found = compared(a, loaded(40, noise=0.002, seed=3, control=None))
    assert found["floor_percent"] == as_member(a).floor_percent
    assert found["floor_reason"] == "B: no kernel was measured under two labels: the floor is unknown"
    neither = compared(*(loaded(seed=seed, control=None) for seed in (1, 2)))
    assert neither["floor_percent"] is None
    assert neither["floor_reason"] == "A and B: no kernel was measured under two labels: the floor is unknown"


def test_a_gate_fails_on_nothing_inside_the_floor() -> None:
    made = [loaded(40, noise=0.002, seed=seed, control=1.05, slower=slower) for seed, slower in ((1, 1.0), (2, 1.04))]
    found = compared(*made, fail_band=0.03)
    assert found["slower"] == []
    assert found["fail_band_percent"] == found["floor_percent"]
    assert compared(*made, fail_band=0.1)["fail_band_percent"] == pytest.approx(10)
    bare = [loaded(40, noise=0.002, seed=seed, control=1.0, slower=slower) for seed, slower in ((1, 1.0), (2, 1.04))]
    assert "headline per_core" in compared(*bare, fail_band=0.03)["slower"]
