from __future__ import annotations

from pathlib import Path

import pytest
from host import trees

from cpubench.host.virtual import read_virtual


def dmi(root: Path, vendor: str, product: str) -> Path:
    return trees.write(root, {"sys/class/dmi/id/sys_vendor": vendor, "sys/class/dmi/id/product_name": product})


def test_the_flag_of_x86_decides_both_ways(tmp_path: Path) -> None:
    assert read_virtual(trees.x86_cpuinfo(tmp_path, hypervisor=True)).value is True
    bare = read_virtual(trees.x86_cpuinfo(tmp_path / "b"))
    assert bare.value is False
    assert bare.evidence == ("/proc/cpuinfo: no flag hypervisor",)


def test_a_word_that_only_contains_the_flag_is_not_the_flag(tmp_path: Path) -> None:
    trees.write(tmp_path, {"proc/cpuinfo": "flags\t: fpu no_hypervisor avx\nbugs\t: hypervisor"})
    assert read_virtual(tmp_path).value is False


@pytest.mark.parametrize(
    ("vendor", "product"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)"),
        ("Red Hat", "KVM"),
        ("VMware, Inc.", "VMware7,1"),
        ("Microsoft Corporation", "Virtual Machine"),
        ("Xen", "HVM domU"),
        ("innotek GmbH", "VirtualBox"),
        ("OpenStack Foundation", "OpenStack Nova"),
        ("Amazon EC2", "m7g.large"),
        ("Google", "Google Compute Engine"),
        ("Alibaba Cloud", "Alibaba Cloud ECS"),
    ],
)
def test_firmware_strings_of_guests_on_arm(tmp_path: Path, vendor: str, product: str) -> None:
    found = read_virtual(dmi(trees.arm_cpuinfo(tmp_path, ("0x41", "0xd0c")), vendor, product))
    assert found.value is True
    assert any(product in text or vendor in text for text in found.evidence)


@pytest.mark.parametrize(
    ("vendor", "product"),
    [
        ("Amazon EC2", "c7g.metal"),
        ("Amazon EC2", "m7g.metal-48xl"),
        ("Supermicro", "ARS-210M"),
        ("Microsoft Corporation", "C2080"),
    ],
)
def test_firmware_strings_of_bare_metal_on_arm(tmp_path: Path, vendor: str, product: str) -> None:
    assert read_virtual(dmi(trees.arm_cpuinfo(tmp_path, ("0x41", "0xd0c")), vendor, product)).value is False


def test_rented_x86_metal_is_bare_and_a_hidden_flag_does_not_hide_qemu(tmp_path: Path) -> None:
    assert read_virtual(dmi(trees.x86_cpuinfo(tmp_path), "Google", "Google Compute Engine")).value is False
    assert read_virtual(dmi(trees.x86_cpuinfo(tmp_path / "b"), "QEMU", "Standard PC")).value is True
    assert read_virtual(dmi(trees.x86_cpuinfo(tmp_path / "c", hypervisor=True), "Amazon EC2", "c5.metal")).value is True


@pytest.mark.parametrize(
    "files",
    [
        {"sys/hypervisor/type": "xen"},
        {"proc/device-tree/hypervisor/compatible": "linux,kvm\0"},
        {"sys/firmware/devicetree/base/hypervisor/compatible": "xen,xen-4.17\0xen,xen\0"},
        {"proc/device-tree/compatible": "linux,dummy-virt\0"},
        {"proc/device-tree/fw-cfg@9020000/reg": "x"},
    ],
)
def test_a_hypervisor_in_sysfs_or_device_tree_is_a_proof(tmp_path: Path, files: dict[str, str]) -> None:
    found = read_virtual(trees.write(trees.arm_cpuinfo(tmp_path, ("0x41", "0xd4f")), files))
    assert found.value is True
    assert found.evidence[0].startswith(f"/{next(iter(files)).split('/reg')[0]}")
    assert "\0" not in "".join(found.evidence)


def test_an_arm_board_without_any_word_is_unknown_with_what_was_looked_at(tmp_path: Path) -> None:
    trees.write(
        trees.arm_cpuinfo(tmp_path, ("0x41", "0xd08")), {"proc/device-tree/compatible": "raspberrypi,4-model-b\0"}
    )
    found = read_virtual(tmp_path)
    assert found.value is None
    assert len(found.evidence) == 3
    assert read_virtual(tmp_path / "nothing").value is None


def test_a_bios_vendor_alone_does_not_speak_for_bare_metal(tmp_path: Path) -> None:
    assert read_virtual(trees.write(tmp_path, {"sys/class/dmi/id/bios_vendor": "EDK II"})).value is None
    assert read_virtual(trees.write(tmp_path, {"sys/class/dmi/id/bios_vendor": "Bochs"})).value is True
