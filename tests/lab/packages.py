"""What the lab needs of Debian: where it is, or what to type to have it."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from typing import NamedTuple

UNPACKED = "CPUBENCH_LAB_KERNEL"
HOW = f"""The power lab boots a virtual machine and needs, of Debian 12 or later on x86-64:
  apt-get install --no-install-recommends gcc make qemu-system-x86 busybox-static linux-headers-amd64 linux-image-amd64
The kernel need not be installed (that is the only part which changes how this host boots); unpacked it does as well:
  apt-get download linux-image-VERSION-amd64 && dpkg -x linux-image-*.deb FOLDER
with the VERSION of /lib/modules/VERSION-amd64/build, and {UNPACKED}=FOLDER"""


class MissingPackages(Exception):
    """The message names what is missing, and how to get it."""


class Packages(NamedTuple):
    version: str  # of the kernel
    kernel: Path  # that boots
    modules: Path  # the folder of its modules
    headers: Path  # where `make M=..` builds one
    busybox: Path  # one that needs no library
    qemu: str


def find(root: Path = Path("/"), unpacked: str | None = None, path: str | None = None) -> Packages:
    """The newest kernel that has its headers, and the programs; MissingPackages."""
    unpacked = os.environ.get(UNPACKED) if unpacked is None else unpacked
    qemu, make = (shutil.which(name, path=path) for name in ("qemu-system-x86_64", "make"))
    busybox = next((one for one in (root / "bin/busybox", root / "usr/bin/busybox") if one.is_file()), None)
    missing = [
        name for name, found in (("qemu-system-x86_64", qemu), ("make", make), ("busybox", busybox)) if not found
    ]
    if busybox is not None and _is_dynamic(busybox.read_bytes()):
        missing.append("a static busybox (busybox-static)")
    built = sorted((one.parent for one in root.glob("lib/modules/*/build") if (one / "Makefile").is_file()), key=_order)
    where = [root, *([Path(unpacked)] if unpacked else [])]
    kernels = [
        (one.name, place) for one in built for place in where if (place / "boot" / f"vmlinuz-{one.name}").is_file()
    ]
    if not built:
        missing.append("kernel headers")
    elif not kernels:
        missing.append(f"the kernel {built[-1].name} of the headers that are here")
    if missing or qemu is None or busybox is None:
        raise MissingPackages(f"missing: {', '.join(missing)}\n{HOW}")
    version, place = kernels[-1]
    boot, modules = place / "boot" / f"vmlinuz-{version}", place / "lib/modules" / version
    return Packages(version, boot, modules, root / "lib/modules" / version / "build", busybox, qemu)


def _order(folder: Path) -> list[tuple[bool, int, str]]:
    """6.1.0-57 after 6.1.0-9."""
    parts = folder.name.replace("-", ".").split(".")
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _is_dynamic(program: bytes) -> bool:
    """Whether an ELF program of 64 bits asks for an interpreter (a program header of type 3)."""
    if program[:5] != b"\x7fELF\x02":
        return False
    at, size, count = (*struct.unpack_from("<Q", program, 32), *struct.unpack_from("<HH", program, 54))
    return any(program[at + n * size : at + n * size + 4] == b"\3\0\0\0" for n in range(count))
