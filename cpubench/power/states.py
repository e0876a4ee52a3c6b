"""What is known of a cap: one word for each row of a result, and the sentence that a person reads."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a cap level; only ``verified`` supports a claim of efficiency at that cap."""

    VERIFIED = "verified"
    SET_UNVERIFIED = "set_unverified"
    NOT_BINDING = "not_binding"
    OVER_CAP = "over_cap"
    IGNORED = "ignored"
    CLAMPED = "clamped"
    LOCKED = "locked"
    REFUSED = "refused"
    UNSUPPORTED = "unsupported"
    EXTERNAL_CLAIM = "external_claim"
    PROXY = "proxy"

    @property
    def sentence(self) -> str:
        return SENTENCES[self]


SENTENCES = {
    State.VERIFIED: "the cap was measured: under a full load the watts stay below it, and the load is slower for it",
    State.SET_UNVERIFIED: "the limit is set and reads back; that it holds was not shown",
    State.NOT_BINDING: "the host draws less than the cap by itself: the row says nothing of efficiency at a cap",
    State.OVER_CAP: "the limit is set, and the host draws more than it allows",
    State.IGNORED: "the write was taken, and the register still holds its old value",
    State.CLAMPED: "the hardware took another value than was asked for",
    State.LOCKED: "the firmware has locked the limit: what stands is the firmware's; change it in the BIOS",
    State.REFUSED: "the kernel refused the write; every limit is as before",
    State.UNSUPPORTED: "no limit can be set here",
    State.EXTERNAL_CLAIM: "somebody says that there is a cap; that it holds the host was not shown",
    State.PROXY: "a limit of frequency or CPU time, which is no power cap",
}
CAP_CHANGED = "cap_changed"  # the flag of results since the last good look at the limits
CAP_CHANGED_SENTENCE = "something else changed a limit meanwhile: results since the last look at it do not count"
CLAMP_CHANGED = "clamp_changed"
CLAMP_CHANGED_SENTENCE = (
    "a switch was written that also lets the cap reach below the base clock, and cannot be read: a reboot undoes that"
)
