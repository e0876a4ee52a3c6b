"""Inside, after a machine that ended in the middle of a cap: the journal of another boot."""

from __future__ import annotations

from lab import guest
from lab.guest import CAP, cpubench, limits


def test_the_journal_of_another_boot_is_told_and_nothing_of_it_is_written():
    guest.load(long_w=200, short_w=200)  # what the last boot set: by its value alone it would be given back
    before = limits()
    (left,) = guest.JOURNALS.glob("cap-*.json")
    assert cpubench("power", "show", "--json").json["journal"]["state"] == "of another boot"
    said = cpubench("power", "set", *CAP)
    assert (said.code, "of another boot" in said.err, left.exists()) == (2, True, True)
    assert cpubench("power", "restore").code == 0
    assert (left.exists(), limits()) == (False, before)


def test_then_this_boot_can_cap():
    guest.load()
    before = limits()
    assert cpubench("power", "set", *CAP, "--", "true").code == 0
    assert limits() == before
