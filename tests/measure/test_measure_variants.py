"""Which variants are planned on which host, with what reason others are left out."""

import pytest
from pools import rig

from cpubench._native import kernels
from cpubench.errors import UsageError
from cpubench.host.topology import Core
from cpubench.measure.room import BLOCK_TASKS, tasks_needed
from cpubench.measure.variants import Host, Request, choose, fit, held_bytes, power_of_two_below
from cpubench.results.names import is_control

GIB = 1 << 30
CACHES = {"L1": 32 << 10, "L2": 1 << 20, "L3": 36 << 20}


def host(cores=8, threads=1, memory=64 * GIB, caches=CACHES):
    made = [Core(tuple(c + t * cores for t in range(threads)), 0, 0, 0) for c in range(cores)]
    return Host(made, dict(caches), memory)


def planned(machine, **request):
    variants, missing = choose(kernels(), machine, Request(**request))
    return {v.key: v for v in variants}, {m.variant: m.reason for m in missing}


def test_quick_measures_the_scored_variants_and_nothing_else():
    variants, missing = planned(host())
    assert missing == {}
    assert all(v.scored and v.copies in ("1", "cores") for v in variants.values())
    assert {f"{name}@{copies}" for copies in ("1", "cores") for name in (
        "spawn_fork_exec[rss=384M]", "file_create", "switch_pipe[place=same]", "switch_pipe[place=other]",
        "lock_mutex[cs=200ns]", "mem_chase[set=16K]", "mem_chase[set=256K]", "mem_chase[set=4M]", "mem_chase[set=32M]",
        "mem_chase[set=256M]")} <= set(variants)  # fmt: skip


def test_standard_adds_shown_values_with_one_copy_and_strict_the_dearest():
    quick, standard, strict = (planned(host(), profile=p)[0] for p in ("quick", "standard", "strict"))
    shown = set(standard) - set(quick)
    assert all(key.endswith("@1") and not standard[key].scored for key in shown)
    assert {"spawn_fork_exec[rss=8M]@1", "lock_mutex[cs=200ns,threads=4]@1", "mem_chase[set=L2/2]@1"} <= shown
    dearest = {f"spawn_{name}[rss=1G]@1" for name in ("fork_exit", "fork_exec", "vfork_exec")}
    assert set(strict) - set(standard) == dearest


def test_cpus_copies_exist_where_smt_is_on_and_only_for_plain_kernels():
    variants, _ = planned(host(threads=2), profile="standard")
    by_cpu = {key for key, v in variants.items() if v.copies == "cpus"}
    assert "file_create@cpus" in by_cpu
    assert all("lock" not in key and "switch" not in key for key in by_cpu)
    assert variants["file_create@cpus"].divisor == 8
    assert len(variants["file_create@cpus"].groups) == 16
    assert not variants["file_create@cpus"].scored
    assert not [v for v in planned(host(), profile="standard")[0].values() if v.copies == "cpus"]


def test_divisors_are_the_cores_that_the_copies_occupy():
    variants, _ = planned(host(cores=5, threads=2), profile="standard")
    expected = {
        "file_create@1": (1, 1), "file_create@cores": (5, 5), "switch_pipe[place=same]@cores": (5, 5),
        "switch_pipe[place=other]@cores": (2, 4), "switch_pipe[place=sibling]@1": (1, 1),
        "lock_mutex[cs=200ns]@cores": (2, 4), "lock_mutex[cs=200ns,threads=4]@1": (1, 4),
    }  # fmt: skip
    assert {key: (len(variants[key].groups), variants[key].divisor) for key in expected} == expected


def test_one_copy_runs_where_the_last_of_all_copies_does():
    variants, _ = planned(host())
    for key, variant in variants.items():
        if variant.copies == "1":
            assert variant.groups == variants[key[:-1] + "cores"].groups[-1:]


