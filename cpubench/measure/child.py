"""Starting the block and calibration processes, and stopping them so that nothing of theirs is left."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from cpubench import _native
from cpubench.errors import UsageError

STOP_S = 5.0
# -I keeps the working folder and the environment out, and with them installs by --user or PYTHONPATH.
START = """
import runpy, sys
group, packages, module = sys.argv[1:4]
del sys.argv[1:4]
if group:
    with open(group, "w") as procs:
        procs.write("0")
sys.path.append(packages)
runpy.run_module(module, run_name="__main__")
"""


@dataclass(frozen=True)
class Installed:
    """A cpubench to measure with: by default this very one, be it in a user's own site folder."""

    python: str = sys.executable
    packages: Path = Path(__file__).resolve().parents[2]  # the folder that its package is in
    settings: dict[str, str] = field(default_factory=dict)  # environment variables that its processes have beside
    group: Path | None = None  # cgroup.procs of the control group that they enter before anything else

    def command(self, module: str, arguments: list[str]) -> list[str]:
        """What runs a module of it as a program."""
        group = "" if self.group is None else str(self.group)
        return [self.python, "-I", "-c", START, group, str(self.packages), module, *arguments]


def run_child(
    module: str, arguments: list[str], workdir: Path, rng: random.Random, installed: Installed | None = None
) -> None:
    """Runs ``module`` in a fresh process with a scratch folder below ``workdir`` and waits for its end.

    UsageError with the child's own line where it fails. When an exception comes in between (an interrupt), the child
    is stopped first: it kills its copies, and its guard removes the scratch folder.
    """
    own = installed or Installed()
    try:
        scratch = tempfile.mkdtemp(prefix=".scratch-", dir=workdir)
    except OSError as error:
        raise UsageError("workdir", f"cannot hold a scratch folder: {error.strerror}", str(workdir)) from None
    # The size of the environment moves the stack, and with it up to several per cent of time (Mytkowicz, ASPLOS 2009):
    # each block draws its own.
    environment = {**os.environ, **own.settings, "CPUBENCH_PADDING": "x" * rng.randrange(4096)}
    command = own.command(module, [*arguments, scratch, str(_native.now_ns()), str(os.getpid())])
    name = module.rpartition(".")[2]
    try:
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise UsageError("child_failed", f"cannot be started: {error.strerror}", name) from None
    try:
        # Its guard holds stderr too: the end of it is the end of all that the child had.
        _, complaint = child.communicate()
    except BaseException:
        stop(child)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if child.returncode:
        lines = complaint.strip().splitlines() or [ended(child.returncode)]
        raise UsageError("child_failed", lines[-1][:300], name)


def ended(code: int) -> str:
    """How a process ended that said nothing, from its exit code as subprocess has it."""
    if code < 0:
        known = {one.value: one.name for one in signal.Signals}
        return f"killed by {known.get(-code, 'signal')} ({-code})"
    return f"ended with status {code}"


def stop(child: subprocess.Popen[str]) -> None:
    """SIGTERM, then SIGKILL where it does not help within five seconds, then the guard's end."""
    child.terminate()
    try:
        child.communicate(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
