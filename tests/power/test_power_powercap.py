"""powercap trees as they were found in the field."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from host import trees
from power import meter_trees as made

from cpubench.errors import UsageError
from cpubench.power import powercap
from cpubench.power.backend import sockets_of
from cpubench.power.channel import LATER, log_of
from cpubench.power.energy import energy
from cpubench.power.gauge import found
from cpubench.power.meters import NAMES, open_meter
from cpubench.power.overlap import pick, totals
from cpubench.power.source import FileMeter


def codes(found):
    return [problem.code for problem in found.problems]


def measured(root: Path, steps: dict[str, float], scope: str = "package"):
    """The energy of a second in which zones, which begin at 1 uJ, took so many joules."""
    clock = made.Clock()
    meter = open_meter(f"powercap:{scope}", root)
    assert isinstance(meter, FileMeter)
    meter._clock = clock
    readings = meter.read()
    clock.pass_s(1)
    for id_, joules in steps.items():
        made.joule(root, id_, joules)
    readings += meter.read()
    meter.close()
    return energy(log_of(meter, readings))


def test_a_closed_counter_is_a_problem_with_the_udev_line(tmp_path):
    made.zone(tmp_path, "0", "package-0")
    found = powercap.find(tmp_path, made.Failing({"energy_uj": errno.EACCES}))  # C1
    assert (found.channels, codes(found)) == ([], ["permission"])
    assert found.problems[0].path == "/sys/class/powercap/intel-rapl:0/energy_uj"
    assert 'SUBSYSTEM=="powercap", ACTION=="add", RUN+=' in found.problems[0].hint


def test_one_closed_zone_neither_fails_the_others_nor_makes_a_total_of_them(tmp_path):
    for n in (0, 1):
        made.zone(tmp_path, str(n), f"package-{n}")
    found = powercap.find(tmp_path, made.Failing({"rapl:1/energy_uj": errno.EACCES}))  # C2
    assert [c.socket for c in found.channels] == [0]
    assert codes(found) == ["permission"]
    assert pick(found.channels, "package", sockets_of(tmp_path, found)).reason.startswith("partial_sockets")


def test_a_zone_that_is_listed_and_not_there_is_hidden_by_a_container(tmp_path):
    (tmp_path / made.P).mkdir(parents=True)
    (tmp_path / made.P / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    found = powercap.find(tmp_path)  # C5
    assert codes(found) == ["masked"]
    assert "docker run -v" in found.problems[0].hint


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EINVAL, "read_error"), (errno.ENODATA, "no_data"), (errno.ENODEV, "vanished"), (errno.EIO, "read_error")],
)
def test_every_errno_has_its_word(tmp_path, number, code):
    made.zone(tmp_path, "0", "package-0")
    found = powercap.find(tmp_path, made.Failing({"energy_uj": number}))
    assert codes(found) == ["masked" if code == "vanished" else code]


def test_a_folder_and_text_in_place_of_a_number_are_errors(tmp_path):
    made.zone(tmp_path, "0", "package-0", None)
    (tmp_path / made.P / "intel-rapl:0/energy_uj").mkdir()
    made.zone(tmp_path, "1", "package-1", energy_uj="12 apples\x1b[2J")
    made.zone(tmp_path, "2", "package-2", energy_uj="")
    assert codes(powercap.find(tmp_path)) == ["read_error"] * 3


@pytest.mark.parametrize("folder", ["sys/class/powercap", "sys/class", "sys/class/powercap/intel-rapl"])
def test_nothing_is_no_interface_and_never_0(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    assert codes(powercap.find(tmp_path)) == ["no_interface"]  # C23
    with pytest.raises(UsageError, match="no_interface"):
        open_meter("powercap", tmp_path)


def test_dies_are_parsed_and_added(tmp_path):
    trees.x86_cpuinfo(tmp_path)
    made.zone(tmp_path, "0", "package-0-die-0")
    made.zone(tmp_path, "1", "package-0-die-1")
    made.packages(tmp_path, 0)
    told = measured(tmp_path, {"0": 90, "1": 70})  # C25
    assert told.joules == pytest.approx(160, abs=1e-4)
    assert told.by_socket == {0: pytest.approx(160, abs=1e-4)}


def test_dies_of_amd_that_mirror_one_counter_are_one(tmp_path):
    trees.write(tmp_path, {"proc/cpuinfo": made.AMD})
    for n in range(4):
        made.zone(tmp_path, str(n), f"package-{n // 2}-die-{n % 2}", range_=made.AMD_RANGE)
    assert all(c.mirrors and c.provenance == "modelled" for c in powercap.find(tmp_path).channels)
    told = measured(tmp_path, {"0": 90, "1": 90, "2": 60, "3": 60})
    assert told.joules == pytest.approx(150, abs=1e-4)
    assert "deduped_die" in told.flags


@pytest.mark.parametrize("file", ["energy_uj", "name"])
def test_a_die_that_cannot_be_read_leaves_no_total(tmp_path, file):
    for n in range(2):
        made.zone(made.packages(tmp_path, 0), str(n), f"package-0-die-{n}")
    open_meter("powercap", tmp_path).close()
    (tmp_path / made.P / "intel-rapl:1" / file).unlink()
    (tmp_path / made.P / "intel-rapl:1" / file).mkdir()
    lost = "of package 0 die 1" if file == "energy_uj" else "intel-rapl:1"
    with pytest.raises(UsageError, match=f"partial: package {lost} is listed and cannot be read; read_error: "):
        open_meter("powercap", tmp_path)


@pytest.mark.parametrize("order", [("package-0", "psys"), ("psys", "package-0")])
def test_the_platform_is_a_scope_of_its_own_wherever_it_stands(tmp_path, order):
    for n, name in enumerate(order):
        made.zone(tmp_path, str(n), name)
    steps = {str(n): 140.0 if name == "psys" else 100.0 for n, name in enumerate(order)}
    assert measured(tmp_path, steps).joules == pytest.approx(100, abs=1e-4)  # C26, C28
    for n in (0, 1):
        made.joule(tmp_path, str(n), 1e-6)
    assert measured(tmp_path, steps, "psys").joules == pytest.approx(140, abs=1e-4)


def test_sockets_are_known_by_name_not_by_index(tmp_path):
    for n, name in enumerate(["package-0", "package-1", "psys"]):  # C29
        made.zone(tmp_path, str(n), name)
    found = powercap.find(tmp_path)
    assert {c.socket for c in found.channels if c.scope == "package"} == {0, 1}
    assert totals(found.channels) == ["package", "psys"]


def test_indexes_are_hexadecimal(tmp_path):
    for n in range(12):
        made.zone(tmp_path, f"{n:x}", f"package-{n}")
    made.zone(tmp_path, "10", "package-16")
    found = powercap.find(tmp_path)  # C31
    assert sorted(c.socket for c in found.channels) == [*range(12), 16]
    assert measured(tmp_path, {f"{n:x}": 10.0 for n in (*range(12), 16)}).joules == pytest.approx(130, abs=1e-3)


def test_a_package_of_any_number_is_taken(tmp_path):
    made.zone(tmp_path, "0", "package-15")
    made.packages(tmp_path, 15)
    told = measured(tmp_path, {"0": 50})  # C32
    assert told.by_socket == {15: pytest.approx(50, abs=1e-4)}


def test_a_socket_without_a_zone_leaves_no_total(tmp_path):
    made.zone(tmp_path, "0", "package-0")
    made.packages(tmp_path, 0, 1)
    with pytest.raises(UsageError, match="partial_sockets: package of 0 is told, of packages 0-1"):  # C35
        open_meter("powercap", tmp_path)


@pytest.mark.parametrize("nested", [False, True])
def test_subzones_belong_to_their_package_flat_or_nested(tmp_path, nested):
    made.zone(tmp_path, "0", "package-0")
    for n, name in enumerate(["core", "dram"]):
        made.zone(tmp_path, f"0/intel-rapl:0:{n}" if nested else f"0:{n}", name, range_=made.DRAM_RANGE)
    found = powercap.find(tmp_path)
    assert {(c.id, c.scope, c.socket, c.range_raw) for c in found.channels} == {
        ("powercap:package-0", "package", 0, made.INTEL_RANGE),
        ("powercap:package-0/core", "core", 0, made.DRAM_RANGE),
        ("powercap:package-0/dram", "dram", 0, made.DRAM_RANGE),
    }
    dram = "0/intel-rapl:0:1" if nested else "0:1"
    assert measured(tmp_path, {"0": 100, dram: 20}, "package+dram").joules == pytest.approx(120, abs=1e-4)  # C37


def test_memory_on_one_socket_only_leaves_the_packages(tmp_path):
    for n in (0, 1):
        made.zone(tmp_path, str(n), f"package-{n}")
    made.zone(tmp_path, "1:0", "dram", range_=made.DRAM_RANGE)
    assert measured(tmp_path, {"0": 10, "1": 20}).joules == pytest.approx(30, abs=1e-4)  # C38
    with pytest.raises(UsageError, match="asymmetric_domains: dram on 1, package on 0-1"):
        open_meter("powercap:package+dram", tmp_path)


def test_mmio_and_a_second_driver_show_the_same_counter_again(tmp_path):
    made.zone(tmp_path, "0", "package-0")
    made.zone(tmp_path, "1", "package-0")  # TPMI beside MSR
    folder = tmp_path / made.P / "intel-rapl-mmio:0"
    folder.mkdir()
    for name in ("name", "energy_uj", "max_energy_range_uj"):
        (folder / name).write_text((tmp_path / made.P / "intel-rapl:0" / name).read_text())
    found = powercap.find(tmp_path)
    picked = pick(found.channels, "package", None)
    assert [c.id for c in picked.channels] == ["powercap:package-0"]
    assert len({c.id for c in found.channels}) == 3
    assert set(picked.left_out.values()) == {"reads the same as powercap:package-0"}


def test_without_a_range_a_step_back_is_rejected(tmp_path):
    made.zone(tmp_path, "0", "package-0", 262143000000, None)
    told = measured(tmp_path, {"0": 1})
    assert (told.joules, told.code) == (None, "negative_step")


@pytest.mark.parametrize(("told", "most"), [("3409250000", 1500.0), ("350000000", 1500.0), ("1000000000", 2000.0),
                                            ("0", 1500.0), ("nonsense", 1500.0)])  # fmt: skip
def test_the_firmwares_maximum_is_a_hint(tmp_path, told, most):
    made.zone(tmp_path, "0", "package-0", constraint_0_max_power_uw=told)  # C61
    assert powercap.find(tmp_path).channels[0].max_w == most


def test_zones_of_a_guest_are_estimates_and_not_taken(tmp_path):
    trees.x86_cpuinfo(tmp_path, hypervisor=True)
    made.zone(tmp_path, "0", "package-0")
    assert codes(powercap.find(tmp_path)) == ["estimated"]
    with pytest.raises(UsageError, match="estimated"):
        open_meter("powercap", tmp_path)
    open_meter("powercap", tmp_path, allow_estimated=True).close()


@pytest.mark.parametrize(("id_", "name"), [("0", "psys"), ("0:0", "dram")])
def test_memory_alone_or_psys_is_never_a_total_that_a_score_takes(tmp_path, id_, name):
    if name == "dram":
        made.zone(tmp_path, "0", "package-0", energy=None)
    made.zone(tmp_path, id_, name)
    for meter in ("auto", "powercap"):
        with pytest.raises(UsageError, match=f"no_total: it has {name} alone, and no score is of that"):
            open_meter(meter, tmp_path)
    open_meter(f"powercap:{name}", tmp_path).close()  # as `power probe` shows it
    with pytest.raises(UsageError, match=f"--meter powercap:{name}: {name} is shown by `power probe`"):
        found(f"powercap:{name}", tmp_path)
    with pytest.raises(UsageError, match="a meter is one of"):
        open_meter(f"auto:{name}", tmp_path)


def test_an_unknown_meter_is_told_every_name_that_a_run_takes(tmp_path):
    with pytest.raises(UsageError, match="--meter nope: ") as told:
        found("nope", tmp_path)
    assert all(name in told.value.text for name in (*NAMES, "none", LATER))


def test_auto_of_a_scope_is_the_first_meter_of_it(tmp_path):
    made.zone(made.packages(tmp_path, 0), "0", "package-0")
    made.zone(tmp_path, "0:0", "dram")
    assert open_meter("auto", tmp_path).name == "powercap:package"
    assert open_meter("auto:package+dram", tmp_path).name == "powercap:package+dram"
    with pytest.raises(UsageError, match="--meter auto:wall: it has no channels of wall; it has package"):
        open_meter("auto:wall", tmp_path)


def test_a_zone_that_goes_away_is_named(tmp_path):
    made.zone(tmp_path, "0", "package-0")
    meter = open_meter("auto", tmp_path)
    first = meter.read()
    meter._sources[0] = "vanished"  # ENODEV from a file that is open cannot be made of a plain file
    told = energy(log_of(meter, first + meter.read() + meter.read()))
    assert told.joules is None
    assert "vanished" in told.flags


def test_numbers_are_ascii_and_whole(tmp_path):
    for text in ("1_000", "\N{ARABIC-INDIC DIGIT ONE}", "1.5", "0x10", "", "9" * 30):
        made.zone(tmp_path, "0", "package-0", energy_uj=text)
        assert codes(powercap.find(tmp_path)) == ["read_error"], text
