"""Kills cappers at random moments and looks how long their limits outlive them: ``kills.py [CAPPERS] [RUNS]``.

Each capper is a process of its own on a tree of files, and goes through set, settle, another level and restore again
and again; runs under caps are in ``killed_runs.py``. Each gets SIGKILL, SIGTERM or SIGINT, or SIGKILL together with its
guardian. Prints one JSON document.
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
CAPPERS, RUNS = 136, 64  # of the torture
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


def capper(root: Path, seed: int, write: Write, lowest_w: int) -> None:
    """Caps and gives back until it is killed; its phase and its guardian's pid are in a file of the root."""
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
            session.apply(open_, random.randrange(lowest_w, 300) * 1_000_000)
            now("restore")


def start(root: Path, seed: int, write: Write, lowest_w: int) -> int:
    """The pid of a capper in a session of its own, with the program's handlers."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        for number in entry.STOPS:
            signal.signal(number, entry._interrupt)
        capper(root, seed, write, lowest_w)
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def kill(
    root: Path, way: str, seed: int, prepare: Callable[[Path], None] = prepare, write: Write = slow_write,
    within_s: float = 0.1, lowest_w: int = 100,
) -> dict[str, object]:  # fmt: skip
    """One capper, killed at a random time: where it was, and the seconds until everything was as before."""
    prepare(root)
    (root / "phase").write_bytes(b"\0         ")
    before, rng = trees.limits(root), random.Random(seed)
    pid = start(root, seed, write, lowest_w)
    while not (root / "phase").read_bytes()[1:].strip():
        time.sleep(0.001)
    time.sleep(rng.random() * within_s)
    at = (root / "phase").read_bytes()
    changed = trees.limits(root) != before
    began = time.monotonic()
    if way == "both":
        kill_guardian(int(at[1:]), pid)
    os.kill(pid, signal.SIGKILL if way == "both" else signal.Signals[way])
    if way == "both":
        os.waitpid(pid, 0)
        took = next_start(root)
    else:
        took = seconds_until(given_back(root, before), began, 2 * LIMIT_S)
        os.waitpid(pid, 0)
    os.close(journal.lock(root))
    good = given_back(root, before)() and took < LIMIT_S
    return {"of": "capper", "way": way, "phase": PHASES[at[0]], "changed": changed, "took_s": took, "good": good}


def given_back(root: Path, before: dict[str, str]) -> Callable[[], bool]:
    """Whether no journal is left and every limit is as before; the journal goes last, and is the cheaper one to see."""
    folder = root / journal.FOLDER
    return lambda: not any(folder.glob("cap-*")) and trees.limits(root) == before


def kill_guardian(guardian: int, parent: int) -> None:
    """Kills the guardian of a capper; the one of a session before may have ended already."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{guardian}/stat").read_text()
        if stat.rpartition(")")[2].split()[1] == str(parent):
            os.kill(guardian, signal.SIGKILL)


def next_start(root: Path) -> float:
    """The seconds that `cpubench power restore` takes, as the next thing that is started."""
    began = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        code = entry.main(["power", "restore", "--root", str(root)])
    return time.monotonic() - began if code == 0 else float("inf")


def seconds_until(done: Callable[[], bool], began: float, most_s: float) -> float:
    """The seconds since ``began`` when ``done()`` was first true; ``most_s`` where it was not until then."""
    while time.monotonic() - began < most_s:
        if done():
            return time.monotonic() - began
        time.sleep(0.002)
    return most_s


def of(rows: list[dict[str, object]]) -> dict[str, object]:
    """What kills of one kind came to."""
    by = {way: [row for row in rows if row["way"] == way] for way in WAYS}
    return {
        "kills": len(rows),
        "given_back": sum(bool(row["good"]) for row in rows),
        "with_a_limit_changed": sum(bool(row["changed"]) for row in rows),
        "phases": Counter(str(row["phase"]) for row in rows),
        "ways": {way: {"kills": len(mine), "given_back": sum(bool(row["good"]) for row in mine),
                       "longest_s": max(float(str(row["took_s"])) for row in mine)}
                 for way, mine in by.items() if mine},
        "bad": [row for row in rows if not row["good"]],
    }  # fmt: skip


def main(cappers: int, runs: int) -> int:
    from power import killed_runs  # which loads what a run needs

    made = {"cappers": (cappers, kill), "runs": (runs, killed_runs.kill)}
    document = {}
    for name, (count, one) in made.items():
        rows = []
        for number in range(count):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(one(Path(folder), WAYS[number % len(WAYS)], number))
        document[name] = of(rows)
    print(json.dumps(document, indent=1))
    return 1 if any(found["bad"] for found in document.values()) else 0


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.modules.setdefault("power.kills", sys.modules[__name__])  # killed_runs takes what is here
    sys.exit(main(*(given or [CAPPERS, RUNS])))
