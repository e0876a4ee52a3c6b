"""What the virtual machine boots: a first root file system with modules, and the lab's own module; both cached."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import subprocess
from pathlib import Path

from lab.packages import Packages

HERE = Path(__file__).parent
# In the order in which they need each other; one that is not there is built in.
MODULES = (
    "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
    "netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay",
)  # fmt: skip


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cpubench-lab"


def prepared(packages: Packages, where: Path | None = None) -> Path:
    """A folder with ``lab_rapl.ko`` and ``initramfs``, made where the cache has none of this kernel and these sources.

    CalledProcessError where the module does not build; what the compiler said is on stderr.
    """
    sources = sorted((HERE / "module").iterdir())
    key = hashlib.sha256(packages.version.encode())
    for path in (packages.kernel, packages.busybox, HERE / "init", Path(__file__), *sources):
        key.update(path.read_bytes())
    folder = (where or cache()) / f"{packages.version}-{key.hexdigest()[:16]}"
    if not (folder / "initramfs").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "lab_rapl.ko").write_bytes(_module(packages, sources, folder / "build"))
        (folder / "initramfs").write_bytes(_initramfs(packages))  # last: it says that the folder is whole
    return folder


def _module(packages: Packages, sources: list[Path], build: Path) -> bytes:
    build.mkdir()
    for path in sources:
        shutil.copy(path, build)
    command = ["make", "-s", "-C", str(packages.headers), f"M={build}", "modules"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    made = (build / "lab_rapl.ko").read_bytes()
    shutil.rmtree(build)
    return made


def _initramfs(packages: Packages) -> bytes:
    files = {"init": (HERE / "init").read_bytes(), "bin/busybox": packages.busybox.read_bytes()}
    for number, name in enumerate(MODULES):
        found = next(packages.modules.rglob(f"{name}.ko*"), None)
        if found is not None:
            data = found.read_bytes()
            files[f"modules/{number:02}-{name}.ko"] = lzma.decompress(data) if found.suffix == ".xz" else data
    return cpio({"bin": None, "modules": None, **files})


def cpio(files: dict[str, bytes | None]) -> bytes:
    """An archive as the kernel unpacks it (newc), of programs and, with None, folders; all of root."""
    made = b""
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")], 1):
        mode = 0o040755 if data is None else 0o100755
        fields = (number, mode, 0, 0, 1, 0, len(data or b""), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        made += head + bytes(-len(head) % 4) + (data or b"") + bytes(-len(data or b"") % 4)
    return made
