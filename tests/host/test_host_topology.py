from __future__ import annotations

from pathlib import Path

from host import trees

from cpubench.host.topology import Core, allowed_cpus, other_cpus, raw_cpu_lists, read_topology


def cpus_of(cores: tuple[Core, ...]) -> list[tuple[int, ...]]:
    return [core.cpus for core in cores]


def test_a_two_socket_xeon_is_eight_cores_of_two_siblings_in_two_packages(tmp_path: Path) -> None:
    topology = read_topology(trees.xeon(tmp_path))
    assert cpus_of(topology.cores) == [(n, n + 8) for n in range(8)]
    assert [core.package for core in topology.cores] == [0] * 4 + [1] * 4
    assert [core.l3 for core in topology.cores] == [0] * 4 + [4] * 4
    assert {core.die for core in topology.cores} == {0}
    assert topology.smt.value is True
    assert topology.packages.value == 2
    assert topology.note is None


def test_an_epyc_with_eight_l3s_names_each_by_its_lowest_cpu(tmp_path: Path) -> None:
    topology = read_topology(trees.epyc(tmp_path))
    assert [core.l3 for core in topology.cores] == [n // 3 * 3 for n in range(24)]
    assert topology.smt.value is False


def test_cores_come_by_package_then_l3_then_lowest_cpu(tmp_path: Path) -> None:
    # Sockets that alternate, and in each socket L3s that alternate.
    trees.cpus(tmp_path, [(n % 2, n // 2 % 2, (n,)) for n in range(8)])
    assert cpus_of(read_topology(tmp_path).cores) == [(0,), (4,), (2,), (6,), (1,), (5,), (3,), (7,)]


def test_offline_cpus_in_the_mask_are_not_allowed_and_ids_may_have_holes(tmp_path: Path) -> None:
    trees.holes(tmp_path)
    assert allowed_cpus(tmp_path).value == [0, 2, 4, 6]
    assert allowed_cpus(tmp_path).reason is None
    assert cpus_of(read_topology(tmp_path).cores) == [(0,), (2,), (4,), (6,)]


def test_big_and_small_cores_keep_their_own_number_of_siblings(tmp_path: Path) -> None:
    topology = read_topology(trees.hybrid(tmp_path))
    assert cpus_of(topology.cores) == [(0, 1), (2, 3), (4,), (5,), (6,), (7,)]
    assert topology.smt.value is True


def test_a_cpuset_without_cpu_0_keeps_host_ids_and_hides_siblings(tmp_path: Path) -> None:
    topology = read_topology(trees.xeon(tmp_path, allowed="1-3,10,12"))
    assert cpus_of(topology.cores) == [(1,), (2, 10), (3,), (12,)]
    assert [core.l3 for core in topology.cores] == [0, 0, 0, 4]
    only = read_topology(trees.xeon(tmp_path / "b", allowed="1-7"))
    assert only.smt.value is False


def test_one_core_left_of_each_real_socket_is_still_two_packages(tmp_path: Path) -> None:
    topology = read_topology(trees.xeon(tmp_path, allowed="0,4"))
    assert [core.package for core in topology.cores] == [0, 1]
    assert topology.packages.value == 2


def test_a_package_for_each_vcpu_is_not_believed(tmp_path: Path) -> None:
    topology = read_topology(trees.cpus(tmp_path, [(n, n, (n,)) for n in range(4)]))
    assert [core.package for core in topology.cores] == [None] * 4
    assert topology.packages.value is None
    assert "package of its own" in (topology.packages.reason or "")


def test_package_minus_one_is_unknown(tmp_path: Path) -> None:
    topology = read_topology(trees.cpus(tmp_path, [(-1, "L3", (n,)) for n in range(4)]))
    assert {core.package for core in topology.cores} == {None}
    assert topology.packages.value is None
    assert "-1" in (topology.packages.reason or "")


def test_old_kernels_names_of_the_sibling_lists_are_read(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, 0, (0, 2)), (0, 0, (1, 3))], old_names=True)
    assert cpus_of(read_topology(tmp_path).cores) == [(0, 2), (1, 3)]


def test_without_topology_each_cpu_is_a_core_and_smt_is_unknown(tmp_path: Path) -> None:
    topology = read_topology(trees.cpus(tmp_path, [(0, 0, (0, 1))], topology=False, caches=False))
    assert cpus_of(topology.cores) == [(0,), (1,)]
    assert topology.smt.value is None
    assert topology.note == topology.smt.reason == "no sibling list for CPUs 0-1: each counts as a core"
    assert topology.cores[0] == Core((0,), None, None, None)


def test_sibling_lists_that_contradict_each_other_put_no_cpu_into_two_cores(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, 0, (n,)) for n in range(4)])
    for cpu, claim in enumerate(("0-1", "1-2", "2-3", "0")):  # the last one does not even name itself
        trees.write(tmp_path, {f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": claim})
    assert cpus_of(read_topology(tmp_path).cores) == [(0, 1), (2, 3)]
    trees.write(tmp_path, {"sys/devices/system/cpu/cpu2/topology/core_cpus_list": "junk"})
    assert cpus_of(read_topology(tmp_path).cores) == [(0, 1), (2,), (3,)]


def test_a_list_without_the_cpu_itself_is_not_believed(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, "L3", (0,)), (0, "other L3", (4,))])
    trees.cache(tmp_path, 0, 3, 3, "Unified", "32M", [2, 4])
    trees.write(tmp_path, {"sys/devices/system/cpu/cpu0/topology/core_cpus_list": "4"})
    topology = read_topology(tmp_path)
    assert cpus_of(topology.cores) == [(4,), (0,)], "a core without a known L3 comes last"
    assert [core.l3 for core in topology.cores] == [4, None]
    assert "no sibling list for CPUs 0:" in (topology.note or "")


