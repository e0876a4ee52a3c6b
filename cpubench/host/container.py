"""Whether this process is in a container, and of which kind; an image may carry the marks of one that it is not in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.fact import ROOT, read_text
from cpubench.host.mounts import MOUNTINFO, parse_mountinfo

# The inodes of the first namespaces (include/uapi/linux/nsfs.h): a process in them is in no container.
FIRST = {"ipc": 0xEFFFFFFF, "uts": 0xEFFFFFFE, "user": 0xEFFFFFFD, "pid": 0xEFFFFFFC, "cgroup": 0xEFFFFFFB}
MARKS = {".dockerenv": "docker", "run/.containerenv": "podman", "var/run/secrets/kubernetes.io": "kubernetes"}
GROUPS = (("kubepods", "kubernetes"), ("libpod", "podman"), ("docker", "docker"), ("lxc", "lxc"), ("crio", "cri-o"),
          ("containerd", "containerd"), ("machine.slice", "systemd-nspawn"))  # fmt: skip


@dataclass(frozen=True)
class Container:
    kind: str | None  # "none", a kind, or "other"; None: nothing tells
    evidence: tuple[str, ...]
    doubt: str | None = None


def read_container(root: Path = ROOT) -> Container:
    """The kind of the container, with the evidence; never raises."""
    marks = _marks(root)
    evidence = tuple(f"{text}: {kind}" for kind, text in marks)
    spaces = {name: _namespace(root, name) for name in FIRST}
    own = [name for name, inode in spaces.items() if inode is not None and inode != FIRST[name]]
    known = [name for name, inode in spaces.items() if inode is not None]
    if own:
        told = (*evidence, f"/proc/self/ns: {', '.join(own)} not the first of this kernel")
        # A service or a sandbox may have host name or users of its own without being a container.
        kind = marks[0][0] if marks else "other" if "pid" in own else "none"
        return Container(kind, told, None if marks or "pid" in own else "namespaces of its own, but not of processes")
    if known:
        doubt = f"{evidence[0]}, but its namespaces are the first of this kernel" if marks else None
        return Container("none", (*evidence, f"/proc/self/ns: {', '.join(known)} are the first of this kernel"), doubt)
    if marks:
        return Container(marks[0][0], evidence)
    return Container(None, (), "/proc/self/ns: not readable, and no mark of a container")


def _marks(root: Path) -> list[tuple[str, str]]:
    """(kind, what says so), the most telling first."""
    found = []
    named = read_text(root, "run/systemd/container", 4096).value
    if named:
        found.append((_word(named), "/run/systemd/container"))
    mounts = parse_mountinfo(read_text(root, MOUNTINFO).value or "")
    if any(mount.kind == "fuse.lxcfs" and mount.point.startswith(("/proc", "/sys")) for mount in mounts):
        found.append(("lxc", f"/{MOUNTINFO} (lxcfs)"))
    groups = read_text(root, "proc/self/cgroup").value or ""
    found += [(kind, f"/proc/self/cgroup ({word})") for word, kind in GROUPS if re.search(rf"[/-]{word}", groups)]
    release = read_text(root, "proc/sys/kernel/osrelease", 4096).value or ""
    if "microsoft" in release.lower():
        found.append(("wsl", "/proc/sys/kernel/osrelease"))
    return found + [(kind, f"/{name}") for name, kind in MARKS.items() if _there(root / name)]


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _namespace(root: Path, name: str) -> int | None:
    try:
        match = re.fullmatch(r"[a-z_]+:\[([0-9]{1,12})\]", os.readlink(root / "proc/self/ns" / name))  # noqa: PTH115
    except OSError:
        return None
    return int(match[1]) if match else None


def _word(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_.-]+", " ", text)[:40].strip() or "other"
