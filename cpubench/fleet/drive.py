"""The controller: which host is started, looked at and finished when. What touches a host is the engine's.

A run goes on without the controller, so that one which is stopped loses nothing: the next takes up what runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cpubench.fleet.layout import ASIDE, VISITS, Cell, cell_folder, outcome_file
from cpubench.fleet.receive import taken, verdict
from cpubench.fleet.state import not_tried, write, write_failure
from cpubench.fleet.told import Told
from cpubench.results.files import canonical
from cpubench.results.parse import shown

Json = dict[str, Any]
MISSES = 3  # looks in a row at which a host does not answer: then it is given up


class Engine(Protocol):
    """Plays over hosts, several at a time; ``wait`` returns what was told meanwhile, after so many seconds at most."""

    def start(self, cells: Sequence[Cell]) -> None: ...
    def finish(self, cells: Mapping[Cell, bool]) -> None: ...
    def incoming(self, cell: Cell) -> Path: ...
    def free(self) -> bool: ...
    def wait(self, seconds: float) -> list[Told]: ...


@dataclass(frozen=True)
class Times:
    """Seconds: of a run, until it is ended, between looks, and for which hosts are gathered into one play."""

    expected_s: float
    deadline_s: float
    poll_s: float = 60.0
    gather_s: float = 2.0


@dataclass
class Going:
    """A cell under way; ``due_s`` is when its host is looked at next, and never while a play is there."""

    cell: Cell
    began_s: float
    due_s: float = math.inf
    misses: int = 0
    stopping: bool = False
    visits_s: list[float] = field(default_factory=list)  # since it began, while it was measuring


@dataclass
class Round:
    """All that a call of ``fleet run`` knows."""

    plan: Json
    fleet: Path
    groups: Mapping[str, str]  # the power group of each host; its own name where it has none
    queue: list[Cell]
    engine: Engine
    times: Times
    now: Callable[[], float]
    say: Callable[[str], None]
    note: Callable[[list[Cell]], None] = lambda cells: None  # of what is under way, whenever that changes
    left: set[str] = field(default_factory=set)  # hosts at which an earlier controller left a run under way
    going: dict[str, Going] = field(default_factory=dict)
    held: dict[str, tuple[Cell, float]] = field(default_factory=dict)  # groups: what may go on there, and until when
    done: int = 0


def drive(round_: Round) -> None:
    """Nothing; each cell of the queue has a result or a failure afterwards. A dead or slow host delays nobody else."""
    one, gather = round_, 0.0
    while one.queue or one.going:
        now = one.now()
        ready, due = startable(one), [going for going in one.going.values() if going.due_s <= now]
        if not (ready or due):
            gather = now + one.times.gather_s
        elif one.engine.free() and now >= gather:
            _send(one, ready, due, now)
            gather = now + one.times.gather_s
            continue
        until = min([going.due_s for going in one.going.values()] + [end for _, end in _held(one)], default=math.inf)
        if ready or due:
            until = gather if one.engine.free() else math.inf
        for told in one.engine.wait(min(max(until - now, 0.01), 600.0)):
            _hear(one, told)
            if told.phase == "start" or told.host not in one.going:
                _note(one)


def startable(one: Round) -> list[Cell]:
    """The next cell of each host that does nothing, in the plan's order, one host of each power group."""
    busy = {one.groups[host] for host in one.going} | {one.groups[cell.host] for cell, _ in _held(one)}
    found = []
    for cell in one.queue:
        if one.groups[cell.host] not in busy:
            busy.add(one.groups[cell.host])
            found.append(cell)
    return found


def _held(one: Round) -> list[tuple[Cell, float]]:
    """The runs that may still go on at hosts that were given up, each until then at most: it ends itself."""
    return [(cell, end) for cell, end in one.held.values() if end > one.now()]


def _send(one: Round, ready: Sequence[Cell], due: Sequence[Going], now: float) -> None:
    if due:
        for going in due:
            going.due_s = math.inf
            going.stopping = now - going.began_s > one.times.deadline_s
        one.engine.finish({going.cell: going.stopping for going in due})
    if ready:
        started = set(ready)
        one.queue[:] = [cell for cell in one.queue if cell not in started]
        one.going |= {cell.host: Going(cell, now) for cell in ready}
        _note(one)  # before: a controller that is killed now has started them
        one.engine.start(ready)


