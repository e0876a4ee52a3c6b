from __future__ import annotations

from pathlib import Path
from typing import Any

import cpubench.suites
import msgspec
import pytest
from made import made_run

from cpubench.analysis.cells import blocks_at, ops_per_s
from cpubench.bench.facts import facts_of_run, facts_of_variant, machine_info
from cpubench.bench.replay import (
    Row,
    cells_at,
    default_cap,
    failure,
    rows_of_kernels,
    rows_of_run,
    seconds_per_op,
    skip_reason,
)
from cpubench.measure.profiles import PROFILES
from cpubench.results.records import Missing, Run


def as_run(document: dict[str, Any]) -> Run:
    return msgspec.convert(document, Run)


def kernel(name: str, family: str, *params: tuple[str, bool, bool], flags: tuple[str, ...] = ()) -> dict[str, Any]:
    rows = [{"label": label, "scored": scored, "strict": strict, "each": None} for label, scored, strict in params]
    return {"name": name, "family": family, "flags": list(flags), "params": rows}


KERNELS = [
    kernel("mem_chase", "memory", ("set=16K", True, False), ("set=L1/2", False, False), ("set=1G", False, True)),
    kernel("lock_mutex", "lock", ("", True, False), flags=("group",)),
]


def keys(profile: str, smt: bool) -> list[str]:
    return [row.key for row in rows_of_kernels(KERNELS, PROFILES[profile], smt)]


def test_quick_has_the_scored_rows_with_one_copy_and_on_all_cores() -> None:
    wanted = ["mem_chase[set=16K]@1", "mem_chase[set=16K]@cores", "lock_mutex@1", "lock_mutex@cores"]
    assert keys("quick", smt=True) == wanted


def test_standard_adds_shown_rows_and_only_strict_adds_all() -> None:
    assert set(keys("standard", smt=False)) - set(keys("quick", smt=False)) == {"mem_chase[set=L1/2]@1"}
    assert set(keys("strict", smt=False)) - set(keys("standard", smt=False)) == {"mem_chase[set=1G]@1"}


def test_all_cpus_are_a_row_of_their_own_where_smt_makes_them_one() -> None:
    assert set(keys("standard", smt=True)) - set(keys("standard", smt=False)) == {"mem_chase[set=16K]@cpus"}


def test_a_profile_collects_what_a_run_of_it_plans() -> None:
    native = pytest.importorskip("cpubench._native")
    from cpubench.host.topology import Core
    from cpubench.measure.variants import Host, Request, choose

    host = Host([Core((0, 1), 0, 0, 0), Core((2, 3), 0, 0, 0)], {"L1": 1 << 15, "L2": 1 << 20, "L3": 1 << 25}, None)
    for profile in PROFILES:
        chosen, missing = choose(native.kernels(), host, Request(profile=profile))
        planned = {v.key for v in chosen} | {m.variant for m in missing}
        assert {row.key for row in rows_of_kernels(native.kernels(), PROFILES[profile], True, host.cores)} == planned


def test_every_family_of_the_registry_has_its_suite() -> None:
    """A row without one would be in the export and in no table."""
    native = pytest.importorskip("cpubench._native")
    families = {kernel["family"] for kernel in native.kernels() if "hidden" not in kernel["flags"]}
    folder = Path(cpubench.suites.__file__).parent
    assert {file.name for file in folder.glob("bench_*.py")} == {f"bench_{family}.py" for family in families}
    for family in families:
        file, test = Row(family, "x", "1").fullname.removesuffix("[x-1]").split("::")
        text = (folder / Path(file).name).read_text()
        assert f'@pytest.mark.cpubench("{family}")\ndef {test}(' in text


def test_a_row_has_one_name_for_pytest_for_compare_and_for_the_plan() -> None:
    row = Row("spawn", "spawn_fork_exec[rss=384M]", "cores")
    assert row.key == "spawn_fork_exec[rss=384M]@cores"
    assert row.fullname == "suites/bench_spawn.py::test_spawn[spawn_fork_exec[rss=384M]-cores]"
    assert row.group == "spawn@cores"


def test_rows_of_a_run_hold_what_was_skipped_in_its_family() -> None:
    skipped = [
        Missing("mem_chase[set=32G]@cores", "too large"),
        Missing("mem_tlb@1", "no pages"),  # of a kernel that has no other row
        Missing("lock_all", "one CPU"),  # whatever the copies
    ]
    run = as_run(made_run(1, skipped=skipped))
    rows = rows_of_run(run)
    assert [row.key for row in rows[: len(run.plan.variants)]] == [v.key for v in run.plan.variants]
    assert rows[len(run.plan.variants) :] == [
        Row("memory", "mem_chase[set=32G]", "cores"),
        Row("memory", "mem_tlb", "1"),
        Row("lock", "lock_all", "1"),
    ]
    assert [skip_reason(run, row) for row in rows[-3:]] == ["too large", "no pages", "one CPU"]
    assert "not in the plan" in skip_reason(run, Row("lock", "lock_new", "1"))


