"""Kinds of cores: what tells them apart, what does not, and what is not told of all CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from host import trees
from host.trees import SYS_CPU

from cpubench.host.caches import caches_by_cpu, instances
from cpubench.host.classes import read_classes
from cpubench.host.fact import Fact

FOUR: list[trees.CoreSpec] = [(0, "L3", (n,)) for n in range(4)]


def classes(root: Path, caches: bool = False) -> tuple[dict[str, tuple[int, ...]] | None, str]:
    """The CPUs of each class by its name, and the doubt."""
    trees.cpus(root, FOUR, caches=caches)
    found = read_classes(range(4), caches_by_cpu(range(4), root), root)
    return (None if found.value is None else {one.name: one.cpus for one in found.value}), found.reason or ""


def capacities(root: Path, *values: int | str) -> None:
    trees.write(root, {f"{SYS_CPU}/cpu{n}/cpu_capacity": str(value) for n, value in enumerate(values)})


def test_where_nothing_tells_the_kinds_are_unknown(tmp_path: Path) -> None:
    found, reason = classes(tmp_path)
    assert found is None
    assert "no cpu_capacity, no cache sizes of all CPUs" in reason


def test_equal_caches_are_one_kind(tmp_path: Path) -> None:
    assert classes(tmp_path, caches=True) == ({"uniform": (0, 1, 2, 3)}, "")


def test_event_sources_of_three_kinds_are_three_classes(tmp_path: Path) -> None:
    trees.write(tmp_path, {"sys/devices/cpu_core/cpus": "0-1", "sys/devices/cpu_atom/cpus": "2",
                           "sys/devices/cpu_lowpower/cpus": "3"})  # fmt: skip
    assert classes(tmp_path)[0] == {"cpu_core": (0, 1), "cpu_atom": (2,), "cpu_lowpower": (3,)}


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ((1024, 1024, 446, 446), {"capacity 1024": (0, 1), "capacity 446": (2, 3)}),
        ((446, 1024, 446, 1024), {"capacity 446": (0, 2), "capacity 1024": (1, 3)}),
        ((1024, 1009, 990, 960), {"uniform": (0, 1, 2, 3)}),
        ((1024, 930, 800, 790), {"capacity 1024": (0, 1), "capacity 800": (2, 3)}),
    ],
)
def test_capacities_far_apart_are_classes_and_favoured_cores_are_not(
    tmp_path: Path, values: tuple[int, ...], wanted: dict[str, tuple[int, ...]]
) -> None:
    capacities(tmp_path, *values)
    assert classes(tmp_path)[0] == wanted


@pytest.mark.parametrize("odd", ["", "x", "0", "-5", "9" * 19])
def test_what_tells_of_some_cpus_only_is_named_and_not_used(tmp_path: Path, odd: str) -> None:
    capacities(tmp_path, 1024, 446, odd, 446)
    found, reason = classes(tmp_path, caches=True)
    assert found == {"uniform": (0, 1, 2, 3)}
    assert "cpu_capacity: nothing of CPUs 2, so it is not used" in reason


def test_a_larger_clock_alone_is_no_class(tmp_path: Path) -> None:
    """Tools that took the CPUs of the highest clock ran on two cores of sixteen (gamemode#498)."""
    trees.write(tmp_path, {f"{SYS_CPU}/cpu{n}/cpufreq/cpuinfo_max_freq": str(4_700_000 + n) for n in range(4)})
    assert classes(tmp_path, caches=True)[0] == {"uniform": (0, 1, 2, 3)}


def test_an_l3_of_another_size_is_no_class_but_an_l2_is(tmp_path: Path) -> None:
    trees.cpus(tmp_path, FOUR)
    trees.write(tmp_path, {f"{SYS_CPU}/cpu3/cache/index3/size": "96M"})
    found = read_classes(range(4), caches_by_cpu(range(4), tmp_path), tmp_path)
    assert [one.name for one in found.value or ()] == ["uniform"]
    trees.write(tmp_path, {f"{SYS_CPU}/cpu3/cache/index2/size": "2048K"})
    found = read_classes(range(4), caches_by_cpu(range(4), tmp_path), tmp_path)
    assert {one.name: one.cpus for one in found.value or ()} == {
        "L1 32 KiB, L2 1024 KiB": (0, 1, 2), "L1 32 KiB, L2 2048 KiB": (3,),
    }  # fmt: skip


def test_unknown_sharing_is_counted_and_hides_no_instance(tmp_path: Path) -> None:
    trees.cpus(tmp_path, FOUR)
    trees.write(tmp_path, {f"{SYS_CPU}/cpu1/cache/index2/shared_cpu_list": "x"})
    found = instances(caches_by_cpu(range(4), tmp_path))
    assert [(row["level"], row["shared_cpus"], row["unknown_sharing"]) for row in found.value or ()] == [
        (1, ["0", "1", "2", "3"], 0), (2, ["0", "2", "3"], 1), (3, ["0-3"], 0),
    ]  # fmt: skip
    assert instances({}) == Fact(None, "no CPU is known")


def test_siblings_are_read_once_and_counted_once(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, "L3", (0, 2)), (0, "L3", (1, 3))])
    by_cpu = caches_by_cpu(range(4), tmp_path)
    assert by_cpu[0] is by_cpu[2]
    assert [row["shared_cpus"] for row in instances(by_cpu).value or ()] == [["0,2", "1,3"], ["0,2", "1,3"], ["0-3"]]