def test_one_core_leaves_pairs_and_groups_out_with_a_reason():
    variants, missing = planned(host(cores=1), profile="standard")
    assert "switch_pipe[place=same]@cores" in variants
    assert missing["switch_pipe[place=other]@1"] == "needs 2 cores of one package, 1 allowed"
    assert missing["lock_mutex[cs=200ns,threads=4]@1"] == "needs 4 cores of one package, 1 allowed"
    assert missing["switch_pipe[place=sibling]@1"] == "no core has two allowed hardware threads"


def test_sets_relative_to_a_cache_are_powers_of_two_or_a_reason():
    variants, _ = planned(host(), profile="standard")
    assert variants["mem_chase[set=L3/2]@1"].value == 16 << 20  # half of 36 MiB, rounded down
    _, missing = planned(host(caches={"L1": None, "L2": None, "L3": None}), profile="standard")
    assert missing["mem_chase[set=L3/2]@1"] == "the size of L3 is not known on this host"


def test_the_largest_variants_are_left_out_first_where_memory_is_short():
    full, _ = planned(host(cores=2))
    variants, missing = planned(host(cores=2, memory=1 * GIB))
    assert held_bytes(list(full.values())) > GIB * 2 // 3 >= held_bytes(list(variants.values()))
    assert "spawn_fork_exec[rss=384M]@cores" in missing
    assert all("two thirds of the memory, 682 MiB" in reason for reason in missing.values())
    assert "file_create@cores" in variants


