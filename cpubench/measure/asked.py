"""What ``cpubench run`` was asked for in watts and caps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cpubench.analysis.cells import BASE_CAP, EXTERNAL
from cpubench.errors import UsageError
from cpubench.host.fact import ROOT
from cpubench.power.channel import LATER
from cpubench.power.levels import External, Level, parse_external, parse_level


@dataclass(frozen=True)
class Asked:
    """What ``cpubench run`` was asked for beyond a plain run; ``meter`` None: the host's own, where a cap wants one."""

    levels: tuple[Level, ...] = ()
    external: External | None = None
    meter: str | None = None
    allow_estimated: bool = False
    root: Path = ROOT
    times: str | None = None

    @property
    def capped(self) -> list[Level]:
        """The levels that are written."""
        return [level for level in self.levels if level.name != BASE_CAP]

    @property
    def names(self) -> list[str]:
        """The levels of the plan."""
        named = [level.name for level in self.levels]
        return named if self.external is None else [*named, f"{EXTERNAL}{self.external.text}"]

    @property
    def anything(self) -> bool:
        return bool(self.names) or self.meter not in (None, "none")


def asked_of(
    caps_: Sequence[str], cap_external: str | None, meter: str | None, allow_estimated: bool, root: Path,
    times: str | None = None,
) -> Asked:  # fmt: skip
    """What the options mean; UsageError in one line for those that cannot be meant."""
    levels = tuple(parse_level(text) for text in caps_)
    external = None if cap_external is None else parse_external(cap_external)
    made = Asked(levels, external, meter, allow_estimated, root, times)
    twice = next((name for at, name in enumerate(made.names) if name in made.names[:at]), None)
    if twice is not None:
        raise UsageError("level", f"{twice} is given twice", "--cap")
    if len({level.khz is not None for level in made.capped}) > 1:
        raise UsageError("level", "limits of power and of frequency are runs of their own", "--cap")
    if external is not None and len(made.capped) < len(levels):
        raise UsageError("level", "as-is is under the external cap too: leave one of them out", "--cap")
    if external is not None and any(level.percent is not None for level in levels):
        raise UsageError("level", "per cent are of the power without any cap, which an external one hides", "--cap")
    if meter in ("none", LATER) and any(level.percent is not None for level in levels):
        raise UsageError("level", "per cent need a meter of the cap's own scope: give watts instead", "--cap")
    return made
