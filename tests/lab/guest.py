"""Inside of the virtual machine: the module with its knobs, registers as files, and the program."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cpubench import entry

ZONES, KNOBS, LAB = Path("/sys/class/powercap"), Path("/sys/module/lab_rapl/parameters"), Path("/lab")
JOURNALS = Path("/run/cpubench")
CAP = ("--watts", "400")  # of the whole machine: 200 W a socket, of the 330 W that it draws under load
FOUND = {"constraint_0_power_limit_uw": 350_000_000, "constraint_1_power_limit_uw": 420_000_000, "enabled": 1}
FINIT_MODULE, DELETE_MODULE = 313, 176  # of x86-64; libc has no functions for them
KNOBS_AT_FIRST = {"locked": 0, "floor_w": 0, "ignore": "N", "failing": "N", "obey": "Y"}


def _call(number: int, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def load(**knobs: object) -> None:
    """The module with these parameters, anew where it is there."""
    unload()
    file = os.open(LAB / "lab_rapl.ko", os.O_RDONLY)
    try:
        _call(FINIT_MODULE, file, " ".join(f"{name}={value}" for name, value in knobs.items()).encode(), 0)
    finally:
        os.close(file)


def unload() -> None:
    if KNOBS.is_dir():
        _call(DELETE_MODULE, b"lab_rapl", os.O_NONBLOCK)


def knob(name: str, value: object) -> None:
    (KNOBS / name).write_text(f"{value}\n")


def figure(text: str) -> None:
    """A line for the report of the lab."""
    with (LAB / "figures").open("a") as file:
        file.write(text + "\n")


def mount_groups() -> None:
    subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)


def drawn_j() -> float:
    """What both packages have drawn since the module was loaded, as the model knows it."""
    return sum(map(int, (KNOBS / "drawn_uj").read_text().split())) / 1e6


def zone(name: str) -> Path:
    """The folder of a zone of the first level, by what the zone calls itself."""
    (found,) = (one for one in ZONES.glob("intel-rapl:*") if (one / "name").read_text() == f"{name}\n")
    return found


def limits() -> dict[str, int]:
    """Every limit and switch, by names of zones."""
    found = {}
    for one in ZONES.glob("intel-rapl:*"):
        parent = one.name.rpartition(":")[0]
        above = "" if parent == "intel-rapl" else (ZONES / parent / "name").read_text().strip() + "/"
        for file in (*one.glob("constraint_*_power_limit_uw"), one / "enabled"):
            found[f"{above}{(one / 'name').read_text().strip()} {file.name}"] = int(file.read_text())
    return found


def registers() -> dict[str, bytes]:
    """The same as they are read, by zone and file."""
    found = {}
    for one in ZONES.glob("intel-rapl:*"):
        name = one.resolve().relative_to((ZONES / "intel-rapl").resolve())
        for file in (*one.glob("constraint_*_limit_uw"), *one.glob("constraint_*_window_us"), one / "enabled"):
            found[f"{name}/{file.name}"] = file.read_bytes()
    return found


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def cpubench(*arguments: str) -> Said:
    """The program, in this process: to start another one takes four seconds here."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = entry.main(arguments)
    return Said(code, out.getvalue(), err.getvalue())


def as_nobody(*arguments: str) -> Said:
    """The program for a user without rights."""
    with contextlib.closing(os.fdopen(os.memfd_create("said"), "r+")) as file:
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                file.write(json.dumps(cpubench(*arguments)))
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        file.seek(0)
        return Said(*json.load(file))


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """The program as a process in a session of its own."""
    return subprocess.Popen([sys.executable, "-m", "cpubench", *arguments], start_new_session=True, cwd="/")


def guardian_of(pid: int) -> int:
    """The guardian of a capper: its child that leads a session."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (found,) = (int(child) for child in children if os.getsid(int(child)) == int(child))
    return found


def seconds_until(done: Callable[[], bool], most_s: float = 30) -> float:
    """How long it took until it was so; fails where it did not come."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < most_s, "it did not come"
        time.sleep(0.01)
    return time.monotonic() - began
