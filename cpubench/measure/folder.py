"""The run folder: made, checked, resumed; one run at a time on a host."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.files import canonical, write_atomic


def host_lock() -> socket.socket:
    """A lock that all runs on this host want and that dies with its owner: an abstract socket (unix(7)).

    UsageError where another run has it: two runs at once would measure each other.
    """
    try:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            lock.bind(b"\0cpubench.run")
        except OSError:
            lock.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError("busy", "another cpubench run is measuring on this host; wait for its end") from None
        text = f"cannot be taken ({error.strerror}): without it a second run would not be noticed; allow Unix sockets"
        raise UsageError("lock", text, "the lock of this host") from None
    return lock


def block_name(index: int, cap: str, again: bool = False) -> str:
    """The name of the file of a block; of one that was measured ``again`` the first keeps its own."""
    return f"block-{index:03d}-{cap}{'-again' if again else ''}.json"


def gone(folder: Path) -> bool:
    """Whether a run folder with a plan is there no more: removed, renamed, or on a disk that was unmounted."""
    return not (folder / "plan.json").exists()


def check_workdir(workdir: Path) -> Path:
    """The folder for scratch files, once it has shown that a mebibyte can be written there."""
    if not workdir.is_dir():
        raise UsageError("workdir", "is no folder", str(workdir))
    try:
        with tempfile.TemporaryFile(dir=workdir) as probe:
            probe.write(b"\0" * (1 << 20))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise UsageError("workdir", f"cannot be written: {error.strerror}", str(workdir)) from None
    return workdir.resolve()


def new_folder(out: Path | None, hostname: str | None) -> tuple[Path, list[Path]]:
    """An empty run folder, ``out`` or ``results/<host>-<UTC time>``, and the folders that were made for it.

    One that holds anything is refused.
    """
    slug = re.sub(r"[^A-Za-z0-9.-]+", "-", hostname or "host").strip("-.")[:40] or "host"
    folder = out or Path("results", f"{slug}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError("out", "is a file, not a folder", str(folder))
        if folder.is_dir() and any(folder.iterdir()):
            what = "holds another run; resume it with --resume" if (folder / "plan.json").exists() else "is not empty"
            raise UsageError("out", f"{what}, or choose another folder", str(folder))
        made = [one.absolute() for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("out", f"cannot be made: {error.strerror}", str(folder)) from None
    return folder.resolve(), made


def make(folder: Path) -> None:
    """Makes the folder of a side of a run."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError("out", f"cannot be made: {error.strerror}", str(folder)) from None


def discard(folder: Path, made: Sequence[Path]) -> None:
    """Removes a run of which nothing was measured: its files from a folder that was empty, and what was made for it."""
    sides = [folder / label for label in "ab"]
    for one in (*sides, folder):
        ours = ("plan.json", "turns.json", "log.jsonl")
        for left in (*(one / name for name in ours), *one.glob("block-*.json"), *one.glob(".*.tmp")):
            left.unlink(missing_ok=True)
    for one in (*sides, *made):
        with contextlib.suppress(OSError):  # not empty: somebody else's
            one.rmdir()


def sweep(folder: Path) -> None:
    """Removes what a killed run left half done: temporary files and scratch folders of the run folder."""
    for left in [*folder.glob(".*.tmp"), *folder.glob(".scratch-*")]:
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    """Writes a document of the run; UsageError with the file's name where that fails."""
    try:
        write_atomic(path, canonical(document))
    except OSError as error:
        raise UsageError("write", f"cannot be written: {error.strerror}", str(path)) from None


def log(folder: Path, event: str, **facts: Any) -> None:
    """Adds a line to the folder's log; a full disk does not stop a run here, but at its next block."""
    line = json.dumps({"utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **facts})
    try:
        with (folder / "log.jsonl").open("a") as out:
            out.write(line + "\n")
    except OSError:
        pass
