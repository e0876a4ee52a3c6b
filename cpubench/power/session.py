"""Caps for a while: set, looked at, changed, and given back whatever happens.

What gives back: the end of ``capping``, by whatever exception (the program turns SIGINT, SIGTERM and SIGHUP into one);
else the guardian, when this process is gone; else the next start, which finds the journal.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from cpubench.errors import UsageError
from cpubench.power import caps, giveback, guardian, journal, proxies, registers
from cpubench.power.controls import Control, Limit
from cpubench.power.guardian import Guardian
from cpubench.power.journal import Entry, Journal
from cpubench.power.registers import Host
from cpubench.power.states import State


@dataclass
class Session:
    host: Host
    controls: Sequence[Control]  # as they were found, before any write
    lock: int
    journal: Journal
    guardian: Guardian | None = None


@dataclass(frozen=True)
class Applied:
    """What became of a write to all zones; every limit is as before unless the state is set_unverified or proxy."""

    state: State
    value: int  # asked of each register: uW, or kHz
    read: dict[str, int]  # what each holds, by key
    text: str = ""

    @property
    def stands(self) -> bool:
        return self.state in (State.SET_UNVERIFIED, State.PROXY)


@contextmanager
def capping(host: Host, frequency: bool = False, auto_restore: bool = False) -> Iterator[Session]:
    """A session of the only capper of this host; at its end every limit is as it was found.

    UsageError before anything is changed where nothing can be capped or limits of another session were left behind;
    NotGivenBack at the end where a register has not its old value.
    """
    lock = journal.lock(host.root)
    try:
        left_behind(host, auto_restore)
        if frequency:
            controls, problems = proxies.frequency_controls(host), [caps.NOTHING]
        else:
            controls, problems = caps.choose(host)
        if not controls:
            worst = problems[0]
            raise UsageError(worst.code, f"no cap can be set: {worst.hint}", worst.path)
        _check_permission(host, controls)
        journal.check_outlives(host.root)
        session = Session(host, controls, lock, journal.new(host.root))
        try:
            yield session
        finally:
            try:
                _end(session)
            except KeyboardInterrupt:  # the program makes at most one of signals: from the start, which changes nothing
                _end(session)
                raise
    finally:
        os.close(lock)


def left_behind(host: Host, auto_restore: bool = False) -> None:
    """UsageError where a journal is left; with ``auto_restore`` what it says is given back instead."""
    left = journal.load(host.root)
    if left is None:
        return
    where = str(journal.place(host.root, left.boot_id))
    if left.boot_id != journal.boot_id(host.root):
        text = "is of another boot, whose limits ended with it; `cpubench power restore` removes it"
        raise UsageError("stale", text, where)
    if auto_restore and not left.kept:
        giveback.check(giveback.give_back(host, left))
    elif left.kept:
        raise UsageError("kept", f"limits set by `cpubench power set` are in force; {journal.RESTORE}", where)
    else:
        raise UsageError("stale", f"process {left.pid} ended without giving its limits back; {journal.RESTORE}", where)


def _check_permission(host: Host, controls: Sequence[Control]) -> None:
    for control in controls:
        for limit in control.capped:
            if not registers.writable(host, limit.place):
                raise UsageError("permission", "is not writable for this user: run as root", f"/{limit.place}")


def apply(session: Session, value: int) -> Applied:
    """Writes ``value`` (uW, or kHz) to every zone and reads it back; all zones or none.

    UsageError, with nothing changed, where the journal cannot be written; NotGivenBack where a part cannot be undone.
    """
    for control in session.controls:
        for limit in (*control.capped, *_switch(control)):
            _note(session, control, limit, 1 if limit.constraint == "enabled" else value)
    if session.guardian is None or not guardian.lives(session.guardian):
        session.guardian = None
        session.guardian = guardian.start(session.host, session.lock)
    journal.save(session.host.root, session.journal)
    result = _write_all(session, value)
    if not result.stands:
        give_back(session)
    return result


def give_back(session: Session) -> None:
    """The limits as they were found; the session can go on. NotGivenBack where one of them is not."""
    if session.journal.entries:
        giveback.check(giveback.give_back(session.host, session.journal))
        session.journal.entries = []


def keep(session: Session) -> None:
    """Leaves the limits set after the end of the session, for ``cpubench power restore``.

    The journal on disk says so first: whatever ends this before it does, the end of the session gives them back.
    """
    journal.save(session.host.root, replace(session.journal, kept=True))
    session.journal.kept = True


def changed(session: Session) -> list[str]:
    """What something else changed since the last write, a sentence for each register."""
    found = []
    for entry in session.journal.entries:
        try:
            now = registers.read(session.host, entry.place)
        except OSError as error:
            found.append(f"{entry.key}: {error.strerror}")
            continue
        if abs(now - entry.ours[-1]) >= entry.step:
            found.append(f"{entry.key}: holds {now}, not {entry.ours[-1]}")
    return found


def switch_on(session: Session) -> None:
    """Writes 1 to the switch of every zone once more, which also lets the cap reach below the base clock.

    The result then has the flag ``clamp_changed``: that old bit can be neither read nor given back.
    """
    for control in session.controls:
        if control.enable is not None:
            with suppress(OSError):  # then the cap is as it was: over_cap
                registers.write(session.host, control.enable.place, 1)


def _end(session: Session) -> None:
    """Gives back and dismisses the guardian, which stays where an interrupt comes in between."""
    fault = None
    if not session.journal.kept:
        try:
            give_back(session)
        except UsageError as error:
            fault = error
    if session.guardian is not None:
        last, session.guardian = session.guardian, None
        guardian.dismiss(last)
    if fault is not None:
        raise fault


def _switch(control: Control) -> list[Limit]:
    """The zone's switch where it is off. One that is on is not written: that would set its clamp bit too, for good."""
    return [control.enable] if control.enable is not None and control.enable.value == 0 else []


