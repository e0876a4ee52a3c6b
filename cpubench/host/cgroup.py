"""Where the own control groups lie: the folders from the own group up to the root, for v1, v2 and hybrid trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cpubench.host.fact import ROOT, Fact, read_text
from cpubench.host.mounts import MOUNTINFO, parse_mountinfo

MAX_PATH = 4096  # PATH_MAX of the kernel
UNIFIED = ""  # stands for cgroup v2 among the names of the v1 controllers


@dataclass(frozen=True)
class Groups:
    folders: tuple[tuple[str, str], ...]  # (controller, folder below the root), the own group first
    doubts: tuple[str, ...] = ()  # why a tighter group may exist that is not among them


@dataclass(frozen=True)
class _Mount:
    controllers: frozenset[str]
    root: str  # the group that is seen at the mount point
    point: str


def own_groups(controllers: Iterable[str], root: Path = ROOT) -> Groups:
    """The own group and its visible ancestors in the hierarchy of each controller (``UNIFIED`` for v2)."""
    membership, mountinfo = read_text(root, "proc/self/cgroup"), read_text(root, MOUNTINFO)
    if membership.value is None or mountinfo.value is None:
        return Groups((), (membership.reason or mountinfo.reason or "",))
    paths, mounts = _paths(membership.value), _mounts(mountinfo.value)
    folders: dict[tuple[str, str], None] = {}  # a set that keeps its order
    doubts = []
    for controller in controllers:
        mine = [mount for mount in mounts if controller in mount.controllers]
        if controller not in paths or not mine:
            continue
        tails = [(mount, tail) for mount in mine if (tail := _below(mount.root, paths[controller])) is not None]
        if not tails:
            # The own group is outside of what is mounted here: the mount point is the nearest group to be seen.
            doubts.append(
                f"cgroup {paths[controller][:200]} is not below {', '.join(m.root[:200] for m in mine[:4])} as mounted"
            )
            tails = [(mount, []) for mount in mine]
        for mount, tail in tails:
            for depth in range(len(tail), -1, -1):
                folders[controller, "/".join([mount.point.strip("/"), *tail[:depth]])] = None
    return Groups(tuple(folders), tuple(doubts))


def _below(mount_root: str, path: str) -> list[str] | None:
    """The names that lead from the mounted group down to ``path``; None where they do not, or cannot be told."""
    base = mount_root.rstrip("/")
    if len(path) > MAX_PATH:  # of a million names each ancestor would be asked
        return None
    if path != base and not path.startswith(f"{base}/"):
        return None
    names = [name for name in path[len(base) :].split("/") if name]
    return None if ".." in names else names  # ".." leads out of the namespace: nothing here has that name


def _paths(text: str) -> dict[str, str]:
    """The path of the own group by controller, from lines such as "4:cpu,cpuacct:/a" and "0::/a"."""
    paths = {}
    for line in text.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            paths.update(dict.fromkeys(fields[1].split(","), fields[2].removesuffix(" (deleted)")))
    return paths


def _mounts(text: str) -> list[_Mount]:
    """The cgroup mounts among the lines of a mountinfo."""
    mounts = []
    for mount in parse_mountinfo(text):
        if mount.kind in ("cgroup", "cgroup2"):
            controllers = {UNIFIED} if mount.kind == "cgroup2" else mount.own_options
            mounts.append(_Mount(frozenset(controllers), mount.root, mount.point))
    return mounts


def read_hierarchy(root: Path = ROOT) -> Fact[str]:
    """Which control groups are mounted: "v1", "v2", or "hybrid" where there are both."""
    text = read_text(root, MOUNTINFO)
    if text.value is None:
        return Fact(None, text.reason)
    kinds = {UNIFIED in mount.controllers for mount in _mounts(text.value)}
    if not kinds:
        return Fact(None, f"/{MOUNTINFO}: no control groups are mounted")
    return Fact("hybrid" if len(kinds) == 2 else "v2" if True in kinds else "v1")
