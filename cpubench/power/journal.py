"""What was there before a cap, on disk before the first write, and who may cap: one process of a host.

`/run/cpubench/cap-<boot id>.json`: below /run, because limits of the CPU end with the boot as that does. The /run of a
container ends before them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.host.container import read_container
from cpubench.host.fact import read_text
from cpubench.host.mounts import MOUNTINFO, mount_of, parse_mountinfo
from cpubench.results.files import canonical, content_hash, sealed, write_atomic

SCHEMA, FOLDER, MAX_BYTES = "cpubench.caps/1", "run/cpubench", 1 << 20
RESTORE = "`cpubench power restore` gives the limits back"


@dataclass
class Entry:
    """A register: what it held (``old``), and every value of ours that it may hold now."""

    key: str
    place: str
    group: str  # the key of its control
    constraint: str
    old: int
    ours: list[int]
    step: int  # a value that is less than this apart is the same one


@dataclass
class Journal:
    boot_id: str
    pid: int
    starttime: int  # of the process, in ticks since the boot: a pid is used again
    utc: str
    entries: list[Entry] = field(default_factory=list)
    kept: bool = False  # the limits stay after the end of the process: somebody asked for it


def boot_id(root: Path) -> str:
    """The kernel's name of this boot; UsageError without one, for no journal could be told from an old one."""
    text = read_text(root, "proc/sys/kernel/random/boot_id", 100).value or ""
    if not re.fullmatch(r"[0-9a-f-]{8,40}", text):
        raise UsageError("boot_id", "cannot be read: mount /proc", str(root / "proc/sys/kernel/random/boot_id"))
    return text


def starttime(root: Path, pid: int) -> int:
    """Field 22 of /proc/PID/stat; 0 without such a process."""
    text = read_text(root, f"proc/{pid}/stat", 4096).value or ""
    fields = text.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else 0


def new(root: Path) -> Journal:
    """An empty journal of this process."""
    utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Journal(boot_id(root), os.getpid(), starttime(root, os.getpid()), utc)


def owner_lives(root: Path, journal: Journal) -> bool:
    """Whether the process that wrote it still runs, and not another one with its number."""
    now = starttime(root, journal.pid)
    return bool(now) and now == journal.starttime


def place(root: Path, boot: str) -> Path:
    return root / FOLDER / f"cap-{boot}.json"


def check_outlives(root: Path) -> None:
    """None if the journal is there after this process and its guardian; UsageError in a container, whose own it is.

    With the first process of a container, which may be this one, the kernel kills all others (pid_namespaces(7)), the
    guardian too, and its /run goes with it. A /run/cpubench that is mounted from the host stays, for the next start.
    """
    kind = read_container(root).kind
    if kind in (None, "none"):
        return
    mount = mount_of(f"/{FOLDER}", parse_mountinfo(read_text(root, MOUNTINFO).value or ""))
    # Of the host's tmpfs at /run a part is seen: a tmpfs or a volume of the container's own has another root.
    if mount is not None and mount.point == f"/{FOLDER}" and mount.root in ("/cpubench", "/run/cpubench"):
        return
    what = f"in a container ({kind}) that is killed nothing would give limits back"
    todo = "cap on the host, or start the container with -v /run/cpubench:/run/cpubench"
    raise UsageError("container", f"{what}: {todo}", f"/{FOLDER}")


def own_folder(root: Path) -> Path:
    """The folder of journal and lock, made where it is missing; UsageError where others could write there."""
    folder = root / FOLDER
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)  # anyone may look whether caps are left
        status = folder.lstat()
    except OSError as error:
        raise UsageError("journal", f"cannot be made: {error.strerror}; run as root", str(folder)) from None
    if stat.S_ISDIR(status.st_mode) and status.st_uid == 0 != os.geteuid():
        raise UsageError("permission", "belongs to root, who has capped here before: run as root", str(folder))
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise UsageError("journal", "is no folder that only this user can write: remove it", str(folder))
    return folder


def save(root: Path, journal: Journal) -> None:
    """Writes the journal, synced, over the old one. UsageError, with the old one in place, where that fails."""
    path = place(root, journal.boot_id)
    try:
        write_atomic(path, canonical(sealed({"schema": SCHEMA, **asdict(journal)})))
    except OSError as error:
        raise UsageError("journal", f"cannot be written: {error.strerror}; no limit was changed", str(path)) from None


def remove(root: Path, journal: Journal) -> None:
    """Nothing; the journal is gone. UsageError where it cannot be removed."""
    path = place(root, journal.boot_id)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            "journal", f"the limits are given back; remove this file: {error.strerror}", str(path)
        ) from None


def load(root: Path) -> Journal | None:
    """The journal that was left, of this boot or, without one, of another; UsageError for one that is spoiled."""
    try:
        names = os.listdir(root / FOLDER)
    except FileNotFoundError:
        return None
    except OSError as error:  # a folder of root's: what is in it is not known
        raise UsageError("journal", f"cannot be read: {error.strerror}; run as root", str(root / FOLDER)) from None
    found = [name for name in names if re.fullmatch(r"cap-.*\.json", name)]
    found.sort(key=lambda name: name != place(root, boot_id(root)).name)
    return _load(root / FOLDER / found[0]) if found else None


def _load(path: Path) -> Journal | None:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(MAX_BYTES))
        if document["schema"] != SCHEMA or document["sha256"] != content_hash(document):
            raise ValueError("another schema or content than it was sealed with")
        journal = Journal(**{k: v for k, v in document.items() if k not in ("schema", "sha256")})
        journal.entries = [Entry(**entry) for entry in document["entries"]]
        if path.name != f"cap-{journal.boot_id}.json" or not all(map(_sound, journal.entries)):
            raise ValueError("its entries are none of ours")
        return journal
    except FileNotFoundError:  # its owner has given everything back meanwhile
        return None
    except OSError as error:
        raise UsageError("journal", f"cannot be read: {error.strerror}; run as root", str(path)) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        what = "cut or spoiled: compare the limits with `cpubench power show`, set them by hand and remove this file"
        raise UsageError("journal", f"{what} ({str(error)[:80]!r})", str(path)) from None


def _sound(entry: Entry) -> bool:
    numbers: list[Any] = [entry.old, entry.step, *entry.ours]
    texts: list[Any] = [entry.key, entry.place, entry.group, entry.constraint]
    whole = all(type(number) is int and number >= 0 for number in numbers)
    return whole and bool(entry.ours) and all(isinstance(text, str) for text in texts)


def _runs(pid: int) -> bool:
    """Whether a process has this number and has not ended; one that nobody waited for has."""
    text = read_text(Path("/"), f"proc/{pid}/stat", 4096).value or ""
    return text.rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def lock(root: Path, wait_s: float = 2.5) -> int:
    """The descriptor of the lock of all that cap this host; UsageError where another process has it.

    A guardian shares the lock of its capper: it waits for one that is giving limits back, which takes milliseconds.
    """
    path = own_folder(root) / "lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(file, 20, 0).decode("ascii", "replace").strip()
            pid = int(owner) if owner.isdecimal() else 0
            if time.monotonic() < until and not _runs(pid):
                time.sleep(0.02)
                continue
            os.close(file)
            text = f"process {pid or 'unknown'} caps this host: wait for its end, or stop it with `kill`"
            raise UsageError("busy", text, str(path)) from None
        with contextlib.suppress(OSError):  # a full disk: the number is for a sentence only
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        return file
