"""Giving limits back: only what still holds a value of ours is written, and all of it is read back."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from cpubench.errors import NotGivenBack
from cpubench.power import caps, registers
from cpubench.power.journal import Entry, Journal, remove
from cpubench.power.registers import Host


@dataclass(frozen=True)
class Outcome:
    """What became of one register; ``command`` is what a person would type to have the old value."""

    key: str
    state: str  # given back, as before, conflict, failed
    text: str
    command: str

    @property
    def good(self) -> bool:
        return self.state in ("given back", "as before")


def give_back(host: Host, journal: Journal, force: bool = False) -> list[Outcome]:
    """The old value in every register of the journal that holds a value of ours (``force``: any value).

    The journal is removed where each of them has its old value again, else it stays. Doing it twice changes nothing.
    """
    found, _ = caps.find(host, frequency=any(entry.key.startswith("cpufreq/") for entry in journal.entries))
    # Found anew by name: after a CPU was taken away and came back a zone may have another number.
    places = {x.key: x.place for one in found for x in (*one.limits, *([one.enable] if one.enable else []))}
    outcomes: list[Outcome] = []
    stuck = set()  # the groups whose switch was off and does not go off again
    for entry in _in_order(journal.entries):
        outcomes.append(_one(host, entry, journal.entries, places, force, entry.group in stuck))
        if _was_off(entry) and not outcomes[-1].good:
            stuck.add(entry.group)
    if all(outcome.good for outcome in outcomes):
        remove(host.root, journal)
    return outcomes


def check(outcomes: Iterable[Outcome]) -> None:
    """NotGivenBack, with the commands, where a register has not its old value."""
    bad = [outcome for outcome in outcomes if not outcome.good]
    if bad:
        said = "; ".join(f"{outcome.key}: {outcome.text}" for outcome in bad)
        by_hand = "; ".join(outcome.command for outcome in bad)
        raise NotGivenBack(said, f"try `cpubench power restore`, or by hand as root: {by_hand}")


def _in_order(entries: list[Entry]) -> list[Entry]:
    """Limits before switches, and short_term first: given back means raised, and short is never below long.

    A zone that was off goes off before: its limits may have been 0 W, and the host would stand still under them.
    """
    last = {"enabled": 2, "long_term": 1}
    return sorted(entries, key=lambda entry: -1 if _was_off(entry) else last.get(entry.constraint, 0))


def _was_off(entry: Entry) -> bool:
    return entry.constraint == "enabled" and entry.old == 0


def _same(value: int, other: int, step: int) -> bool:
    return abs(value - other) < step


def _one(
    host: Host, entry: Entry, entries: list[Entry], places: dict[str, str], force: bool, stuck: bool
) -> Outcome:  # fmt: skip
    command = registers.by_hand(host, places.get(entry.key, entry.place), entry.old)
    place = places.get(entry.key)
    if place is None:
        return Outcome(entry.key, "failed", "is not there any more", command)
    try:
        now = registers.read(host, place)
        if _same(now, entry.old, entry.step):
            return Outcome(entry.key, "as before", f"holds {entry.old}", command)
        if not force and not any(_same(now, value, entry.step) for value in entry.ours):
            text = f"holds {now}, which is neither ours ({entry.ours[-1]}) nor what was found ({entry.old}): left alone"
            return Outcome(entry.key, "conflict", text, command)
        if stuck and entry.old < now:
            return Outcome(entry.key, "failed", f"its zone stays on, where {entry.old} would be in force", command)
        _write(host, entry, place, entries, places)
        got = registers.read(host, place)
    except OSError as error:
        return Outcome(entry.key, "failed", f"{error.strerror}", command)
    if not _same(got, entry.old, entry.step):
        return Outcome(entry.key, "failed", f"holds {got} after {entry.old} was written", command)
    return Outcome(entry.key, "given back", f"holds {entry.old} again", command)


def _write(host: Host, entry: Entry, place: str, entries: list[Entry], places: dict[str, str]) -> None:
    """Writes the old value; a zone that is switched off and takes no limits (ENODATA) is switched on for it."""
    try:
        registers.write(host, place, entry.old)
    except OSError as error:
        mine = [one for one in entries if one.group == entry.group and one.constraint == "enabled"]
        if error.errno != errno.ENODATA or not mine or mine[0].key not in places:
            raise
        switch = places[mine[0].key]
        before = registers.read(host, switch)
        registers.write(host, switch, 1)
        try:
            registers.write(host, place, entry.old)
        finally:
            with suppress(OSError):
                registers.write(host, switch, before)
