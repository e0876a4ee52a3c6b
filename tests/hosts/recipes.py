"""Surroundings in which a run must be whole, have rows with reasons, or be refused: never end in a traceback."""

from __future__ import annotations

import errno
import shlex
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hosts.surroundings import after, as_nobody, by_python, compiled, control_group, denying, joining

import cpubench

# Calls that a container denies, and that a run can do without.
SPARE = ("perf_event_open", "io_uring_setup", "mbind", "set_mempolicy", "get_mempolicy", "sched_setscheduler", "ptrace",
         "sched_getaffinity", "pidfd_open", "membarrier", "statx", "madvise")  # fmt: skip
PACKAGE = shlex.quote(str(Path(cpubench.__file__).parent))
HOSTNAME = b"\xff\x1b[31m/../$(id)\n'"
BARE = {"PATH": "/nonexistent", "HOME": "/nonexistent", "TMPDIR": "/nonexistent", "LANG": "C", "LOCPATH": "{tools}",
        "LC_ALL": "de_DE.UTF-8", "LD_PRELOAD": "{tools}/stepped"}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """What is put before a command, and what must come of it."""

    prefix: list[str] = field(default_factory=list)  # {tools} and {out} stand for folders
    group: tuple[str, dict[str, str]] | None = None  # a controller of v1, and settings of a new group
    refusal: str = ""  # what the one line says of a run that is refused before anything is measured
    reasons: dict[str, str] = field(default_factory=dict)  # kernels without a number, and what their reason says
    quick: dict[str, str] = field(default_factory=dict)  # the same of more kernels, which only a whole run has


def tools(folder: Path) -> Path:
    """The folder, with the programs and the language that recipes need."""
    compiled("deny.c", folder)
    compiled("stepped.c", folder, "-shared", "-fPIC")
    if shutil.which("localedef"):  # without its sources the language is one that is not there, which is odd too
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], capture_output=True,
                       check=False)  # fmt: skip
    return folder


def run(recipe: Recipe, command: list[str], tools: Path, out: Path, timeout_s: float = 60
        ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """The command by a recipe, with the folder of its ``tools`` and the one that runs are written to."""
    prefix = [part.replace("{tools}", str(tools)).replace("{out}", str(out)) for part in recipe.prefix]
    with ExitStack() as stack:
        if recipe.group:
            controller, settings = recipe.group
            prefix = [*joining(stack.enter_context(control_group(controller, **settings))), *prefix]
        return subprocess.run([*prefix, *command], capture_output=True, text=True, errors="surrogateescape", cwd="/",
                              timeout=timeout_s, check=False)  # fmt: skip


def denied(error: int, *calls: str) -> list[str]:
    return denying("{tools}/deny", error, *calls)


def bare() -> list[str]:
    """All is read-only but the run folder, which is noexec; no program in the path, no huge pages, another language, a
    name of the host that is no text, and a wall clock that is stepped all the time."""
    mounts = ("mount --bind '{out}' '{out}'", "mount -o remount,bind,noexec '{out}'", "mount -o remount,bind,ro /")
    changes = (
        f"import ctypes; libc = ctypes.CDLL(None); libc.sethostname({HOSTNAME!r}, {len(HOSTNAME)})\n"
        f"libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE\nos.environ.update({BARE!r})"
    )
    return [*after(*mounts, unshare="-mu"), *by_python(changes)]


_NO_UNSHARE = denied(errno.EPERM, "unshare")
_NOT_PERMITTED = "Operation not permitted"
RECIPES = {
    "spare calls": Recipe(denied(errno.EPERM, *SPARE), reasons={"mem_touch": "madvise EPERM"}),
    "vfork": Recipe(denied(errno.EPERM, "vfork"), reasons={"spawn_vfork_exec": "vfork EPERM"}),
    "no /dev/shm": Recipe([*after("mount -t tmpfs -o ro none /dev/shm"), *_NO_UNSHARE],
                          reasons={"file": "/dev/shm is not writable"}),
    "a tiny /dev/shm": Recipe([*after("mount -t tmpfs -o size=16k none /dev/shm"), *_NO_UNSHARE],
                              reasons={"file": "/dev/shm has 0 MiB"}),
    "little memory": Recipe(group=("memory", {"limit_in_bytes": "200M"}),
                            reasons={"mem_chase": "may hold two thirds of the memory"},
                            quick={"": "may hold two thirds of the memory"}),
    "PID 1": Recipe(["unshare", "-pf", "--mount-proc"]),
    "nobody": Recipe(as_nobody("--nproc=40", "--nofile=24", "--memlock=0"),
                     quick={"file_tree_copy": "openat EMFILE"}),
    "bare": Recipe(bare()),
    "pins denied": Recipe(denied(errno.EPERM, "sched_setaffinity"), refusal=f"sched_setaffinity: {_NOT_PERMITTED}"),
    "pins without effect": Recipe(denied(0, "sched_setaffinity"), refusal="sched_setaffinity: it has no effect"),
    "no memfd": Recipe(denied(errno.EPERM, "memfd_create"), refusal=f"memfd_create: {_NOT_PERMITTED}"),
    "no sockets": Recipe(denied(errno.EAFNOSUPPORT, "socket"), refusal="a second run would not be noticed"),
    "no usage": Recipe(denied(errno.ENOSYS, "getrusage"), refusal="getrusage: Function not implemented"),
    "no prctl": Recipe(denied(errno.EPERM, "prctl"), refusal=f"prctl: {_NOT_PERMITTED}"),
    "no sync": Recipe(denied(errno.EIO, "fsync"), refusal="cannot be written: Input/output error"),
    "few files": Recipe(["prlimit", "--nofile=8"], refusal="cannot be started: Too many open files"),
    "few processes": Recipe(as_nobody("--nproc=8"), refusal="RLIMIT_NPROC: leaves "),
    "few tasks": Recipe(group=("pids", {"max": "4"}), refusal="pids.max: leaves "),
    "noexec": Recipe(after(f"mount --bind {PACKAGE} {PACKAGE}", f"mount -o remount,bind,noexec {PACKAGE}"),
                     refusal="may not be executed: is its file system mounted noexec?"),
}  # fmt: skip