def test_what_cannot_fit_by_itself_takes_nothing_else_with_it():
    """Of a container with 256 MiB every row that fits is measured: leaving out small ones would not help large ones."""
    kept, missing = planned(host(cores=2, memory=GIB // 4), profile="standard")
    assert "mem_chase[set=256M]@1" in missing
    assert {"spawn_shell@1", "mem_chase[set=16K]@cores"} <= set(kept)
    assert not [reason for reason in missing.values() if reason.startswith("needs 0 MiB")]


def test_shown_variants_make_room_for_scored_ones():
    """At 4 GiB and two cores `quick` keeps every scored row, so `standard` must keep them too."""
    scored, missing = planned(host(cores=2, memory=4 * GIB))
    assert missing == {}
    kept, _ = planned(host(cores=2, memory=4 * GIB), profile="standard")
    assert set(scored) <= set(kept)


def test_what_copies_share_is_counted_once():
    variants = [v for v in planned(host(cores=2))[0].values() if v.kernel == "mem_chase" and v.params == "set=256M"]
    assert [v.copies for v in variants] == ["1", "cores"]
    assert held_bytes(variants) == 2 * (256 << 20)
    assert fit(variants, None) == (variants, [])


def test_parents_of_one_size_are_counted_once_and_the_children_of_a_reap_besides():
    spawn = [v for v in planned(host(cores=2))[0].values() if v.family == "spawn"]
    children, environment = 2 * (64 << 20), 8 << 10
    assert held_bytes(spawn) == 2 * ((384 << 20) + children + environment)


def whole(sizes, page):
    return sum(-(-size // page) * page for size in sizes)


def test_files_hold_whole_pages_whatever_their_size(tmp_path):
    """With pages of 64 KiB a tree of 400 files takes four times as much: what a plan counts has to hold it."""
    made = [("file_open_read", ""), ("file_rewrite", ""), ("file_tree_copy", "")]
    with rig(made, tmp_path) as r:
        r.prepare()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        sizes = {name: [path.stat().st_size for path in files if f"/{name}-0." in str(path)] for name, _ in made}
    assert [len(sizes[name]) for name, _ in made] == [400, 64, 400]
    tree = sizes["file_tree_copy"]
    for page in (4 << 10, 16 << 10, 64 << 10):
        listed = {k["name"]: k["params"][0]["held_bytes"] for k in kernels(page_bytes=page)}
        taken = {"file_open_read": whole(tree, page), "file_rewrite": whole(sizes["file_rewrite"], page),
                 "file_tree_copy": 5 * whole(tree, page), "file_tree_delete": 4 * whole(tree, page)}  # fmt: skip
        assert all(taken[name] <= listed[name] <= 2 * taken[name] for name in taken), page
        if page == 4 << 10:
            assert {name: listed[name] >> 20 for name in taken} == {
                "file_open_read": 8, "file_rewrite": 2, "file_tree_copy": 40, "file_tree_delete": 32,
            }  # fmt: skip
            of_4k = listed
        larger = {name for name in listed if listed[name] != of_4k[name]} - {"mem_tlb"}
        assert larger in (set(), {place + name.removeprefix("file") for place in ("file", "storage") for name in taken})


def test_a_group_of_one_needs_the_thread_that_sleeps_beside_it():
    needed = [tasks_needed(list(planned(host(), keys=[f"lock_all[threads={n}]@1"])[0].values())) for n in (1, 2, 4)]
    assert needed == [BLOCK_TASKS + 2, BLOCK_TASKS + 2, BLOCK_TASKS + 4]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"families": ["spwan"]}, "unknown family 'spwan'; known: file, lock, memory, spawn, storage, switch"),
        ({"families": []}, "no family is named"),
        ({"copies": ["2"]}, "unknown copies '2'; known: 1, cores, cpus"),
        ({"keys": ["none@1"]}, "unknown variant 'none@1'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(request_, text):
    with pytest.raises(UsageError, match=r"unknown|no ") as caught:
        planned(host(), **request_)
    assert text in str(caught.value)


def test_every_plan_has_the_control_kernel_under_two_labels_last_and_never_scored():
    one, again = "test_work[steps=1000]@1", "test_work[steps=1000,again]@1"
    for request in (Request("quick"), Request("standard"), Request("quick", ["lock"], ["cores"])):
        variants, missing = choose(kernels(hidden=True), host(), request)
        plain, plain_missing = choose(kernels(), host(), request)
        assert (variants[:-2], missing) == (plain, plain_missing)
        assert [v.key for v in variants[-2:]] == [one, again]
        assert all(is_control(v.key) and not v.scored and v.family == "control" for v in variants[-2:])
        assert not any(is_control(v.key) for v in plain)
    where = {tuple(v.groups[0]) for v in variants[-2:]}
    assert where == {tuple(v.groups[0]) for v in planned(host())[0].values() if v.key == "mem_chase[set=16K]@1"}


def test_the_control_kernel_is_no_reason_to_measure_and_is_not_left_out_for_memory():
    nothing, missing = choose(kernels(hidden=True), host(cores=1), Request("quick", ["lock"]))
    assert nothing == []
    assert missing
    short, _ = choose(kernels(hidden=True), host(cores=2, memory=1 * GIB), Request("standard"))
    assert [is_control(v.key) for v in short[-2:]] == [True, True]


def test_hidden_kernels_are_measured_where_they_are_asked_for_by_name():
    keys = ["test_work[steps=1000]@cores", "test_work[steps=1020]@1"]
    variants, missing = choose(kernels(hidden=True), host(), Request(keys=keys))
    assert ({v.key for v in variants}, missing) == (set(keys), [])
    with pytest.raises(UsageError, match="unknown family 'control'; known: file, lock, memory, spawn, storage, switch"):
        choose(kernels(hidden=True), host(), Request(families=["control"]))


def test_single_variants_can_be_asked_for():
    variants, _ = planned(host(), keys=["mem_chase[set=1M]@1", "file_create@cores"])
    assert set(variants) == {"mem_chase[set=1M]@1", "file_create@cores"}


@pytest.mark.parametrize(("value", "below"), [(1, 1), (2, 2), (3, 2), (1023, 512), (1 << 30, 1 << 30)])
def test_power_of_two_below(value, below):
    assert power_of_two_below(value) == below
