from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from host import trees
from hypothesis import given
from hypothesis import strategies as st

from cpubench.host.layout import Place, counts, first, layout, pairs
from cpubench.host.topology import Core, read_topology


def core(*cpus: int, package: int | None = 0, l3: int | None = 0) -> Core:
    return Core(cpus, package, 0, l3)


def test_one_copy_per_core_runs_on_its_first_cpu(tmp_path: Path) -> None:
    cores = read_topology(trees.xeon(tmp_path)).cores
    assert layout(cores, "any") == layout(cores, "same", 2) == [[n] for n in range(8)]


def test_one_copy_per_logical_cpu_core_by_core(tmp_path: Path) -> None:
    assert layout(read_topology(trees.hybrid(tmp_path)).cores, "cpus") == [[n] for n in range(8)]
    assert sorted(layout(read_topology(trees.xeon(tmp_path / "b")).cores, "cpus")) == [[n] for n in range(16)]


def test_sibling_pairs_lie_on_the_two_siblings_of_cores_that_have_them(tmp_path: Path) -> None:
    assert layout(read_topology(trees.hybrid(tmp_path)).cores, "sibling") == [[0, 1], [2, 3]]
    assert layout(read_topology(trees.epyc(tmp_path / "b")).cores, "sibling") == []
    assert layout([core(0, 1, 2, 3)], "sibling") == [[0, 1]]
    assert layout([core(0, 1, 2, 3), core(4, 5)], "sibling", 4) == [[0, 1, 2, 3]]


def test_a_core_left_over_in_an_l3_stays_idle(tmp_path: Path) -> None:
    pairs = layout(read_topology(trees.epyc(tmp_path)).cores, "other", 2)
    assert pairs == [[3 * n, 3 * n + 1] for n in range(8)]


def test_l3s_smaller_than_a_group_share_the_package(tmp_path: Path) -> None:
    assert layout(read_topology(trees.epyc(tmp_path)).cores, "any", 4) == [
        [4 * n + k for k in range(4)] for n in range(6)
    ]


def test_small_l3s_never_borrow_the_core_left_over_in_a_large_one() -> None:
    cores = [core(0, l3=0), core(1, l3=0), core(2, l3=0), core(3, l3=3)]
    assert layout(cores, "other") == [[0, 1]]
    assert layout([*cores, core(4, l3=4)], "other") == [[0, 1], [3, 4]]


def test_groups_never_mix_packages() -> None:
    assert layout([core(0, package=0), core(1, package=1, l3=1)], "other") == []
    assert layout([core(0, package=None), core(1, package=None, l3=1)], "other") == [[0, 1]]


def test_pairs_need_two_cores_and_other_is_a_pair_by_itself() -> None:
    assert layout([core(0, 1)], "other") == []
    assert layout([], "any") == []
    assert layout([core(0), core(1)], "other") == [[0, 1]]


def test_the_order_of_the_cores_given_does_not_matter(tmp_path: Path) -> None:
    cores = read_topology(trees.epyc(tmp_path)).cores
    assert layout(tuple(reversed(cores)), "other", 2) == layout(cores, "other", 2)


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one thread"):
        layout([core(0)], "any", 0)
    with pytest.raises(ValueError, match="one thread per logical CPU"):
        layout([core(0)], "cpus", 2)
    with pytest.raises(ValueError, match="unknown place 'near'"):
        layout([core(0)], "near")  # type: ignore[arg-type]


@st.composite
def machines(draw: st.DrawFn) -> list[Core]:
    """Cores with one to four siblings, packages and L3s of any size, L3s nested in packages, some of them unknown."""
    ids = iter(draw(st.permutations(range(160))))
    cores = []
    for package in draw(st.lists(st.sampled_from([None, 0, 1, 7]), max_size=3, unique=True)):
        for l3 in range(draw(st.integers(1, 4))):
            name = None if draw(st.booleans()) and l3 == 0 else 1000 * (package or 500) + l3
            for _ in range(draw(st.integers(0, 6))):
                cores.append(
                    Core(tuple(sorted(next(ids) for _ in range(draw(st.integers(1, 2))))), package, None, name)
                )
    return cores


@given(machines(), st.sampled_from(get_args(Place)), st.integers(1, 5))
def test_no_cpu_is_used_twice_and_no_core_is_shared_between_groups(
    cores: list[Core], place: Place, threads: int
) -> None:
    if place == "cpus":
        threads = 1
    groups = layout(cores, place, threads)
    by_cpu = {cpu: c for c in cores for cpu in c.cpus}
    used = [cpu for group in groups for cpu in group]
    assert len(used) == len(set(used))
    assert set(used) <= set(by_cpu)
    assert all(groups)
    if place == "cpus":
        assert len(used) == len(by_cpu)
        return
    owners = [{by_cpu[cpu].cpus for cpu in group} for group in groups]
    assert sum(map(len, owners)) == len(set().union(*owners)), "a core in two groups"
    assert all(group[0] == min(by_cpu[group[0]].cpus) for group in groups)
    if place == "other" or (place == "any" and threads > 1):
        _check_groups(cores, groups, max(2, threads), by_cpu)


def _check_groups(cores: list[Core], groups: list[list[int]], size: int, by_cpu: dict[int, Core]) -> None:
    home = [[(by_cpu[cpu].package, by_cpu[cpu].l3) for cpu in group] for group in groups]
    count = Counter((c.package, c.l3) for c in cores)
    large = {place: n for place, n in count.items() if n >= size}
    for group, places in zip(groups, home, strict=True):
        assert len({by_cpu[cpu].cpus for cpu in group}) == size, "each thread on a core of its own"
        assert len({package for package, _ in places}) == 1
        assert len(set(places)) == 1 or not set(places) & set(large), "an L3 that is large enough was left"
    whole = Counter(places[0] for places in home if len(set(places)) == 1)
    assert all(whole[place] == n // size for place, n in large.items()), "as many as fit, and no more"
    for package in {c.package for c in cores}:
        small = sum(n for place, n in count.items() if place[0] == package and n < size)
        mixed = sum(places[0][0] == package and places[0] not in large for places in home)
        assert mixed == small // size


def test_a_curve_has_powers_of_two_and_all_cores() -> None:
    assert [counts(n) for n in (0, 1, 2, 3, 6, 8)] == [[], [1], [1, 2], [1, 2, 3], [1, 2, 4, 6], [1, 2, 4, 8]]
    cores = [core(4, package=1), core(0, 1), core(2)]
    assert [first(cores, n) for n in (1, 2, 3)] == [[0], [0, 2], [0, 2, 4]]


def test_a_matrix_has_every_pair_where_these_are_few() -> None:
    cores = [core(0, 1), core(2, 3), core(4, package=1, l3=4)]
    assert pairs(cores, 64) == [[0, 1], [2, 3], [0, 2], [0, 4], [2, 4]]
    assert pairs([core(0)], 64) == pairs([], 64) == []


def test_a_matrix_of_many_cores_has_some_pairs_of_each_distance() -> None:
    cores = [core(i, 256 + i, package=i // 64, l3=i // 8 * 8) for i in range(128)]
    found = pairs(cores, 64)
    assert len(found) == 64
    assert len({tuple(pair) for pair in found}) == 64
    kinds = Counter(
        "sibling" if b >= 256 else "l3" if a // 8 == b // 8 else "package" if a // 64 == b // 64 else "far"
        for a, b in found
    )
    assert kinds == {"sibling": 16, "l3": 16, "package": 16, "far": 16}
    assert max(b for a, b in found if b < 256) > 100  # from all over the machine
