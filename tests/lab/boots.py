"""The power lab: a virtual machine with powercap zones of a module of ours; ``python tests/lab/boots.py [BOOTS]``.

Each boot runs a file of cases with pytest, inside of this host's own files and with this Python.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from lab import image, machine, packages

TESTS = Path(__file__).parents[1]
PAIR = ("-m", "1500", "-smp", "2,sockets=2")
EIGHT = (
    "-m", "1500", "-smp", "8,sockets=2,cores=2,threads=2",
    "-object", "memory-backend-ram,id=m0,size=750M", "-numa", "node,nodeid=0,cpus=0-3,memdev=m0",
    "-object", "memory-backend-ram,id=m1,size=750M", "-numa", "node,nodeid=1,cpus=4-7,memdev=m1",
)  # fmt: skip


class Boot(NamedTuple):
    name: str
    cpus: Sequence[str] = PAIR
    model: str = machine.BARE
    after: str = ""  # the boot whose files in /run/cpubench it finds
    limit_s: float = 170


BOOTS = (
    Boot("limits"),
    Boot("watts"),
    Boot("run", limit_s=300),
    Boot("kills"),
    Boot("again", after="kills"),
    Boot("topology", EIGHT, "Skylake-Server"),
)


def run(boot: Boot, found: packages.Packages, made: Path, shared: Path) -> bool:
    """Whether every case of a boot holds; prints what they said."""
    cases = str(TESTS / "lab" / f"boot_{boot.name}.py")
    command = [sys.executable, "-B", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", cases]
    script = [
        ["mkdir", "-p", "/lab/cpubench", "/run/cpubench"], ["mount", "--bind", "/lab/cpubench", "/run/cpubench"],
        ["cd", str(TESTS.parent)], ["export", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"], command,
    ]  # fmt: skip
    ended = machine.run(found, made / "initramfs", shared, script, boot.cpus, boot.model, boot.limit_s)
    oops = re.search(r"^.*(Oops|BUG:|Call Trace).*$", ended.kernel, re.MULTILINE)
    good = ended.code == 0 and oops is None
    print(f"== boot {boot.name}: {'good' if good else 'BAD'}, {ended.seconds:.0f} s")
    print(ended.said.strip())
    if not good:
        print(f"ended with {ended.code}; the kernel said:\n{ended.kernel.strip()[-6000:]}")
    sys.stdout.flush()
    return good


def main(names: Sequence[str]) -> int:
    """0 where every case of the boots holds; 1 else; 2 without the packages."""
    unknown = set(names) - {boot.name for boot in BOOTS}
    if unknown:
        print(f"no such boot: {', '.join(sorted(unknown))}; there are {', '.join(boot.name for boot in BOOTS)}")
        return 2
    try:
        found = packages.find()
    except packages.MissingPackages as missing:
        print(missing)
        return 2
    began = time.monotonic()
    try:
        made = image.prepared(found)
    except subprocess.CalledProcessError:
        print("the module does not build with these headers")
        return 1
    results = []
    with tempfile.TemporaryDirectory(prefix="cpubench-lab-") as folder:
        shared = Path(folder)
        shutil.copy(made / "lab_rapl.ko", shared)
        for boot in BOOTS:
            if not names or boot.name in names or boot.after in names:
                if not boot.after:
                    shutil.rmtree(shared / "cpubench", ignore_errors=True)
                results.append(run(boot, found, made, shared))
        figures = shared / "figures"
        if figures.is_file():
            print(figures.read_text().strip())
    print(
        f"lab: {sum(results)} of {len(results)} boots are good, {time.monotonic() - began:.0f} s, Linux {found.version}"
    )
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
