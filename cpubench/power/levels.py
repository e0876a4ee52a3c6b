"""Cap levels as a person gives them, and the watts that they come to: pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cpubench.errors import UsageError

AS_IS = "as-is"
FORMS = "give watts (250W), a share of the uncapped power (70%), as-is or proxy:freq=2.4GHz"
LEAVE = "; as-is leaves the limits alone"
SCOPES = ("wall", "board", "package", "soc", "module", "superchip")  # of one limit: none is of a sum
MOST_W = 100_000.0  # a whole rack; more is a slip of the unit
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_WATTS = re.compile(rf"{_NUMBER}\s*W", re.IGNORECASE)
_BARE = re.compile(rf"{_NUMBER}\s*W?", re.IGNORECASE)
_PERCENT = re.compile(rf"{_NUMBER}\s*%")
_FREQUENCY = re.compile(rf"proxy:freq={_NUMBER}\s*([MG])Hz", re.IGNORECASE)


@dataclass(frozen=True)
class Level:
    """One cap level: at most one of watts, per cent of the measured uncapped power, and kHz is set; as-is has none."""

    name: str  # "250W", "70%", "as-is", "proxy:freq=2.4GHz"
    watts: float | None = None
    percent: float | None = None
    khz: int | None = None


@dataclass(frozen=True)
class External:
    """A cap that somebody else has set: watts of the whole host, and what they are of."""

    watts: float
    scope: str = "wall"  # as a BMC limits

    @property
    def text(self) -> str:
        return f"{self.watts:.12g}W:{self.scope}"


def parse_level(text: str, where: str = "--cap") -> Level:
    """The level that ``text`` says; UsageError in one line for anything else."""
    plain = text.strip()
    if plain.lower() == AS_IS:
        return Level(AS_IS)
    if match := _WATTS.fullmatch(plain):
        watts = _watts(match[1], text, where, LEAVE)
        return Level(f"{watts:.12g}W", watts=watts)
    if match := _PERCENT.fullmatch(plain):
        percent = _positive(match[1], text, where, LEAVE)
        if percent > 100:
            raise UsageError("level", f"{text[:40]!r} is no cap: at most 100% of the uncapped power", where)
        return Level(f"{percent:.12g}%", percent=percent)
    if match := _FREQUENCY.fullmatch(plain):
        value = _positive(match[1], text, where, LEAVE)
        khz = round(value * (1e6 if match[2] in "Gg" else 1e3))
        return Level(f"proxy:freq={value:.12g}{match[2].upper()}Hz", khz=khz)
    if plain.startswith("proxy:quota"):
        raise UsageError("level", "a CPU quota is set from outside: `systemd-run -p CPUQuota=..`; it is told", where)
    raise UsageError("level", f"{text[:40]!r} is no cap level: {FORMS}", where)


def parse_watts(text: str, where: str) -> float:
    """Watts above 0, with or without their unit."""
    match = _BARE.fullmatch(text.strip())
    if match is None:
        raise UsageError("level", f"{text[:40]!r} is no number of watts: give 250 or 250W", where)
    return _watts(match[1], text, where)


def parse_external(text: str, where: str = "--cap-external") -> External:
    """The cap of a text such as 600W, 600W:package or 600; UsageError in one line for anything else."""
    watts, colon, scope = text.strip().partition(":")
    if colon and scope not in SCOPES:
        raise UsageError("level", f"{text[:40]!r}: say what it limits by one of {', '.join(SCOPES)}: 600W:wall", where)
    return External(parse_watts(watts, where), scope or SCOPES[0])


def _watts(digits: str, text: str, where: str, instead: str = "") -> float:
    watts = _positive(digits, text, where, instead)
    if watts > MOST_W:
        raise UsageError("level", f"{text[:40]!r} is above {MOST_W:.0f} W, which no host draws: check unit", where)
    return watts


def _positive(digits: str, text: str, where: str, instead: str = "") -> float:
    value = float(digits)
    if value <= 0:
        raise UsageError("level", f"{text[:40]!r}: a cap is above 0{instead}", where)
    return value


def total_w(level: Level, uncapped_w: float | None, where: str = "--cap") -> float | None:
    """The host's watts at a level; None for as-is and proxies. ``uncapped_w`` is what the load drew without a cap."""
    if level.percent is None:
        return level.watts
    if uncapped_w is None:
        raise UsageError("level", f"{level.name} needs a meter of the cap's own scope: give watts instead", where)
    return uncapped_w * level.percent / 100


def share_uw(
    watts: float, zones: int, step_uw: int, low_uw: int | None, high_uw: int | None,
    idle_w: float | None = None, where: str = "--cap",
) -> int:  # fmt: skip
    """The microwatts of each of ``zones``, rounded down to the register's step.

    UsageError outside of what a zone takes, or below the ``idle_w`` of the host: that cannot be enforced.
    """
    each = int(watts * 1_000_000 / zones) // step_uw * step_uw
    text = f"{watts:g} W is {each / 1e6:g} W for each of {zones} zone{'s' if zones > 1 else ''}"
    if each <= 0:
        raise UsageError("level", f"{text}: less than the {step_uw / 1e6:g} W that a register can hold", where)
    if high_uw is not None and each > high_uw:
        raise UsageError("level", f"{text}, above the maximum of {high_uw / 1e6:g} W there: choose less", where)
    if low_uw is not None and each < low_uw:
        raise UsageError("level", f"{text}, below the minimum of {low_uw / 1e6:g} W there: choose more", where)
    if idle_w is not None and watts < idle_w:
        raise UsageError("level", f"{watts:g} W is below the idle power of {idle_w:.1f} W: choose more", where)
    return each
