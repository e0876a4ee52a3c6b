"""The records of windows, watts and caps; a run without meter and caps holds none of them.

Fields that are UNSET are not in the file: runs without watts stay as they were before there were any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from cpubench.results.fields import Count, Name, Positive, Sha256
from cpubench.results.names import row_key, row_name

Watts = Annotated[float, Meta(ge=0)]
CSV = "csv"  # the meter whose watts are merged afterwards (cpubench.power.clocks)


class Window(Struct, frozen=True, kw_only=True):
    """A contiguous all-copies measurement of one family, after its variants ran unmeasured for ``settle_ns``."""

    family: Name
    settle_ns: Count
    length_ns: Positive


class Channel(Struct, frozen=True, kw_only=True):
    """One counter or series of watts of a meter (``cpubench.power.channel.Channel``)."""

    id: str
    scope: Name
    kind: Literal["energy", "power"]
    unit: Annotated[float, Meta(gt=0)]  # joules, or watts, of one raw count
    path: str = ""
    socket: Count | None = None
    die: Count | None = None
    part: str = ""
    range_raw: Count | None = None
    max_w: Annotated[float, Meta(gt=0)]
    gap_s: Annotated[float, Meta(gt=0)]
    provenance: Literal["measured", "modelled", "estimated", "external"]
    rank: int = 0
    mirrors: bool = False


class PowerLog(Struct, frozen=True, kw_only=True):
    """What a meter said in a while, raw: of each reading the times, the values and the codes of errors by channel."""

    meter: Name
    scope: Name
    channels: list[Channel]
    sockets: list[Count] | None
    readings: list[tuple[list[Count], list[int | float | None], list[str]]]
    flags: list[Name]
    lost: str = ""
    clock: list[tuple[Count, Count]] | UnsetType = UNSET  # moments on the clock of the samples and as Unix time


class WindowCell(Struct, frozen=True, kw_only=True):
    kernel: Name
    params: Name
    t0_ns: Count
    t1_ns: Count
    copy_ops: list[Count]
    copy_elapsed_ns: list[Count]
    error: str | None
    metered: bool = False  # it ran while energy was read for the window: kernels with untimed hooks do not
    obtained: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return row_key(row_name(self.kernel, self.params), "cores")


class WindowResult(Struct, frozen=True, kw_only=True):
    family: Name
    t0_ns: Count
    t1_ns: Count
    cells: list[WindowCell]
    freq_khz: list[Count] = field(default_factory=list)  # of the plan's CPUs at the end of it; empty: not told
    log: PowerLog | UnsetType = UNSET


class Limits(Struct, frozen=True, kw_only=True):
    """The power limits around a block of a run with caps: what they should hold, and what they held."""

    settle_ns: Count  # between the setting of the level and the start of the block
    asked: dict[str, Count]  # by register: uW, kHz, or 0 and 1 of a switch
    steps: dict[str, Positive]  # less apart is the same value
    before: dict[str, Count | None]  # None: it could not be read
    after: dict[str, Count | None]

    @property
    def changed(self) -> list[str]:
        """A sentence for each register that did not hold what it should."""
        found = []
        for when, held in (("before", self.before), ("after", self.after)):
            for key, asked in self.asked.items():
                got = held.get(key)
                if got is None or abs(got - asked) >= self.steps.get(key, 1):
                    found.append(f"{key}: holds {'nothing readable' if got is None else got}, not {asked}, {when} it")
        return found

    def unlike(self, found: Mapping[str, int]) -> list[str]:
        """A sentence for each register that should have held another value than ``found``."""
        keys = dict.fromkeys((*self.asked, *found))
        values = [(key, self.asked.get(key), found.get(key)) for key in keys]
        return [f"{key}: {'nothing' if then is None else then} then, {'nothing' if now is None else now} now"
                for key, then, now in values
                if then is None or now is None or abs(now - then) >= self.steps.get(key, 1)]  # fmt: skip


class Level(Struct, frozen=True, kw_only=True):
    """A cap level as it was found to work before the first pass (``cpubench.power.states``)."""

    name: Name  # as in the plan's caps
    state: Name
    text: str
    watts: Watts | None = None  # of the whole host, as it is set; None: no limit of power
    value: Count | None = None  # asked of each register: uW, or kHz
    scope: Name | UnsetType = UNSET  # what the cap limits
    drawn_w: Watts | None = None  # by a full load under it
    uncapped_w: Watts | None = None  # by the same without it
    evidence: list[Name] = field(default_factory=list)
    flags: list[Name] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """The state that it was shown to have. ``verified(external)`` was once said of a load that drew no more than
        the cap; without the watts of before the cap that is a claim."""
        return "external_claim" if self.state == "verified(external)" and self.uncapped_w is None else self.state


class Merged(Struct, frozen=True, kw_only=True):
    """The CSV that the watts of a run are from."""

    sha256: Sha256
    rows: Positive
    unit: Name
    offset_s: float | None  # that was added to its times; None: they were taken as they are
    run_sha256: Sha256  # of the run without watts that was measured


class Power(Struct, frozen=True, kw_only=True):
    """How a run measures watts and sets caps; in its plan."""

    meter: Name  # "": none; a command or a URL is not told, it may hold a password
    problem: str = ""  # why there is no meter
    scope: Name = ""
    provenance: Name = ""
    cap_scope: Name = ""  # what the caps limit; "": nothing is capped
    settle_ns: Count  # after a change of level, before the block
    idle_ns: Count  # at rest, before the first and after the last pass
    uncapped_ns: Count  # of the load without a cap
    verify_ns: Count  # of the load under each cap
    total_ns: Count  # of window that each family gets at each level, over the fewest passes
    shortened: bool = False  # these times are not the profile's own
    levels: list[Level] = field(default_factory=list)
    idle: PowerLog | UnsetType = UNSET  # before the first pass
    boot_id: Name | UnsetType = UNSET  # of the boot in which the caps were shown to hold
    merged: Merged | UnsetType = UNSET  # of the meter "csv": without it its watts are still to come

    @property
    def comes_later(self) -> bool:
        """Whether the watts are merged after the run: while it ran they decided nothing."""
        return self.meter == CSV
