"""Two sides compared: the truth is found, sides are put together, and what is no comparison is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from broken import reseal
from made import made_run, made_variants

from cpubench.analysis.compare import compare
from cpubench.analysis.members import Member, member
from cpubench.analysis.reference import make_reference
from cpubench.analysis.scenarios import Scenario, load_scenarios
from cpubench.errors import UsageError
from cpubench.results.records import Divisor, Missing, Run

Doc = dict[str, Any]
REFERENCE = make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")
EQUAL = load_scenarios()["equal"]


def as_member(document: Doc, where: str = "") -> Member:
    run = msgspec.convert(document, Run)
    return member(run, where or run.plan.id, REFERENCE, EQUAL)


def run(seed: int, passes: int = 16, **made: Any) -> Member:
    return as_member(made_run(passes, seed=seed, **made))


def compared(a: Member | list[Member], b: Member | list[Member], **more: Any) -> Doc:
    groups = [one if isinstance(one, list) else [one] for one in (a, b)]
    found = compare(groups, REFERENCE, EQUAL, **more)
    json.dumps(found, allow_nan=False)
    return found


def row(found: Doc, name: str, copies: str = "1") -> Doc:
    return next(one for one in found["rows"] if (one["name"], one["copies"]) == (name, copies))


def changed(seed: int, change: Callable[[Doc], None], **made: Any) -> Member:
    document = made_run(16, seed=seed, **made)
    change(document)
    return as_member(reseal(document))


def each_cell(document: Doc, name: str) -> list[Doc]:
    kernel, _, params = name.partition("[")
    cells = [c for one in document["passes"] for block in one["blocks"] for c in block["cells"]]
    return [c for c in cells if (c["kernel"], c["params"]) == (kernel, params.rstrip("]"))]


def test_document_has_the_shape_and_the_truth() -> None:
    """B takes a fifth more time for everything: 1 / 1.2 of the rate."""
    found = compared(run(1), run(2, slower=1.2))
    assert set(found) >= {"rows", "headline", "families", "scope", "refused", "direction", "subset", "sides"}
    for claim in (found["headline"]["per_core"], found["headline"]["speed"], found["families"]["lock"]["speed"]):
        assert set(claim["ratio"]) == {"value", "low", "high", "passes", "reason"}
        assert claim["ratio"]["value"] == pytest.approx(1 / 1.2, rel=0.03)
        assert claim["ratio"]["low"] < 1 / 1.2 < claim["ratio"]["high"]
        assert (claim["verdict"], claim["passes"]) == ("slower", {"a": 16, "b": 16})
        assert claim["adjusted"]["low"] < claim["ratio"]["low"] < claim["ratio"]["high"] < claim["adjusted"]["high"]
    assert found["headline"]["per_watt"]["ratio"]["value"] is None
    assert found["headline"]["per_watt"]["ratio"]["reason"] == "no_meter"
    one = row(found, "file_create", "cores")
    assert {"name", "copies", "cap", "ratio", "verdict", "paired", "reason"} <= set(one)
    assert (one["cap"], one["paired"], one["scored"], one["verdict"]) == ("as-is", False, True, "slower")
    assert (found["scope"], found["refused"], found["subset"], found["floor_percent"]) == (
        "this run only", [], None, None,
    )  # fmt: skip
    assert found["claims"] == 2 + 10 + len(found["rows"])


def test_exchanging_the_sides_mirrors_everything() -> None:
    a, b = run(1), run(2, slower=1.2)
    there, back = compared(a, b)["rows"], compared(b, a)["rows"]
    for one, other in zip(there, back, strict=True):
        assert one["ratio"]["value"] * other["ratio"]["value"] == pytest.approx(1)
        assert one["ratio"]["low"] * other["ratio"]["high"] == pytest.approx(1)
        assert (one["verdict"], other["verdict"]) == ("slower", "faster")


def test_equal_quiet_runs_are_equivalent_and_equal_noisy_ones_inconclusive() -> None:
    assert {one["verdict"] for one in compared(run(1, 40, noise=0.002), run(2, 40, noise=0.002))["rows"]} == {
        "equivalent"
    }
    assert {one["verdict"] for one in compared(run(1, noise=0.2), run(2, noise=0.2))["rows"]} == {"inconclusive"}


def test_rates_are_per_core() -> None:
    """Four cores beside two do twice the work, and the same per core."""
    found = compared(run(1, noise=0.001), run(2, noise=0.001, cpus=4))
    assert row(found, "file_create", "cores")["ratio"]["value"] == pytest.approx(1, rel=0.01)
    assert {"what": "cores", "a": "2 x vcpu", "b": "4 x vcpu"} in found["differences"]


def test_three_runs_a_side_speak_of_hosts() -> None:
    sides = [[run(10 * side + n, slower=1 + side / 10) for n in range(3)] for side in (0, 1)]
    found = compared(*sides)
    claim = found["headline"]["per_core"]
    assert (found["scope"], claim["passes"], claim["verdict"]) == ("runs", {"a": 48, "b": 48}, "slower")
    assert claim["ratio"]["value"] == pytest.approx(1 / 1.1, rel=0.02)
    assert len(found["sides"]["a"]["runs"]) == 3


def test_two_runs_a_side_speak_of_these_runs() -> None:
    found = compared([run(1), run(2)], [run(3), run(4)])
    assert (found["scope"], found["headline"]["per_core"]["passes"]) == ("this run only", {"a": 32, "b": 32})


def test_more_than_two_are_put_together_by_host() -> None:
    runs = [[run(n, host_id="ab"[n % 2], slower=1 + n % 2)] for n in range(6)]
    found = compare(runs, REFERENCE, EQUAL)
    assert [side["host_id"] for side in found["sides"].values()] == ["a", "b"]
    assert (found["scope"], found["headline"]["speed"]["verdict"]) == ("runs", "slower")
    assert compare([[one for (one,) in runs]], REFERENCE, EQUAL) == found  # one folder with all of them


@pytest.mark.parametrize(
    ("hosts", "text"),
    [("a", "two runs, or two folders"), ("aaa", "all 3 runs are of one host"), ("abc", "of 3 hosts: compare two"),
     (["unknown", "a", "b"], "does not know its host")],
)  # fmt: skip
def test_sides_that_nobody_can_know_are_refused(hosts: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        compare([[run(n, host_id=host)] for n, host in enumerate(hosts)], REFERENCE, EQUAL)


def test_a_side_of_several_hosts_is_refused() -> None:
    with pytest.raises(UsageError, match="side B has runs of several hosts"):
        compared(run(1), [run(2, host_id="x"), run(3, host_id="y")])


def with_unit(document: Doc) -> None:
    for variant in document["plan"]["variants"]:
        variant["unit"] = "round trip"


def with_version(document: Doc) -> None:
    shown = next(v for v in document["plan"]["variants"] if not v["scored"] and v["kernel"] == "lock_mutex")
    shown["version"] = 2


REFUSED: dict[str, tuple[Callable[[], Member], str]] = {
    "unit": (lambda: changed(2, with_unit), "an operation of spawn_fork_exec is a round trip"),
    "version": (lambda: changed(2, with_version), "lock_mutex is version"),
    "divisor": (lambda: run(2, divisor=Divisor("physical_core", 2)), "counts per physical_core, made-1 per vcpu"),
    "twice": (lambda: run(1, slower=1.1), "is the same run as made-1"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_other_work_or_counted_otherwise_is_refused(code: str) -> None:
    make, text = REFUSED[code]
    with pytest.raises(UsageError, match=text) as caught:
        compared(run(1), make())
    assert caught.value.code == code


def test_a_copy_under_another_name_is_no_repetition() -> None:
    def renamed(document: Doc) -> None:
        document["plan"]["id"] = "other"

    with pytest.raises(UsageError, match="is the same run as made-1"):
        compared([run(1), run(2), changed(1, renamed)], [run(3), run(4), run(5)])


def test_another_suite_is_refused() -> None:
    other = msgspec.structs.replace(run(2).plan, suite=2)
    with pytest.raises(UsageError, match="is of suite 2, made-1 of suite 1"):
        compared(run(1), Member(**{**run(2).__dict__, "plan": other}))
    with pytest.raises(UsageError, match="suite 2, the reference of suite 1"):
        run(2, suite=2)


def huge(ppm: int) -> Callable[[Doc], None]:
    def change(document: Doc) -> None:
        for cell in each_cell(document, "mem_chase[set=256M]"):
            cell["obtained"]["huge_ppm"] = ppm

    return change


def test_other_pages_refuse_their_rows_and_are_said_of_the_whole() -> None:
    found = compared(changed(1, huge(1_000_000)), changed(2, huge(0)))
    one = row(found, "mem_chase[set=256M]")
    assert (one["verdict"], one["ratio"]["value"]) == ("not compared", None)
    assert one["reason"] == "different page sizes: 100 % huge in A, 0 % huge in B"
    assert [refused["code"] for refused in found["refused"]] == ["page_size", "page_size"]
    assert found["headline"]["per_core"]["ratio"]["reason"] == "different page sizes"
    assert found["headline"]["per_core"]["ratio"]["value"] == pytest.approx(1, rel=0.05)
    assert found["families"]["memory"]["speed"]["reason"] == "different page sizes"
    assert found["families"]["lock"]["speed"]["reason"] is None
    assert not compared(changed(1, huge(1_000_000)), changed(2, huge(999_500)))["refused"]


def test_a_parameter_that_follows_the_host_is_not_compared() -> None:
    def half_l3(document: Doc) -> None:
        shown = next(v for v in document["plan"]["variants"] if v["params"] == "set=1M")
        shown["value"] = 1 << 20

    one = row(compared(run(1), changed(2, half_l3)), "mem_chase[set=1M]")
    assert one["reason"] == "the parameter is 0 in A and 1048576 in B: it follows the host"


def test_rows_missing_on_one_side_have_a_reason_and_leave_a_subset() -> None:
    left = [v for v in made_variants() if v.kernel != "file_create"]
    found = compared(run(1), run(2, variants=left, skipped=[Missing("file_create", "no tmpfs", True)], slower=1.1))
    assert row(found, "file_create")["reason"] == "B: skipped: no tmpfs"
    claim = found["headline"]["per_core"]
    assert (claim["ratio"]["value"], claim["verdict"]) == (None, "not compared")
    assert claim["reason"] == "missing: file_create@cores (B: skipped: no tmpfs)"
    assert found["families"]["file"]["speed"]["ratio"]["value"] is None
    subset = found["subset"]["per_core"]
    assert (subset["verdict"], subset["reason"]) == ("slower", "subset: 6 of 7 scored rows")
    assert subset["ratio"]["value"] == pytest.approx(1 / 1.1, rel=0.02)


def test_a_variant_that_failed_on_one_side_has_its_reason() -> None:
    def fail(document: Doc) -> None:
        for cell in each_cell(document, "file_create")[: 2 * 12]:
            cell |= {"error": "no space left", "copy_ops": [], "copy_elapsed_ns": []}

    found = compared(run(1), changed(2, fail))
    assert row(found, "file_create")["reason"] == "B: in 4 of 16 passes (8 are needed): no space left"
    assert "file_create@1 (B: in 4 of 16 passes" in found["headline"]["speed"]["reason"]


def test_with_several_runs_the_one_that_lacks_a_row_is_named() -> None:
    left = [v for v in made_variants() if v.kernel != "file_create"]
    found = compared([run(n) for n in range(3)], [run(3), run(4, variants=left), run(5)])
    assert row(found, "file_create")["reason"] == "B (made-4): not in the plan"


@pytest.mark.parametrize(
    ("passes", "text"), [(0, "nothing can be compared: B: the run has no passes"),
                         (1, "8 passes are needed, the run has 1"),
                         (7, "the run has 7")],
)  # fmt: skip
def test_nothing_to_compare_is_refused(passes: int, text: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        compared(run(1), run(2, passes))
    assert caught.value.code == "nothing"


def capped(document: Doc) -> None:
    document["plan"]["caps"] = ["250W"]
    for one in document["passes"]:
        one["blocks"][0]["cap"] = "250W"


def test_levels_with_a_cap_are_not_compared_and_said_so() -> None:
    with pytest.raises(UsageError, match="no passes without a cap"):
        compared(run(1), changed(2, capped))

    def both(document: Doc) -> None:
        document["plan"]["caps"] = ["as-is", "250W"]
        for one in document["passes"]:
            one["blocks"].append({**one["blocks"][0], "cap": "250W"})

    (refused,) = compared(run(1), changed(2, both))["refused"]
    assert (refused["code"], refused["text"][:5]) == ("cap", "250W:")


def test_storage_on_other_file_systems_is_not_compared() -> None:
    def on(kind: str) -> Callable[[Doc], None]:
        def change(document: Doc) -> None:
            for cell in each_cell(document, "file_create"):
                cell["obtained"]["file_system"] = kind

        return change

    found = compared(changed(1, on("ext4")), changed(2, on("xfs")))
    assert row(found, "file_create")["reason"] == "different file systems: ext4 in A, xfs in B"
    assert found["headline"]["speed"]["ratio"]["value"] is None
    assert found["subset"]["speed"]["reason"] == "subset: 6 of 7 scored rows"


def test_absurd_numbers_stay_finite() -> None:
    found = compared(run(1), run(2, factors={"file_create": 1e9}))
    assert row(found, "file_create")["verdict"] == "slower"


def test_slower_by_more_than_a_margin_is_a_question_of_its_own() -> None:
    a, b = run(1, 40, noise=0.002), run(2, 40, noise=0.002, slower=1.05)
    assert "headline per_core" in compared(a, b, fail_band=0.0)["slower"]
    assert "file_create@1" in compared(a, b, fail_band=0.03)["slower"]
    assert compared(a, b, fail_band=0.06)["slower"] == []
    assert compared(b, a, fail_band=0.0)["slower"] == []
    assert "slower" not in compared(a, b)


def test_a_family_without_weight_is_not_in_the_whole() -> None:
    other = Scenario("other", "", {"memory": 1.0}, {})
    a, b = (as_member(made_run(16, seed=n, factors={"mem_chase": n})) for n in (1, 2))
    found = compare([[a], [b]], REFERENCE, other)
    assert found["headline"]["speed"]["ratio"]["value"] == pytest.approx(0.5, rel=0.02)
    assert found["families"]["file"]["speed"]["ratio"]["value"] == pytest.approx(1, rel=0.05)


def test_differences_and_what_is_not_publishable_are_told() -> None:
    def host(document: Doc) -> None:
        document["host"] |= {"cpu_model": "other CPU", "kernel_cmdline": "quiet a=1", "mitigations": {"mds": "off"}}
        document["plan"]["build"]["flags"] = "-O3"
        document["plan"]["profile"] = "standard"

    def cmdline(document: Doc) -> None:
        document["host"] |= {"kernel_cmdline": "quiet b=2", "mitigations": {"mds": "on"}, "cores": [[0], [1], [2]]}

    found = compared(changed(1, cmdline), changed(2, host))
    told = {one["what"]: (one["a"], one["b"]) for one in found["differences"]}
    assert told["CPU"] == ("made CPU", "other CPU")
    assert told["kernel command line"] == ("b=2", "a=1")
    assert told["mitigation of mds"] == ("on", "off")
    assert (told["build: flags"], told["profile"]) == (("-O2", "-O3"), ("quick", "standard"))
    assert "2 of 3 CPUs were measured" in found["sides"]["a"]["not_publishable"][0]
    assert found["sides"]["b"]["not_publishable"] == []
