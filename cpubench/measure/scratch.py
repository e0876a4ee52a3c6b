"""A block's folder on tmpfs: private where a mount is allowed, else in /dev/shm; never left behind.

Standard library and the extension only: the block imports this.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from cpubench import _native

MOUNTINFO = Path("/proc/self/mountinfo")


def guard(folder: Path) -> int:
    """The pid of a process that removes ``folder`` when this one is gone, however it went.

    It sits in a session of its own, where neither Ctrl-C nor a kill of this process group reaches it.
    """
    kept, watched = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:  # at a limit of processes
        raise OSError(error.errno, error.strerror, "fork") from None
    if pid:
        os.close(kept)
        return pid  # copies do not keep `watched` open: it is not inheritable (PEP 446)
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(watched)
        os.read(kept, 1)  # returns at the end of the other side
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)


def open_scratch(parent: Path, need_bytes: int) -> tuple[Path, dict[str, Any]]:
    """A new, empty 0700 folder on tmpfs and what was obtained: kind, mount options, size_bytes; or the reason of none.

    ``parent`` is a folder of the run, below which the private tmpfs is mounted; it is guarded already.
    """
    size = max(64 << 20, 2 * need_bytes)
    try:
        inside = parent / "tmpfs"
        inside.mkdir(mode=0o700)
        _native.private_tmpfs(str(inside), size)
        return inside, _obtained("private", inside)
    except OSError:  # no root, no namespaces, or a seccomp filter
        pass
    shm = Path("/dev/shm")
    if not shm.is_dir() or not os.access(shm, os.W_OK | os.X_OK):
        return parent, {"reason": "no tmpfs: it may not be mounted here and /dev/shm is not writable"}
    kind = file_system(shm)
    if kind != "tmpfs":  # a container or chroot may have a disk there, which is another quantity
        return parent, {"reason": f"no tmpfs: it may not be mounted here and /dev/shm is {kind or 'unknown'}"}
    free = os.statvfs(shm)
    if free.f_bavail * free.f_frsize < need_bytes:
        return parent, {"reason": f"/dev/shm has {free.f_bavail * free.f_frsize >> 20} MiB, {need_bytes >> 20} needed"}
    folder = Path(tempfile.mkdtemp(prefix="cpubench-", dir=shm))
    try:
        guard(folder)
    except BaseException:
        folder.rmdir()
        raise
    return folder, _obtained("dev_shm", folder)


def _obtained(kind: str, folder: Path) -> dict[str, Any]:
    size = os.statvfs(folder)
    return {"file_system": "tmpfs", "tmpfs": kind, "mount_options": mount_options(folder),
            "size_bytes": size.f_blocks * size.f_frsize}  # fmt: skip


def storage_facts(folder: Path) -> dict[str, Any]:
    """File system, mount options and device number of a folder on the disk of ``--workdir``."""
    kind, options, number = _mount(folder, MOUNTINFO)
    return {"file_system": kind or None, "mount_options": options, "device": number}


def file_system(folder: Path, mountinfo: Path = MOUNTINFO) -> str:
    """The file system's type of the device that ``folder`` lies on; "" where no mount of it is listed."""
    return _mount(folder, mountinfo)[0]


def mount_options(folder: Path, mountinfo: Path = MOUNTINFO) -> str:
    """The options of the mount that ``folder`` lies on, with those of its super block; "" where it is not known."""
    return _mount(folder, mountinfo)[1]


def _mount(folder: Path, mountinfo: Path) -> tuple[str, str, str]:
    """(type, options, device number) of the first mount of the device that ``folder`` lies on.

    By the device and not by the path: that may lead over links, and mountinfo spells some of its bytes in octal. Later
    mounts of one device are bind mounts of parts of it, elsewhere.
    """
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mountinfo.read_text(errors="replace").split("\n")  # other ends of lines may be in names
    except OSError:
        return "", "", number
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if len(fields) >= 6 and fields[2] == number and len(tail) >= 3:
            return tail[0], f"{fields[5]} {tail[-1]}", number
    return "", "", number
