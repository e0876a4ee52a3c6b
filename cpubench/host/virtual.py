"""Whether this is a virtual machine: in one, siblings and packages are made up, and per core means per vCPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.fact import ROOT, names_in, read_text

_DMI = "sys/class/dmi/id"
# Product names and vendors that only a virtual machine monitor writes, at the start of the string.
_MONITORS = (
    "KVM", "QEMU", "OpenStack", "KubeVirt", "VMware", "VMW", "VirtualBox", "innotek GmbH", "Xen", "HVM domU", "Bochs",
    "Parallels", "BHYVE", "Hyper-V", "Virtual Machine", "Apple Virtualization", "Firecracker", "RHEV", "oVirt",
    "Standard PC (",
)  # fmt: skip
# Clouds that write the same strings on rented bare metal too, where only the CPU's own word can tell.
_CLOUDS = (
    "Amazon EC2", "Google", "Alibaba Cloud", "Tencent Cloud", "Huawei Cloud", "DigitalOcean", "Hetzner", "Scaleway",
    "Akamai", "Linode", "Vultr", "UpCloud",
)  # fmt: skip


@dataclass(frozen=True)
class Virtual:
    value: bool | None  # None: nothing tells
    evidence: tuple[str, ...]  # what was read, and what it speaks for


def read_virtual(root: Path = ROOT) -> Virtual:
    """Whether a hypervisor runs below this kernel, with the evidence; never raises.

    Any proof of a hypervisor wins; else x86, which has a flag for it, is believed; a firmware that names an
    unknown product speaks for bare metal; otherwise it stays unknown.
    """
    flag, cpu_evidence = _cpu_flag(root)
    proofs = _hypervisor_files(root) + _device_tree(root)
    if flag:
        proofs.append(cpu_evidence)
    monitor, cloud, plain = _dmi(root)
    proofs += monitor
    if proofs:
        return Virtual(True, tuple(proofs + cloud))
    if flag is False:
        return Virtual(False, (cpu_evidence, *cloud, *plain))
    if cloud:
        metal = any(re.search(r"\.metal\b", text) for text in cloud + plain)  # Amazon's "c7g.metal-48xl"
        return Virtual(not metal, (*cloud, *plain))
    if plain:
        return Virtual(False, (*plain, "names no known hypervisor"))
    return Virtual(None, (cpu_evidence, f"/{_DMI}: nothing readable", "no hypervisor in sysfs or the device tree"))


def _cpu_flag(root: Path) -> tuple[bool | None, str]:
    """The ``hypervisor`` flag, which x86 alone has; None where no x86 flags can be read."""
    text = read_text(root, "proc/cpuinfo", 1 << 16)
    match = re.search(r"^flags[ \t]*:(.*)$", text.value or "", re.MULTILINE)
    if match is None or not match[1].split():
        return None, text.reason or "/proc/cpuinfo: no x86 flags"
    found = "hypervisor" in match[1].split()
    return found, f"/proc/cpuinfo: {'flag' if found else 'no flag'} hypervisor"


def _hypervisor_files(root: Path) -> list[str]:
    kind = read_text(root, "sys/hypervisor/type", 4096).value
    return [f"/sys/hypervisor/type: {kind}"] if kind else []


def _device_tree(root: Path) -> list[str]:
    """Proofs from the device tree: Arm guests have no flag, and often no DMI either."""
    proofs = []
    for base in ("proc/device-tree", "sys/firmware/devicetree/base"):
        kind = read_text(root, f"{base}/hypervisor/compatible", 4096).value
        if kind:
            proofs.append(f"/{base}/hypervisor/compatible: {_one_line(kind)}")
        machine = read_text(root, f"{base}/compatible", 4096).value or ""
        if re.search(r"dummy-virt|qemu,", machine):  # what QEMU, crosvm and Firecracker call their Arm board
            proofs.append(f"/{base}/compatible: {_one_line(machine)}")
        proofs += [f"/{base}/{name}" for name in names_in(root, base).value or () if name.startswith("fw-cfg")]
        if proofs:
            break  # the second path is the first one's target
    return proofs


def _dmi(root: Path) -> tuple[list[str], list[str], list[str]]:
    """What the firmware says: strings of virtual machine monitors, of clouds, of anybody else."""
    monitor: list[str] = []
    cloud: list[str] = []
    plain: list[str] = []
    for name in ("sys_vendor", "product_name", "board_vendor", "bios_vendor"):
        text = read_text(root, f"{_DMI}/{name}", 4096).value
        if not text:
            continue
        kind = monitor if text.startswith(_MONITORS) else cloud if text.startswith(_CLOUDS) else plain
        # A board or BIOS vendor alone proves no bare metal: guests carry "SeaBIOS" and "EDK II".
        if kind is not plain or name in ("sys_vendor", "product_name"):
            kind.append(f"/{_DMI}/{name}: {_one_line(text)}")
    return monitor, cloud, plain


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())[:200]
