"""An external meter: a command that goes on printing ``UNIX_TIME WATTS``, or ``UNIX_TIME JOULES J``, a line each."""

from __future__ import annotations

import math
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cpubench.errors import UsageError
from cpubench.power import hints, program
from cpubench.power.channel import GAP_S, PERIOD_S, WALL_MAX_W, Channel, Reading, now_ns

FIRST_LINE_S = 15.0  # a meter that is asked over a network starts slowly
MOST_SKEW_S = 10.0  # between its clock and ours when a line arrives; more is no Unix time of now
DOUBTFUL_SKEW_S = 0.2  # MLPerf Power
SEEN_S = 2 * PERIOD_S  # between two looks; when a line came in a longer pause is not known
LONGEST_LINE = 200
LINE = re.compile(rb"\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)[\s,;]+([0-9]{1,15}(?:\.[0-9]{1,9})?(?:[eE][+-]?[0-9]{1,2})?)"
                  rb"\s*(W|J)?\s*")  # fmt: skip


class Line(NamedTuple):
    unix_s: float
    value: float
    unit: str  # W or J


def parse_line(line: bytes) -> Line | None:
    """What a line says; None where it says anything else."""
    found = LINE.fullmatch(line)
    if found is None:
        return None
    value = float(found[2])
    return Line(float(found[1]), value, (found[3] or b"W").decode()) if math.isfinite(value) else None


def channel_of(unit: str, where: str) -> Channel:
    kind, id_ = ("energy", "joules") if unit == "J" else ("power", "watts")
    return Channel(f"external:{id_}", "wall", kind, 1.0, where, max_w=WALL_MAX_W, provenance="external",  # type: ignore[arg-type]
                   gap_s=60.0 if unit == "J" else 5.0)  # fmt: skip


class CommandMeter:
    """The running command. It is started once, its output drained at each read; all it started ends with ``close``."""

    def __init__(
        self, name: str, command: str, clock: Callable[[], int] = now_ns, unix: Callable[[], float] = time.time,
        first_line_s: float = FIRST_LINE_S,
    ) -> None:  # fmt: skip
        self.name, self.scope, self.period_s, self.flags = name, "wall", PERIOD_S, set[str]()
        self.sockets: frozenset[int] | None = None
        self._clock, self._unix, self._rest, self._waiting = clock, unix, b"", list[Line | None]()
        self._looked_s = 0.0
        self._late_s: float | None = None  # the least of the lines whose arrival was seen; below 0: ahead
        if not command.strip() or "\0" in command:
            raise UsageError("meter_command", "no command: give cmd:COMMAND", "--meter")
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self._fd = self._process.stdout.fileno()
        os.set_blocking(self._fd, False)
        try:
            first = self._first(first_line_s)
        except BaseException:
            self.close()
            raise
        self.channels: tuple[Channel, ...] = (channel_of(first.unit, command[:200]),)

    def _first(self, most_s: float) -> Line:
        """Its first lines, of which one must have come at its own time."""
        end, first = time.monotonic() + most_s, b""
        while True:
            left = end - time.monotonic()
            if left <= 0:
                text = f"printed nothing within {most_s:g} s" if not self._waiting else self._off()
                raise UsageError("meter_command", text, "--meter cmd")
            select.select([self._fd], [], [], left)
            lines, ended = self._drain()
            if lines and not self._waiting:
                first, end = lines[0], min(end, time.monotonic() + GAP_S)
            new = [parse_line(line) for line in lines]
            self._look(new, self._unix())
            self._waiting += new
            if self._waiting and self._waiting[0] is None:
                raise UsageError("meter_command", f"printed {first[:60]!r}, not UNIX_TIME WATTS", "--meter cmd")
            told = [line for line in self._waiting if line is not None]
            if told and abs(told[-1].unix_s - self._unix()) > MOST_SKEW_S:
                off = told[-1].unix_s - self._unix()
                text = f"its time is off by {off:.3g} s: Unix seconds are wanted"
                raise UsageError("meter_command", text, "--meter cmd")
            if told and not self._skewed:
                return told[-1]
            if ended:
                text = self._off() if told else f"ended without a reading ({self._end()})"
                raise UsageError("meter_command", text, "--meter cmd")

    def _look(self, lines: Sequence[Line | None], since_s: float) -> None:
        """Nothing; notes how late lines were that came since a look at ``since_s``.

        The least counts: a line may be late by itself, and a clock that is behind makes all of them late.
        """
        now_s = self._unix()
        late = [min(now_s - line.unix_s, max(0.0, since_s - line.unix_s)) for line in lines if line is not None]
        if now_s - since_s > SEEN_S:
            self._late_s, late = None, [one for one in late if one < 0]
        self._late_s = min([*late, *([] if self._late_s is None else [self._late_s])], default=None)
        self._looked_s = now_s

    @property
    def _skewed(self) -> bool:
        return self._late_s is not None and abs(self._late_s) > DOUBTFUL_SKEW_S

    def _off(self) -> str:
        late_s = self._late_s or 0.0
        told = f"come {late_s:.2g} s after" if late_s > 0 else f"came {-late_s:.2g} s before"
        return f"its lines {told} their times: {hints.OF_VALUES['clock_skew']}"

    def _end(self) -> str:
        try:
            return f"status {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return "it closed its output"

    def _drain(self) -> tuple[list[bytes], bool]:
        """The whole lines that have arrived, and whether no more will."""
        data, ended = b"", False
        while len(data) < program.MOST_BYTES:
            try:
                piece = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            if not piece:
                ended = True
                break
            data += piece
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        return [line for line in lines if line.strip()], ended

    def read(self) -> list[Reading]:
        """A reading for each line since the last call; one without a value where a line cannot be read, and where
        the command has ended. The flag clock_skew says that no line since a pause came at its own time."""
        lines, ended = self._drain()
        new = [parse_line(line) for line in lines]
        self._look(new, self._looked_s)
        self.flags = {"clock_skew"} if self._skewed else set()
        now, offset_ns = self._clock(), self._clock() - int(self._unix() * 1e9)
        made = []
        for parsed in (*self._waiting, *new):
            if parsed is None or f"external:{'joules' if parsed.unit == 'J' else 'watts'}" != self.channels[0].id:
                made.append(Reading([now], [None], ["garbage"]))
                continue
            made.append(Reading([int(parsed.unix_s * 1e9) + offset_ns], [parsed.value], [""]))
        self._waiting = []
        if ended:
            made.append(Reading([now], [None], ["vanished"]))
        return made

    def close(self) -> None:
        program.kill(self._process)
