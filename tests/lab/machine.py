"""A virtual machine under software emulation, which runs a script inside of this host's own files."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.packages import Packages

# Without the flag and with a firmware of this name it is bare metal to what runs in it: what is made up there is meant.
# A CPU of 2008, because what glibc does with AVX is slower to emulate than without.
BARE = "Nehalem,-hypervisor"
# Twice as fast without mitigations. QEMU translates code anew where a process has it at another address: without random
# ones an empty Python starts in 0.15 s and not in 0.45 s.
KERNEL = "console=ttyS0 loglevel=5 panic=-1 random.trust_cpu=on mitigations=off nokaslr norandmaps"
FIRMWARE = "type=1,manufacturer=cpubench,product=power lab"


class Ended(NamedTuple):
    code: int | None  # of the script; None where it did not come to its end
    said: str  # what it printed
    kernel: str  # what the kernel printed
    seconds: float


def run(
    packages: Packages, initramfs: Path, shared: Path, script: Sequence[Sequence[str]], cpus: Sequence[str],
    model: str = BARE, limit_s: float = 170,
) -> Ended:  # fmt: skip
    """Boots, runs commands, and ends; ``shared`` is the folder /lab in it, which alone keeps what is written."""
    for name in ("said", "code"):
        (shared / name).unlink(missing_ok=True)
    lines = [shlex.join(command) for command in script]
    (shared / "run").write_text("export HOME=/tmp LC_ALL=C.UTF-8\n" + " &&\n".join(lines) + "\necho $? >/lab/code\n")
    console = shared / "console"
    command = [
        packages.qemu, "-accel", "tcg,thread=multi", "-cpu", model, *cpus, "-kernel", str(packages.kernel),
        "-initrd", str(initramfs), "-append", KERNEL, "-smbios", FIRMWARE,
        "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", f"file:{console}",
        "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
        "-virtfs", f"local,path={shared},mount_tag=lab,security_model=mapped-file",
    ]  # fmt: skip
    began = time.monotonic()
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, complaint = machine.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        complaint = f"not at its end after {limit_s:g} s"
    finally:
        machine.kill()
        machine.wait()
    seconds = time.monotonic() - began
    # QEMU warns of each feature of the CPU that it cannot emulate.
    complaint = "".join(x for x in complaint.splitlines(True) if "TCG doesn't support requested feature" not in x)
    code = _text(shared / "code").strip()
    return Ended(int(code) if code else None, _text(shared / "said"), _text(console) + complaint, seconds)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
