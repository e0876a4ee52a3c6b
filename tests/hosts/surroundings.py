"""What can be put around a command on a real machine: mounts, control groups, filters of system calls, other users.

Nothing stays: mounts are those of a namespace, and each control group is removed again.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpubench.host.cgroup import own_groups

HERE = Path(__file__).parent
NOBODY = 65534
# Reading everywhere, since the interpreter may lie in a folder of root's, and nothing else.
CAPABILITIES = "-all,+dac_read_search"


@functools.cache
def may_unshare() -> bool:
    """Whether this process may have mount namespaces of its own."""
    done = subprocess.run(["unshare", "-m", "mount", "--make-rprivate", "/"], capture_output=True, check=False)
    return os.geteuid() == 0 and done.returncode == 0


def compiled(source: str, folder: Path, *options: str) -> Path:
    """A program of this folder, or with -shared a library, built into ``folder``; skipped where no compiler is."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    built = folder / source.removesuffix(".c")
    command = [compiler, "-O1", "-D_GNU_SOURCE", *options, "-o", str(built), str(HERE / source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


def after(*commands: str, unshare: str = "-m") -> list[str]:
    """Before a command: that these have run, in namespaces of their own."""
    script = "; ".join(["mount --make-rprivate /", *commands, 'exec "$@"'])
    return ["unshare", unshare, "sh", "-ec", script, "sh"]


def denying(deny: Path | str, error: int, *calls: str) -> list[str]:
    """Before a command: that these system calls fail with an errno; with 0 they do nothing and say that they did."""
    return [str(deny), str(error), ",".join(calls)]


def as_nobody(*limits: str) -> list[str]:
    """Before a command: another user without any privilege but to read, with these limits of prlimit(1)."""
    change = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    sets = [f"--{kind}={CAPABILITIES}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    return [*change, *sets, *(["prlimit", *limits] if limits else [])]


def by_python(code: str) -> list[str]:
    """Before a command: that an interpreter has run this; the command is in ``sys.argv[1:]``."""
    return [sys.executable, "-I", "-c", f"import os, sys\n{code}\nos.execvp(sys.argv[1], sys.argv[1:])"]


@contextmanager
def control_group(controller: str, *names: str, **settings: str) -> Iterator[Path]:
    """A new group of v1 below the own one, with settings (limit_in_bytes="64M" of memory), and groups inside of it.

    Skipped where v1 has no such controller here.
    """
    own = own_groups([controller]).folders
    top = Path("/", own[0][1]) if own else None
    if top is None or not os.access(top / "cgroup.procs", os.W_OK):
        pytest.skip(f"no control group v1 of {controller} that may be written")
    folders = [top / f"cpubench-test-{os.getpid()}"]
    folders += [folders[0].joinpath(*names[: n + 1]) for n in range(len(names))]
    try:
        for folder in folders:
            folder.mkdir()
        for name, value in settings.items():
            (folders[0] / f"{controller}.{name}").write_text(value)
        yield folders[0]
    finally:
        for folder in reversed(folders):
            _remove(folder)


def _remove(group: Path) -> None:
    """Removes a control group; the kernel takes a moment to let the last process of it go."""
    end = time.monotonic() + 5
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def joining(group: Path) -> list[str]:
    """Before a command: that it is in a control group."""
    return ["sh", "-ec", f'echo $$ > {shlex.quote(str(group))}/cgroup.procs; exec "$@"', "sh"]
