"""Whether work was done and nothing is left of it: outputs, processes, mounts, control groups, files, CPU time."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from cpubench.host.fact import ROOT
from cpubench.host.mounts import parse_mountinfo
from cpubench.tasks import sandbox
from cpubench.tasks.spans import Span
from cpubench.tasks.steps import Step

TICK_NS = 10_000_000  # times of other processes than the caller's may be this old


def digest(output: bytes) -> str:
    return hashlib.sha256(output).hexdigest()[:16]


def fault(step: Step, status: int, output: bytes, pinned: str | None) -> str | None:
    """Why the step failed, in one line; None where it did what it must."""
    if status != step.status:
        what = f"ended by signal {-status}" if status < 0 else f"ended with {status}"
        return f"{step.label}: {what}, not {step.status}{_last_line(output)}"
    if step.expect and not re.search(step.expect, output.decode("utf-8", "replace"), re.MULTILINE):
        return f"{step.label}: the output has no {step.expect!r}{_last_line(output)}"
    if step.fixed and pinned is not None and digest(output) != pinned:
        return f"{step.label}: the output is not what it is on other hosts{_last_line(output)}"
    return None


def _last_line(output: bytes) -> str:
    rows = output.decode("utf-8", "backslashreplace").strip().splitlines()
    return f": {rows[-1][:200]}" if rows else ""


def impossible(span: Span, label: str, cpus: int) -> str | None:
    """Why the CPU time of a span cannot be; None where it can."""
    cpu_ns = 1000 * (span.user_us + span.sys_us)
    if cpu_ns <= span.wall_ns * cpus + TICK_NS:
        return None
    return f"{label}: {cpu_ns / 1e9:.3f} s of CPU time in {span.wall_ns / 1e9:.3f} s on {cpus} CPUs"


def children() -> set[int] | None:
    """Pids of the children of this process, dead ones too; None where the kernel does not list them."""
    try:
        return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    except OSError:
        return None


def mounts(below: Path) -> list[str]:
    """Mount points of this namespace in a folder: others may mount elsewhere at any time."""
    try:
        text = Path("/proc/self/mountinfo").read_text(errors="backslashreplace")
    except OSError:
        return []
    return [mount.point for mount in parse_mountinfo(text) if mount.point.startswith(str(below))]


def groups(root: Path = ROOT) -> list[str]:
    """Control groups below the own ones; those of v2 are where it is mounted, which is beside v1 on hybrid hosts."""
    try:
        rows = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for row in rows:
        _, controllers, path = row.split(":", 2)
        place = f"/sys/fs/cgroup/{controllers}/{path.strip('/')}" if controllers else sandbox.group(root)
        top = root / place.lstrip("/") if place else None
        if top and top.is_dir():  # of the root's groups, which others make too, only sandboxes' are ours
            found += [str(one) for one in top.glob("*" if path != "/" else "cpubench-*") if one.is_dir()]
    return sorted(found)


def files_left(root: str) -> list[str]:
    """What an agent's folder still holds, apart from the folders that it began with."""
    found = []
    for part in ("work", "home", "tmp"):
        found += [f"{part}/{name}" for name in sorted(os.listdir(f"{root}/{part}"))]
    return found


def grown(what: str, before: list[str], after: list[str]) -> list[str]:
    """Sentences on what there is more of, counted by name."""
    left = list(after)
    for name in before:
        if name in left:
            left.remove(name)
    return [f"{what} left behind: {name}" for name in left]