def _note(session: Session, control: Control, limit: Limit, value: int) -> None:
    """Adds to the journal that a register may hold ``value`` soon."""
    step = 1 if limit.constraint == "enabled" else control.step
    for entry in session.journal.entries:
        if entry.key == limit.key:
            entry.ours = [*(one for one in entry.ours[-1:] if one != value), value]
            return
    try:
        old = registers.read(session.host, limit.place)  # now: the load without a cap may have taken half a minute
    except OSError as error:
        raise UsageError("unreadable", f"holds nothing to give back: {error.strerror}", f"/{limit.place}") from None
    session.journal.entries.append(Entry(limit.key, limit.place, control.key, limit.constraint, old, [value], step))


def _write_all(session: Session, value: int) -> Applied:
    read: dict[str, int] = {}
    for control in session.controls:
        try:
            _write_zone(session, control, value, read)
        except OSError as error:
            locked = error.errno == errno.ENODATA or (error.errno == errno.ENOSYS and bool(_switch(control)))
            state = State.LOCKED if locked else State.REFUSED
            return Applied(state, value, read, f"{control.zone}: {error.strerror}")
    for entry in session.journal.entries:
        wanted = 1 if entry.constraint == "enabled" else value
        got = read.get(entry.key, wanted)
        if abs(got - wanted) >= entry.step:
            state = State.IGNORED if abs(got - entry.old) < entry.step else State.CLAMPED
            return Applied(state, value, read, f"{entry.key}: holds {got} after {wanted} was written")
    proxy = any(control.scope == "proxy:freq" for control in session.controls)
    return Applied(State.PROXY if proxy else State.SET_UNVERIFIED, value, read)


def _write_zone(session: Session, control: Control, value: int, read: dict[str, int]) -> None:
    """Lowering goes from long_term to short_term, raising the other way. A zone that is off is switched on last.

    Its limits may be 0 W while it is off: switched on first, the host would stand still until they are written. Where
    they cannot be written while it is off (ENODATA), they can be afterwards.
    """
    raising = value > registers.read(session.host, control.capped[0].place)
    order = list(control.capped)[:: -1 if raising else 1]
    switch = _switch(control)
    try:
        for limit in order:
            _put(session, limit, value, read)
    except OSError as error:
        if error.errno != errno.ENODATA or not switch:
            raise
        _put(session, switch[0], 1, read)
        for limit in order:
            _put(session, limit, value, read)
        return
    for limit in switch:
        _put(session, limit, 1, read)


def _put(session: Session, limit: Limit, value: int, read: dict[str, int]) -> None:
    """Writes a register and reads it back at once: another value than was written is ours too, and in the journal."""
    registers.write(session.host, limit.place, value)
    got = read[limit.key] = registers.read(session.host, limit.place)
    entry = next(entry for entry in session.journal.entries if entry.key == limit.key)
    if abs(got - value) >= entry.step:
        entry.ours.append(got)
        journal.save(session.host.root, session.journal)
