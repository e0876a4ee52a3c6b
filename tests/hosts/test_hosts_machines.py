"""Whole machines: what each is taken for, on one page that a person can check, and in bounded time."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host import trees
from host.shape import check_shape
from hosts.expected import EXPECTED, KIB, MIB
from hosts.machines import MACHINES, NODE, SYS_CPU, base

from cpubench._native import kernels
from cpubench.errors import UsageError
from cpubench.host.describe import describe
from cpubench.host.facts import collect, divisor
from cpubench.host.layout import layout
from cpubench.host.topology import read_topology
from cpubench.measure.draft import host_of
from cpubench.measure.variants import Request, choose, power_of_two_below
from cpubench.recheck_host import check_cache
from cpubench.report.host import show_host

Json = dict[str, Any]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a machine, made once."""
    made: dict[str, Path] = {}
    builders = {builder.__name__: builder for builder in MACHINES}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = builders[name](tmp_path_factory.mktemp(name))
        return made[name]

    return of


def test_every_machine_has_an_answer() -> None:
    assert [builder.__name__ for builder in MACHINES] == list(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_machine_is_taken_for_what_it_is(built: Callable[[str], Path], name: str) -> None:
    root, wanted = built(name), EXPECTED[name]
    facts = collect(root)
    check_shape(facts)
    assert {key: facts[key] for key in wanted["facts"]} == wanted["facts"]
    for kind in ("reasons", "notes"):
        for key, text in wanted.get(kind, {}).items():
            assert text in facts[kind].get(key, ""), (kind, key)
    classes = {one["name"]: len(one["cpus"]) for one in facts["core_classes"]}
    assert classes == wanted["classes"]
    assert sum(classes.values()) == sum(map(len, facts["cores"]))
    if "instances" in wanted:
        rows = [(f"L{row['level']} {row['kind']}", row["size_bytes"], len(row["shared_cpus"]))
                for row in facts["cache_instances"]]  # fmt: skip
        assert rows == wanted["instances"]
        assert not any(row["unknown_sharing"] for row in facts["cache_instances"])
    if "nodes" in wanted:
        assert [(node["cpus"], node["memory_bytes"]) for node in facts["numa_nodes"]] == wanted["nodes"]
    if "frequency" in wanted:
        told = [(row["cpus"], row["hardware_max_khz"], row["policy_max_khz"]) for row in facts["frequency"]]
        assert told == wanted["frequency"]


@pytest.mark.parametrize("name", EXPECTED)
def test_copies_run_where_they_should_and_are_divided_by_the_right_thing(
    built: Callable[[str], Path], name: str
) -> None:
    root, wanted = built(name), EXPECTED[name]
    cores = read_topology(root).cores
    pairs = layout(cores, "other")
    counts = (len(layout(cores, "any")), len(layout(cores, "cpus")), len(layout(cores, "sibling")), len(pairs))
    assert counts == wanted["layout"]
    assert (pairs[0] if pairs else None) == wanted["pair"]
    assert divisor(collect(root), len(cores)) == wanted["divisor"]


@pytest.mark.parametrize(("cpus", "runs_on", "caches"), [
    (None, 7, (32 * KIB, 2 * MIB)), ([0, 1, 2, 3], 2, (48 * KIB, 1280 * KIB)), ([0, 4], 4, (32 * KIB, 2 * MIB)),
])  # fmt: skip
def test_sets_relative_to_a_cache_are_of_the_cpu_that_one_copy_runs_on(
    built: Callable[[str], Path], cpus: list[int] | None, runs_on: int, caches: tuple[int, int]
) -> None:
    root = built("hybrid_laptop")
    facts = collect(root)
    host = host_of(facts, read_topology(root, cpus).cores, root)
    assert host.cache_bytes == {"L1": caches[0], "L2": caches[1], "L3": 12 * MIB}
    assert facts["caches"][0]["size_bytes"] == 48 * KIB  # of the first CPU, as ever
    wanted = [f"mem_chase[set=L{level}/2]@1" for level in (1, 2)]
    variants, _ = choose(kernels(), host, Request("standard", keys=wanted))
    assert [v.groups for v in variants] == [[[runs_on]]] * 2
    assert [v.value for v in variants] == [power_of_two_below(size // 2) for size in caches]


def test_the_last_level_is_that_of_the_cpu_that_one_copy_runs_on(tmp_path: Path) -> None:
    """Two dies, one of them with more cache on top of it."""
    base(tmp_path, "x3d", "x86_64")
    trees.cpus(tmp_path, [(0, "large", (0,)), (0, "small", (1,))])
    trees.write(tmp_path, {f"{SYS_CPU}/cpu0/cache/index3/size": "98304K"})
    facts = collect(tmp_path)
    for cpus, size in ((None, 32 * MIB), ([0], 96 * MIB), ([1], 32 * MIB)):
        cores = read_topology(tmp_path, cpus).cores
        host = host_of(facts, cores, tmp_path)
        assert (host.llc_bytes, host.cache_bytes["L3"]) == (size, size)
        check_cache(facts, [cpu for core in cores for cpu in core.cpus], size)  # and the file is valid
    assert facts["llc_bytes"] == 96 * MIB
    with pytest.raises(UsageError, match=r"in the plan 1048576"):
        check_cache(facts, [0, 1], MIB)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_caches_of_a_machine_of_one_kind_are_those_of_its_facts(built: Callable[[str], Path], name: str) -> None:
    root = built(name)
    facts = collect(root)
    host = host_of(facts, read_topology(root).cores, root)
    if len(facts["core_classes"]) == 1:
        told = {f"L{cache['level']}": cache["size_bytes"] for cache in facts["caches"] or ()}
        assert (host.cache_bytes, host.llc_bytes) == ({"L1": None, "L2": None, "L3": None} | told, facts["llc_bytes"])


@pytest.mark.parametrize("name", EXPECTED)
def test_the_page_has_every_fact_and_every_reason_in_80_columns(built: Callable[[str], Path], name: str) -> None:
    document = describe(built(name))
    assert set(document) == {"stable", "volatile", "reasons", "notes"}
    for part in ("stable", "volatile"):
        for key, value in document[part].items():
            assert (value is None) == (key in document["reasons"]), key
    page = shown(document)
    assert max(map(len, page.splitlines())) <= 80
    flat = "".join(page.split())
    for text in (*document["reasons"].values(), *document["notes"].values()):
        assert "".join(text.split())[:60] in flat
    assert "".join(str(document["stable"]["cpu_model"]).split()) in flat


def shown(document: Json) -> str:
    out = io.StringIO()
    show_host(document, out)
    return out.getvalue()


def test_a_policy_below_the_hardware_is_a_cap_on_the_page(built: Callable[[str], Path]) -> None:
    text = " ".join(shown(describe(built("xeon_2s_smt"))).split())
    assert "hardware 0.8 GHz to 3.9 GHz, policy 0.8 GHz to 1.6 GHz (a cap)" in text


def test_a_hybrid_machine_says_that_its_classes_are_measured_apart(built: Callable[[str], Path]) -> None:
    text = " ".join(shown(describe(built("hybrid_laptop"))).split())
    assert "cpu_atom, capacity 614, L1 32 KiB, L2 2048 KiB: 4 CPUs, from 4 to 7" in text
    assert "give its CPUs by --cpus" in text


def test_nothing_foreign_reaches_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[31m[bold]x[/bold]\x07\u202e"
    root = base(tmp_path, evil, evil)
    files = ("proc/sys/kernel/osrelease", "proc/cmdline", "sys/class/dmi/id/sys_vendor", "run/systemd/container",
             f"{SYS_CPU}/vulnerabilities/meltdown", f"{NODE}/online", f"{SYS_CPU}/online", "proc/loadavg")  # fmt: skip
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"mitigations={evil}")
    (root / "proc/cpuinfo").write_text(f"model name: {evil}\n")
    page = shown(describe(root))
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(page)
    assert "[bold]x[/bold]" in page


def cpu_ns(root: Path) -> int:
    """The least CPU time of a few descriptions: an interruption only adds."""
    times = []
    for _ in range(3):
        start = time.process_time_ns()
        describe(root)
        times.append(time.process_time_ns() - start)
    return min(times)


def test_time_grows_no_faster_than_the_number_of_cpus(built: Callable[[str], Path]) -> None:
    """512 times the CPUs take about 50 times as long, most of a small machine being the same for all."""
    small, large = cpu_ns(built("firecracker")), cpu_ns(built("cpus_1024"))
    assert large < 256 * small


def test_the_document_of_1024_cpus_is_small(built: Callable[[str], Path]) -> None:
    assert len(json.dumps(collect(built("cpus_1024")))) < 100_000
