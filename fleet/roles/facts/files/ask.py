"""On a host, by its own Python and before anything is installed: ``python -c .. HOME JOB_FOLDER``.

Prints one line of JSON. ``tag``, ``libc`` and ``header`` say which wheels it takes, and whether it could build one.
``state`` is running, with ``ran_s``, where this very job goes on; busy, with ``text``, where another run measures or is
about to; else ready. It is parsed by Pythons that are too old as well: they are told so by their tag.
"""

import errno
import json
import os
import platform
import socket
import sys
import sysconfig
import time
from pathlib import Path

BUSY = "another cpubench run is measuring on this host; wait for its end"


def pid_file(job: Path) -> Path:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return job / f"pid-{boot}"


def goes_on(job: Path) -> bool:
    """Whether the process that a job's folder names is still that job, as ``cpubench.fleet.job`` sees it."""
    try:
        pid = int(pid_file(job).read_text())
        return os.fsencode(str(job)) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False


def measuring() -> bool:
    """Whether a run has the lock of this host, whoever started it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind(b"\0cpubench.run")
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def state(home: Path, job: Path) -> dict:
    if goes_on(job):
        return {"state": "running", "ran_s": round(max(time.time() - pid_file(job).stat().st_mtime, 0.0), 1)}
    if measuring() or any(goes_on(other) for other in home.glob("jobs/*/*")):
        return {"state": "busy", "text": BUSY}
    return {"state": "ready"}


def wheels() -> dict:
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}"
    header = Path(sysconfig.get_paths()["include"], "Python.h").exists()
    return {"tag": tag, "libc": platform.libc_ver()[1] or "0", "header": header}


if __name__ == "__main__":
    print(json.dumps({**wheels(), **state(Path(sys.argv[1]), Path(sys.argv[2]))}))
