"""Readings inside of windows, by a process of its own that sleeps between them; ``docs/decisions/0020-*`` says why.

The block starts a Sampler before its copies, asks ``begin`` and ``end`` at the edges of each window, and computes
``energy`` of what ``end`` returns. Outside of windows nothing is read and nothing wakes up.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.power.channel import PERIOD_S, Log, Meter, Reading, dump, load, log_of, now_ns
from cpubench.power.meters import open_meter

START_S = 60.0  # a BMC over a network, a command that starts slowly
# -I keeps the working folder out, and with it an install for one user: its folder is given.
START = "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module(sys.argv[1], run_name='__main__')"
LATE_S = 2.5  # that the line after a window is waited for
ANSWER_S = 30.0  # longer than the longest deadline of a single reading


class Sampler:
    """A meter in a process of its own.

    UsageError where the meter cannot be opened. After that nothing raises: a meter that ends or hangs gives a log
    whose energy has a reason, and the run goes on without watts.
    """

    def __init__(self, name: str, root: Path = ROOT, allow_estimated: bool = False) -> None:
        self._name, self._lost, self._rest = name, "", b""
        command = [
            sys.executable,
            "-I",
            "-c",
            START,
            str(Path(__file__).resolve().parents[2]),
            "cpubench.power.sampler",
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        asked = {"name": name, "root": str(root), "allow_estimated": allow_estimated}  # a command may hold a password
        told = self._ask(json.dumps(asked).encode(), START_S)
        if told is None or "error" in told:
            self.close()
            code, text, where = (told or {}).get("error", ("meter", f"the meter's process ended: {self._lost}", ""))
            raise UsageError(code, text, where)

    def begin(self) -> None:
        """A first reading is taken before this returns; others follow each 0.2 s (slow meters: 5 s)."""
        self._ask(b"begin", ANSWER_S)

    def mark(self) -> None:
        """A reading is taken now, of a meter that takes no time for it: what begins or ends here has an edge then."""
        self._ask(b"mark", ANSWER_S)

    def end(self) -> Log:
        """A last reading is taken after the call; all since ``begin``, and nothing is read any more."""
        told = self._ask(b"end", ANSWER_S)
        if told is None:
            return Log(self._name, "", (), None, (), lost=f"vanished: the meter's process: {self._lost}")
        return load(told)

    def _ask(self, line: bytes, most_s: float) -> dict[str, Any] | None:
        if self._lost:
            return None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
            return self._answer(time.monotonic() + most_s)
        except BrokenPipeError:
            self._lost = "it ended"
        except (OSError, ValueError) as error:
            self._lost = getattr(error, "strerror", None) or "no answer that can be read"
        return None

    def _answer(self, end: float) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
                self._lost = "no answer in time"
                return None
            piece = os.read(fd, 1 << 16)
            if not piece:
                self._lost = "it ended"
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """The process is gone; it closes its meter by itself, within two seconds."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def serve(meter: Meter, asked: int, out: int) -> None:
    """Reads as the lines "begin", "mark" and "end" tell it, until ``asked`` is closed; answers in lines of JSON."""
    readings: list[Reading] | None = None
    newest: list[Reading] = []  # a command prints when it likes: its last line may be older than the window
    due, rest = 0.0, b""
    waiting = select.poll()
    waiting.register(asked, select.POLLIN)
    while True:
        if not waiting.poll(None if readings is None else max(0.0, 1000 * (due - time.monotonic()))):
            assert readings is not None
            readings += meter.read()
            due = max(due + meter.period_s, time.monotonic())
            continue
        piece = os.read(asked, 4096)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line == b"begin":
                readings = newest = (meter.read() or newest)[-1:]
                due = time.monotonic() + meter.period_s
                _tell(out, {})
            elif line == b"mark":
                if readings is not None and meter.period_s <= PERIOD_S:
                    readings += meter.read()
                    due = time.monotonic() + meter.period_s
                _tell(out, {})
            else:
                readings = (readings or []) + _until(meter, now_ns())
                _tell(out, dump(log_of(meter, readings)))
                newest, readings = readings[-1:], None


def _until(meter: Meter, at_ns: int) -> list[Reading]:
    """The readings up to the first one of ``at_ns`` or later, which a command may print a while after it."""
    readings, end = meter.read(), time.monotonic() + LATE_S
    while time.monotonic() < end and (not readings or max(readings[-1].at_ns) < at_ns):
        time.sleep(0.02)
        readings += meter.read()
    return readings


def _tell(out: int, answer: dict[str, Any]) -> None:
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


def _first_line(fd: int) -> bytes:
    """A line, and nothing of what follows: a buffer would hide that from select()."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(fd, 1)):
        line += byte
    return line


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the block closes it when it ends
    asked = json.loads(_first_line(0))
    try:
        meter = open_meter(asked["name"], Path(asked["root"]), asked["allow_estimated"])
    except UsageError as error:
        _tell(1, {"error": [error.code, error.text, error.where]})
        return 0
    gc.freeze()
    gc.disable()  # a collection in the middle of a window would be measured too; readings have no cycles
    _tell(1, {})
    try:
        with contextlib.suppress(BrokenPipeError):
            serve(meter, 0, 1)
    finally:
        meter.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
