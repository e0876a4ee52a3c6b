"""Each case inside of the virtual machine begins and ends with the limits of a machine that was just switched on."""

from __future__ import annotations

import pytest


@pytest.fixture
def as_found():
    """The limits, none of them ours; the same after the case, and no journal."""
    from lab import guest

    guest.load()
    for left in guest.JOURNALS.glob("cap-*"):  # of a case that failed
        left.unlink()
    before = guest.limits()
    assert {key: before[f"package-1 {key}"] for key in guest.FOUND} == guest.FOUND
    yield before
    for name, value in guest.KNOBS_AT_FIRST.items():
        guest.knob(name, value)
    assert (guest.limits(), list(guest.JOURNALS.glob("cap-*"))) == (before, [])