def test_in_lxc_the_affinity_mask_wins_over_a_made_up_online_list(tmp_path: Path) -> None:
    """lxcfs shows online 0..n-1 while the mask has host ids (lxcfs#731)."""
    trees.cpus(tmp_path, [(0, 0, (n,)) for n in range(32)], allowed="24", online="0")
    found = allowed_cpus(tmp_path)
    assert found.value == [24]
    assert "affinity mask is believed" in (allowed_cpus(_without(tmp_path, "offline")).reason or "")
    trees.cpus(tmp_path / "b", [(0, 0, (n,)) for n in range(32)], allowed="1,9,24,30", online="0-3")
    partly = allowed_cpus(tmp_path / "b")
    assert partly.value == [1, 9, 24, 30], "crossing with the made-up list would keep CPU 1 alone"
    assert "4-31 are present, and neither online nor offline" in (partly.reason or "")


def _without(root: Path, name: str) -> Path:
    (root / "sys/devices/system/cpu" / name).unlink()
    return root


def test_online_cpus_beside_the_allowed_ones_are_others(tmp_path: Path) -> None:
    assert other_cpus([0, 1], trees.xeon(tmp_path, offline="15")).value == list(range(2, 15))
    (tmp_path / "sys/devices/system/cpu/offline").unlink()
    assert other_cpus([0, 1], tmp_path).value == list(range(2, 16))
    (tmp_path / "sys/devices/system/cpu/online").unlink()
    assert other_cpus([0, 1], tmp_path).reason == "/sys/devices/system/cpu/online: no such file"


def test_a_mask_over_every_possible_cpu_is_cut_to_the_machine(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, 0, (0,)), (0, 0, (1,))], allowed="0-127")
    assert allowed_cpus(tmp_path).value == [0, 1]
    assert raw_cpu_lists(tmp_path) == {
        "online": "0-1", "offline": "", "present": "0-1", "possible": "0-1", "isolated": "", "cpus_allowed": "0-127",
    }  # fmt: skip


def test_without_sys_the_mask_alone_counts_and_without_proc_the_online_list(tmp_path: Path) -> None:
    trees.write(tmp_path, {"proc/self/status": "Cpus_allowed_list:\t3,5"})
    assert allowed_cpus(tmp_path).value == [3, 5]
    assert cpus_of(read_topology(tmp_path).cores) == [(3,), (5,)]
    trees.write(tmp_path / "b", {"sys/devices/system/cpu/online": "0-1"})
    assert allowed_cpus(tmp_path / "b").value == [0, 1]
    assert "taken instead" in (allowed_cpus(tmp_path / "b").reason or "")


def test_nothing_at_all_is_no_cores_with_reasons(tmp_path: Path) -> None:
    found = allowed_cpus(tmp_path)
    assert found.value is None
    assert "/proc/self/status: no such file" in (found.reason or "")
    topology = read_topology(tmp_path)
    assert topology.cores == ()
    assert topology.smt.value is None
    assert topology.smt.reason
    assert raw_cpu_lists(tmp_path)["online"] is None


def test_a_spoiled_mask_is_a_reason_and_not_every_cpu_in_silence(tmp_path: Path) -> None:
    trees.cpus(tmp_path, [(0, 0, (0,))])
    for mask in ("3-1", ""):
        trees.write(tmp_path, {"proc/self/status": f"Cpus_allowed_list:\t{mask}"})
        assert (allowed_cpus(tmp_path).reason or "").startswith("/proc/self/status: ")


def test_more_than_1024_cpus(tmp_path: Path) -> None:
    """No mask of a fixed width is left over anywhere: 1100 CPUs, the highest id over 2000."""
    mask = "0-549,1500-2049"
    lists = {f"{trees.SYS_CPU}/{name}": mask for name in ("online", "present")}
    lists |= {f"{trees.SYS_CPU}/cpu{n}/topology/core_cpus_list": f"{n},{n + 1500}" for n in range(550)}
    trees.write(tmp_path, {"proc/self/status": f"Cpus_allowed_list:\t{mask}", **lists})
    topology = read_topology(tmp_path)
    assert len(topology.cpus) == 1100
    assert cpus_of(topology.cores) == [(n, n + 1500) for n in range(550)]


def test_a_list_that_was_asked_for_wins_over_the_mask(tmp_path: Path) -> None:
    assert cpus_of(read_topology(trees.xeon(tmp_path), [9, 2]).cores) == [(2,), (9,)]
