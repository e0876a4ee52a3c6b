"""What is mounted where (Documentation/filesystems/proc.rst, mountinfo), and the file systems of places that count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpubench.host.fact import ROOT, Fact, read_text

MOUNTINFO = "proc/self/mountinfo"
PLACES = ("/", "/tmp", "/dev/shm", "/sys/fs/cgroup")


@dataclass(frozen=True)
class Mount:
    root: str  # what of the file system is seen at the mount point
    point: str
    options: tuple[str, ...]  # of this mount
    kind: str
    own_options: tuple[str, ...]  # of the file system


def parse_mountinfo(text: str) -> list[Mount]:
    """The mounts in the order in which they were made; lines of another form are left out."""
    mounts = []
    for line in text.split("\n"):  # the kernel escapes no other end of a line in a name
        before, _, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if len(fields) >= 6 and len(tail) >= 3:
            options, own = tuple(fields[5].split(",")), tuple(tail[2].split(","))
            mounts.append(Mount(_unescaped(fields[3]), _unescaped(fields[4]), options, tail[0], own))
    return mounts


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def mount_of(place: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount on which an absolute path without links lies: the longest mount point, of equal ones the last made."""
    found = None
    for mount in mounts:
        base = mount.point.rstrip("/")
        if (place == base or place.startswith(f"{base}/")) and (
            found is None or len(base) >= len(found.point.rstrip("/"))
        ):
            found = mount
    return found


def read_file_systems(root: Path = ROOT, places: Iterable[str] = PLACES) -> Fact[dict[str, dict[str, Any]]]:
    """File system, mount point and options of each of the places; a source could be an address and is left out."""
    text = read_text(root, MOUNTINFO)
    if text.value is None:
        return Fact(None, text.reason)
    mounts = parse_mountinfo(text.value)
    found = {}
    for place in places:
        mount = mount_of(place, mounts)
        if mount is not None and (root / place.lstrip("/")).exists():
            options = list(dict.fromkeys((*mount.options, *mount.own_options)))
            found[place] = {"kind": mount.kind, "mount": mount.point, "options": options}
    return Fact(found) if found else Fact(None, f"/{MOUNTINFO}: no mount of {', '.join(places)}")