def _note(one: Round) -> None:
    one.note([going.cell for going in one.going.values()] + [cell for cell, _ in _held(one)])


def _hear(one: Round, told: Told) -> None:
    going, now = one.going[told.host], one.now()
    cell = going.cell
    if told.phase == "start":
        if told.state in ("started", "running", "done"):
            expected_s, ran_s = one.times.expected_s, 0.0
            if told.state == "running":  # an earlier controller started it, and this login was one in mid-run
                ran_s = _seconds(told.outcome.get("ran_s"))
                going.visits_s.append(round(ran_s, 1))
            least_s = min(one.times.poll_s, expected_s) if told.state == "running" else 0.0
            going.began_s = now - ran_s
            going.due_s = now if told.state == "done" else now + max(expected_s - ran_s, least_s)
            one.left.discard(cell.host)
            one.say(f"{_name(cell)}: {told.state}")
        else:
            kind = told.state if told.state in ("unreachable", "busy") else "preflight refused"
            if told.state == "busy" or told.begun or cell.host in one.left:
                _hold(one, going)
            _fail(one, cell, kind, told.text, aside=True)
    elif told.state == "unreachable":
        going.misses += 1
        if going.misses >= MISSES or going.stopping:
            _hold(one, going)
            _fail(one, cell, "unreachable", f"in mid-run: {told.text}", aside=True)
        else:
            going.due_s = now + one.times.poll_s
    elif told.state == "running" and not going.stopping:
        going.misses, going.due_s = 0, now + one.times.poll_s
        going.visits_s.append(round(now - going.began_s, 1))
    elif told.state == "failed":
        _hold(one, going)
        _fail(one, cell, "timed out" if going.stopping else "bad result", told.text, aside=True)
    else:
        _ended(one, going, told)


def _ended(one: Round, going: Going, told: Told) -> None:
    """A run is over: its result is taken, or how it failed is stored, or both where a limit was not given back."""
    cell = going.cell
    if "sha256" in told.outcome and not told.fetched:
        text = f"the result stays on the host: {told.text or 'it was not fetched'}"
        failed: tuple[str, str] | None = verdict(told.outcome) or ("bad result", text)
    else:
        failed = taken(told.outcome, one.engine.incoming(cell), cell, one.plan, one.fleet)
    visits = {"visits_s": going.visits_s, "took_s": told.outcome.get("took_s")}
    write(cell_folder(one.fleet, cell) / VISITS, canonical(visits))
    if failed:
        if failed[0] == "busy":  # another run had the host, and may have it still
            _hold(one, going)
        _fail(one, cell, *failed, aside=failed[0] in ASIDE)
    else:
        del one.going[cell.host]
        one.done += 1
        one.say(f"{_name(cell)}: done")
    outcome_file(one.engine.incoming(cell)).unlink(missing_ok=True)  # last: until here all that is known of it


def _fail(one: Round, cell: Cell, kind: str, text: str, aside: bool) -> None:
    """Stores the failure; of a host that is set aside, its other cells are not tried in this call."""
    one.going.pop(cell.host, None)
    write_failure(one.fleet, cell, kind, text or "no reason was told")
    one.say(f"{_name(cell)}: {kind}: {shown(text)}")
    if aside:
        for other in [other for other in one.queue if other.host == cell.host]:
            write_failure(one.fleet, other, kind, not_tried(cell, text))
        one.queue[:] = [other for other in one.queue if other.host != cell.host]


def _hold(one: Round, going: Going) -> None:
    """Keeps others of its power group from being measured until a run that may still go on has ended itself."""
    group, end = one.groups[going.cell.host], going.began_s + one.times.deadline_s
    others = [host for host, its in one.groups.items() if its == group and host != going.cell.host]
    if others and end > one.now():
        one.held[group] = going.cell, end
        one.say(f"{_name(going.cell)}: a run may go on; {shown(group, 60)} waits for {end - one.now():.0f} s")


def _seconds(value: Any) -> float:
    """What a host says of a time; 0 for any that is none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < 1e9 else 0.0


def _name(cell: Cell) -> str:
    return f"{cell.host} {cell.cap} repeat {cell.repeat}"
