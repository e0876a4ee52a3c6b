"""T3: a sandbox is made, runs ``python3 -c``, and is taken down, on each rung of a ladder of isolation.

The sandbox is a small static program (``ext/box``) that serves over stdio: it says that it stands, runs the interpreter
when asked, and goes at the end of its input, so that making, running and taking down are three steps on every rung.
``bare`` is that program alone; other rungs add one thing each, and ``all`` has them all. An adapter (bwrap, runc,
runsc) starts the same program inside of what it makes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from cpubench.host.fact import ROOT
from cpubench.host.mounts import parse_mountinfo
from cpubench.measure.programs import BOX
from cpubench.tasks.steps import Place, Step

VERSION = 1
CYCLES = 10
CYCLE = 3  # steps
# What each rung promises, which the interpreter inside looks for: n namespaces, s seccomp, g control group, o overlay.
RUNGS = {"bare": "", "namespaces": "n", "seccomp": "s", "cgroup": "g", "overlay": "o", "all": "nsgo"}
ADAPTERS = {"bwrap": "n", "runc": "n", "runsc": "n"}
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
WORK = """
import hashlib, json, re, sys
def read(name):
    with open("/proc/self/" + name) as file:
        return file.read()
held = {
    "n": lambda: int(re.search(r"^Pid:\\s*(\\d+)", read("status"), re.M)[1]) < 50,
    "s": lambda: "Seccomp:\\t2" in read("status"),
    "o": lambda: " / overlay " in read("mounts"),
    "g": lambda: "n" in sys.argv[1] or "/cpubench-box-" in read("cgroup"),
}
rows = [{"id": n, "name": "row_%d" % n} for n in range(2000)]
found = re.findall("[0-9]+", json.dumps(rows))
print(hashlib.sha256(" ".join(found).encode()).hexdigest()[:16], *(one for one in sys.argv[1] if not held[one]()))
"""
OUTPUT = hashlib.sha256(" ".join(str(n) for n in range(2000) for _ in "ab").encode()).hexdigest()[:16] + "\n"


def steps(place: Place, rung: str) -> list[Step]:
    """Ten sandboxes, one after another; those of runc and runsc share a bundle."""
    made = [Step("bundle", "bundle", "env.setup", bundle(place), pythons=1)] if rung in ("runc", "runsc") else []
    for n in range(CYCLES):
        argv = command(place, rung, n)
        made.append(Step(f"create.{n}", "create", "sandbox.create", argv, "start", "box", fixed=False, pure=True))
        made.append(Step(f"run.{n}", "run", "snippet", ("python", ""), "ask", "box", pythons=1, pure=True))
        made.append(Step(f"destroy.{n}", "destroy", "teardown", action="stop", server="box", fixed=False, pure=True))
    return made + [Step("remove", "remove", "teardown", place.tool("tree", "delete", "bundle"), pythons=1)] * bool(
        rung in ("runc", "runsc")
    )


def command(place: Place, rung: str, number: int) -> tuple[str, ...]:
    """What makes the sandbox; it ends when its input does."""
    inside = (place.python, "-I", "-c", WORK, {**RUNGS, **ADAPTERS}[rung])
    plain = (str(BOX), "--", *inside)
    if rung == "bwrap":
        return (adapter(rung), "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
                "--die-with-parent", *plain)  # fmt: skip
    if rung in ("runc", "runsc"):
        state, name = f"{place.work}/bundle/state", hashlib.sha256(place.root.encode()).hexdigest()[:8]
        how = ("-ignore-cgroups",) if rung == "runsc" and os.geteuid() else ()
        return (adapter(rung), *how, "--root", state, "run", "--bundle", f"{place.work}/bundle",
                f"cpubench-{name}-{number}")  # fmt: skip
    wanted = RUNGS[rung]
    flags = [f"-{letter}" for letter in wanted if letter in "ns"]
    flags += ["-o", f"{place.root}/tmp"] if "o" in wanted else []
    flags += ["-g", group() or "/sys/fs/cgroup"] if "g" in wanted else []
    return (str(BOX), *flags, *plain[1:])


def bundle(place: Place) -> tuple[str, ...]:
    """The command that writes the bundle of an OCI runtime: a root of the host's folders, read only."""
    return place.tool("bundle", "bundle", str(BOX), place.python, "-I", "-c", WORK, ADAPTERS["runc"])


def adapter(name: str) -> str:
    """Where the program is; its bare name where it is nowhere."""
    import shutil

    return shutil.which(name, path=PATH) or name


def group(root: Path = ROOT) -> str | None:
    """The folder of the own control group in the unified hierarchy, without the root; None where there is none
    (cgroups(7))."""
    try:
        mounts = parse_mountinfo((root / "proc/self/mountinfo").read_text(errors="replace"))
        own = [row for row in (root / "proc/self/cgroup").read_text().splitlines() if row.startswith("0::")]
    except OSError:
        return None
    points = [mount.point for mount in mounts if mount.kind == "cgroup2"]
    return f"{points[0]}{own[0][3:]}".rstrip("/") if points and own else None
