"""What stands in the limits of this host before anything is measured: of ours, and as it was found."""

from __future__ import annotations

from cpubench.errors import UsageError
from cpubench.power import journal
from cpubench.power.registers import Host
from cpubench.power.session import Session, left_behind


def in_force(host: Host, told: bool = False) -> None:
    """UsageError where limits of ours are set now, by whomever: what is measured then is not this host as it is.

    ``told``: somebody says that there is a cap; then only limits that nobody gives back are in the way.
    """
    left = journal.load(host.root)
    if left is None or (told and (left.kept or journal.owner_lives(host.root, left))):
        return
    if journal.owner_lives(host.root, left) and not left.kept:
        text = f"process {left.pid} caps this host: wait for its end, or say --cap-external WATTS"
        raise UsageError("busy", text, str(journal.place(host.root, left.boot_id)))
    left_behind(host)


def as_found(session: Session) -> dict[str, int]:
    """What each register that a cap is written to held before any write, by key; switches too."""
    every = [x for one in session.controls for x in (*one.capped, *([one.enable] if one.enable else []))]
    return {limit.key: limit.value for limit in every if limit.value is not None}
