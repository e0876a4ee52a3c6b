"""Kills cappers at random moments and looks how long their limits outlive them: ``python tests/power/kills.py [N]``.

Each capper is a process of its own on a tree of files, and goes through set, settle, another level and restore again
and again. It gets SIGKILL, SIGTERM or SIGINT, or SIGKILL together with its guardian. Prints one JSON document.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from power import limit_trees as trees

from cpubench import entry
from cpubench.power import journal, session
from cpubench.power.registers import Host

WAYS = ("SIGKILL", "SIGTERM", "SIGINT", "both")
PHASES = ("start", "set", "settle", "change", "restore")
LIMIT_S = 2.0
Write = Callable[[Path, str], None]


def pause() -> None:
    """Up to a millisecond, before and after each write, so that kills come between writes too."""
    time.sleep(random.random() / 1000)


def slow_write(path: Path, text: str) -> None:
    pause()
    trees.store(path, int(text))
    pause()


def prepare(root: Path) -> None:
    """Two packages of which one is off."""
    trees.xeon(root)
    (root / trees.POWERCAP / "intel-rapl:a/enabled").write_text("0\n")


def capper(root: Path, seed: int, write: Write) -> None:
    """Caps and gives back until it is killed; its phase and its guardian's pid are in files of the root."""
    random.seed(seed)
    phase = os.open(root / "phase", os.O_RDWR | os.O_CREAT)

    def now(name: str) -> None:
        os.pwrite(phase, bytes([PHASES.index(name)]), 0)

    while True:
        now("start")
        with session.capping(Host(root, write)) as open_:
            now("set")
            session.apply(open_, 200_000_000)
            os.pwrite(phase, b"%9d" % open_.guardian.pid, 1)
            now("settle")
            time.sleep(0.01)
            now("change")
            session.apply(open_, random.randrange(100, 300) * 1_000_000)
            now("restore")


def start(root: Path, seed: int, write: Write) -> int:
    """The pid of a capper in a session of its own, with the program's handlers."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        for number in entry.STOPS:
            signal.signal(number, entry._interrupt)
        capper(root, seed, write)
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def kill(
    root: Path, way: str, seed: int, prepare: Callable[[Path], None] = prepare, write: Write = slow_write,
    within_s: float = 0.1, limit_s: float = LIMIT_S,
) -> dict[str, object]:  # fmt: skip
    """One capper, killed at a random time: where it was, and the seconds until everything was as before."""
    prepare(root)
    (root / "phase").write_bytes(b"\0         ")
    before, rng = trees.limits(root), random.Random(seed)
    pid = start(root, seed, write)
    while not (root / "phase").read_bytes()[1:].strip():
        time.sleep(0.001)
    time.sleep(rng.random() * within_s)
    at = (root / "phase").read_bytes()
    changed = trees.limits(root) != before
    began = time.monotonic()
    if way == "both":
        with contextlib.suppress(OSError):  # the guardian of the session before has ended already
            stat = Path(f"/proc/{int(at[1:])}/stat").read_text()
            if stat.rpartition(")")[2].split()[1] == str(pid):
                os.kill(int(at[1:]), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL if way == "both" else signal.Signals[way])
    if way == "both":
        os.waitpid(pid, 0)
        took = next_start(root)
    else:
        took = seconds_until(lambda: trees.limits(root) == before and journal.load(root) is None, began, 2 * limit_s)
        os.waitpid(pid, 0)
    os.close(journal.lock(root))
    good = trees.limits(root) == before and journal.load(root) is None and took < limit_s
    return {"way": way, "phase": PHASES[at[0]], "changed": changed, "took_s": took, "good": good}


def next_start(root: Path) -> float:
    """The seconds that `cpubench power restore` takes, as the next thing that is started."""
    began = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        code = entry.main(["power", "restore", "--root", str(root)])
    return time.monotonic() - began if code == 0 else float("inf")


def seconds_until(done: object, began: float, most_s: float) -> float:
    """The seconds since ``began`` when ``done()`` was first true; ``most_s`` where it was not until then."""
    while time.monotonic() - began < most_s:
        if done():  # type: ignore[operator]
            return time.monotonic() - began
        time.sleep(0.001)
    return most_s


def main(kills: int) -> int:
    rows = []
    for number in range(kills):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(kill(Path(folder), WAYS[number % len(WAYS)], number))
    document = {
        "kills": kills,
        "given_back": sum(bool(row["good"]) for row in rows),
        "with_a_limit_changed": sum(bool(row["changed"]) for row in rows),
        "phases": Counter(str(row["phase"]) for row in rows),
        "longest_s": {way: max(float(str(r["took_s"])) for r in rows if r["way"] == way) for way in WAYS[:kills]},
        "bad": [row for row in rows if not row["good"]],
    }
    print(json.dumps(document, indent=1))
    return 0 if document["given_back"] == kills else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
