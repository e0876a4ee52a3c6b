"""The power lab: a virtual machine with powercap zones of a module of ours; ``python tests/lab/boots.py [BOOTS]``.

Each boot runs a file of cases with pytest, inside of this host's own files and with this Python. The capped run of the
boot ``run`` is kept in the folder CPUBENCH_LAB_KEEP.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from lab import image, machine, outside, packages

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
    alone: bool = False  # its times are judged: nothing else of the lab runs beside it
    limit_s: float = 400  # several times what it takes on an idle machine of two cores


# The longest first: of those that are not alone two run at once.
BOOTS = (
    Boot("kills", alone=True),
    Boot("run", limit_s=1500),
    Boot("limits"),
    Boot("watts"),
    Boot("topology", EIGHT, "Skylake-Server"),
    Boot("again", after="kills"),
)


def run(boot: Boot, found: packages.Packages, made: Path, shared: Path) -> bool:
    """Whether every case of a boot holds; prints what they said and what they measured."""
    shared.mkdir(exist_ok=True)
    shutil.copy(made / "lab_rapl.ko", shared)
    (shared / "figures").write_text("")
    cases = str(TESTS / "lab" / f"boot_{boot.name}.py")
    command = [sys.executable, "-IB", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", cases]
    script = [
        ["mkdir", "-p", "/lab/cpubench", "/run/cpubench"], ["mount", "--bind", "/lab/cpubench", "/run/cpubench"],
        ["cd", str(TESTS.parent)], ["export", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"], command,
    ]  # fmt: skip
    ended = machine.run(found, made / "initramfs", shared, script, boot.cpus, boot.model, boot.limit_s)
    oops = re.search(r"^.*(Oops|BUG:|Call Trace).*$", ended.kernel, re.MULTILINE)
    good = ended.code == 0 and oops is None
    said = f"== boot {boot.name}: {'good' if good else 'BAD'}, {ended.seconds:.0f} s\n{ended.said.strip()}\n"
    if not good:
        said += f"ended with {ended.code}; the kernel said:\n{ended.kernel.strip()[-6000:]}\n"
    print(said + (shared / "figures").read_text(), end="", flush=True)
    return good


def chosen(names: Sequence[str]) -> list[Boot]:
    """The boots of these names with what follows them; all without a name."""
    return [boot for boot in BOOTS if not names or boot.name in names or boot.after in names]


def run_all(boots: Sequence[Boot], found: packages.Packages, made: Path, folder: Path) -> list[bool]:
    """Whether each boot is good: those that are alone first, then two at a time."""

    def one(boot: Boot) -> bool:
        return run(boot, found, made, folder / (boot.after or boot.name))

    results = [one(boot) for boot in boots if boot.alone]
    with ThreadPoolExecutor(2) as pool:  # half of a boot is one process that waits for another
        return results + list(pool.map(one, [boot for boot in boots if not boot.alone]))


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
    with tempfile.TemporaryDirectory(prefix="cpubench-lab-") as folder:
        results = run_all(chosen(names), found, made, Path(folder))
        capped = Path(folder, "run/capped")
        if capped.is_dir():
            results.append(outside.looked_at(capped))
    took_s = time.monotonic() - began
    print(f"lab: {sum(results)} of {len(results)} are good, {took_s:.0f} s, Linux {found.version}")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
