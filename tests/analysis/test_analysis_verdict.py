"""What forbids to publish a run, and what only must be said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from made import made_run, made_variants

from cpubench.analysis.rates import divisors
from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.errors import UsageError
from cpubench.results.records import Divisor, Plan, Run


def as_run(document: dict[str, Any]) -> Run:
    return msgspec.convert(document, Run)


def judged(host: dict[str, Any], **made: Any) -> tuple[bool, set[str]]:
    document = made_run(**made)
    document["host"] |= host
    found = score(as_run(document), make_reference(as_run(made_run()), "made"))
    return found["publishable"], {note["code"] for note in found["notes"]}


def test_a_whole_machine_is_publishable() -> None:
    assert judged({"cores": [[0], [1]], "virtual": True}) == (True, {"estimate"})


def test_a_part_of_a_machine_is_not() -> None:
    publishable, notes = judged({"cores": [[cpu] for cpu in range(128)]})
    assert not publishable
    assert "subset" in notes


def test_a_virtual_machine_that_shows_threads_is_not_counted_in_vcpus() -> None:
    publishable, notes = judged({"cores": [[0, 1]], "virtual": True})
    assert not publishable
    assert "vcpu_threads" in notes
    physical = Divisor(kind="physical_core", n=1)
    assert "vcpu_threads" not in judged({"cores": [[0, 1]], "virtual": False}, divisor=physical)[1]


@pytest.mark.parametrize(("others", "confined"), [("0-23,25-31\x1b", True), ("", False), (None, False), ([3], False)])
def test_a_cpuset_on_a_part_of_a_machine_is_not_publishable(others: Any, confined: bool) -> None:
    publishable, notes = judged({"cores": [[0], [1]], "cpus_not_allowed": others})
    assert ("confined" in notes, publishable) == (confined, not confined)


def test_cores_of_different_kinds_are_not_averaged() -> None:
    kinds = [{"name": "cpu_core\x1b", "cpus": [0]}, {"name": "cpu_atom", "cpus": [1, 2]}]
    host = {"cores": [[0], [1]], "virtual": False, "core_classes": kinds}
    publishable, notes = judged(host)
    assert not publishable
    assert "core_classes" in notes
    apart = [{"name": "cpu_core", "cpus": [0, 1]}, {"name": "cpu_atom", "cpus": [2, 3]}]
    assert "core_classes" not in judged(host | {"core_classes": apart})[1]
    assert judged(host | {"core_classes": [{"name": "uniform", "cpus": [0, 1]}]})[0]


@pytest.mark.parametrize("odd", [None, "x", [1], [{"cpus": 3}], [{"name": [], "cpus": [[], {}, "0"]}, {"cpus": [0]}]])
def test_core_classes_of_another_form_say_nothing(odd: Any) -> None:
    assert "core_classes" not in judged({"cores": [[0], [1]], "core_classes": odd})[1]


def test_a_machine_of_which_nobody_knows_whether_it_is_virtual_says_so() -> None:
    assert "virtual_unknown" in judged({"cores": [[0], [1]], "virtual": None})[1]


def test_a_run_without_a_headline_is_not_publishable_and_says_why() -> None:
    """Three families lack three different passes each: no row is missing for good, yet too few passes are whole."""
    document = made_run(16)
    kernels = ("file_create", "mem_chase", "spawn_fork_exec")
    for turn, kernel in enumerate(kernels):
        for one in document["passes"][3 * turn : 3 * turn + 3]:
            cells = one["blocks"][0]["cells"]
            one["blocks"][0]["cells"] = [cell for cell in cells if cell["kernel"] != kernel]
    found = score(as_run(document), make_reference(as_run(made_run()), "made"))
    assert found["headline"]["per_core"]["value"] is None
    assert not found["publishable"]
    assert "no_headline" in {note["code"] for note in found["notes"]}


def test_a_reference_of_some_families_is_refused() -> None:
    whole, part = as_run(made_run()), [v for v in made_variants() if v.family == "switch"]
    wanted = make_reference(whole, "whole")["variants"]
    make_reference(whole, "again", rows_wanted=wanted)
    with pytest.raises(UsageError, match="spawn_fork_exec"):
        make_reference(as_run(made_run(variants=part)), "part", rows_wanted=wanted)


@pytest.mark.parametrize(("cpus", "granted", "lock"), [(3, 2.5, 2.0), (9, 4.0, 4.0)])
def test_a_quota_binds_only_where_more_cores_are_occupied(cpus: int, granted: float, lock: float) -> None:
    plan = msgspec.convert(made_run(0, cpus=cpus, divisor=Divisor(kind="granted_cpu", n=granted))["plan"], Plan)
    found = divisors(plan)
    assert (found["file_create@cores"], found["lock_mutex[cs=200ns]@cores"]) == (granted, lock)