def test_seconds_are_of_one_copy_and_the_rate_is_of_all() -> None:
    run = as_run(made_run(2, noise=0, cpus=4))
    cells = cells_at(run, "as-is")["spawn_fork_exec[rss=8M]@1"]
    assert seconds_per_op(cells) == pytest.approx([4e-4] * 4)  # two passes of two samples
    four = cells_at(run, "as-is")["file_create@cores"]
    assert seconds_per_op(four) == pytest.approx([3e-5] * 4, rel=1e-3)
    assert ops_per_s(four[0][1]) == pytest.approx(4 / 3e-5)


def test_the_stored_rate_is_the_geometric_mean_of_the_passes() -> None:
    run = as_run(made_run(5, noise=0.3))
    variant = next(v for v in run.plan.variants if v.key == "mem_chase[set=16K]@cores")
    cells = cells_at(run, "as-is")[variant.key]
    product = 1.0
    for _, cell in cells:
        product *= ops_per_s(cell) or 0
    facts = facts_of_variant(run, variant, "as-is", cells)
    assert facts["ops_per_s"] == pytest.approx(product ** (1 / 5))
    assert facts["passes"] == 5
    assert (facts["ops"], facts["unit"], facts["flags"]) == (variant.ops, "operation", ["blocking"])


def test_a_failed_variant_says_its_reason_and_a_partly_failed_one_shows_what_it_has() -> None:
    run = as_run(made_run(2))
    (_, whole), (_, other) = cells_at(run, "as-is")["file_create@1"]
    assert failure([(0, whole), (1, other)]) is None
    none = msgspec.convert({name: [] for name in whole.samples.__struct_fields__}, type(whole.samples))
    broken = msgspec.structs.replace(other, samples=none, error="signal 11", copy_ops=[0], copy_elapsed_ns=[0])
    assert failure([(1, broken)]) == "signal 11 (pass 1)"
    assert failure([(0, whole), (1, broken)]) is None
    assert failure([]) == "the run holds no sample of it"
    assert ops_per_s(broken) is None
    facts = facts_of_variant(run, run.plan.variants[3], "as-is", [(0, whole), (1, broken)])
    assert (facts["passes"], facts["errors"]) == (1, [{"pass": 1, "reason": "signal 11"}])
    idle = msgspec.structs.replace(whole.samples, ops=[0] * len(whole.samples.ops))
    assert "without operations" in (failure([(0, msgspec.structs.replace(whole, samples=idle))]) or "")


def test_a_pass_without_one_of_its_cap_levels_is_left_out() -> None:
    document = made_run(3, caps=["70%", "as-is"])
    for the_pass in document["passes"][:2]:
        the_pass["blocks"].append({**the_pass["blocks"][0], "cap": "70%"})
    run = as_run(document)
    assert default_cap(run) == "as-is"
    assert [b.index for b in blocks_at(run, "as-is")] == [b.index for b in blocks_at(run, "70%")] == [0, 1]
    assert default_cap(as_run(made_run(1, caps=["70%"]))) == "70%"


def test_the_machine_is_the_same_from_run_to_run() -> None:
    from cpubench.host.facts import collect

    first, second = collect(), collect() | {"memory_bytes": 1}
    assert machine_info(first) == machine_info(second)
    assert machine_info(first)["node"]


def test_facts_of_the_run_name_what_failed_and_what_was_skipped() -> None:
    document = made_run(1, skipped=[Missing("mem_tlb@1", "no pages")])
    document["passes"][0]["blocks"][0]["cells"][0] |= {"error": "EPERM", "copy_ops": [], "copy_elapsed_ns": []}
    samples = document["passes"][0]["blocks"][0]["cells"][0]["samples"]
    document["passes"][0]["blocks"][0]["cells"][0]["samples"] = {name: [] for name in samples}
    facts = facts_of_run(as_run(document), "as-is")
    assert facts["failed"] == [{"variant": "spawn_fork_exec[rss=8M]@1", "reason": "EPERM (pass 0)"}]
    assert facts["skipped"] == [{"variant": "mem_tlb@1", "reason": "no pages"}]
