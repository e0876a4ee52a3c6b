"""What comparing needs of the windows of a run: logs of rates per core and of watts, per cap level and pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpubench.analysis.composite import Array, log
from cpubench.analysis.levels import levels_of, over_cap
from cpubench.analysis.rates import divisors
from cpubench.results.names import row_key
from cpubench.results.records import Run


@dataclass(frozen=True)
class Curve:
    """One cap level of a run. Rows by key, watts by family; NaN where a pass has none."""

    state: str  # over_cap where passes drew more than the cap, whatever was shown before them
    per_core: dict[str, Array]  # of windows, as rates of samples are elsewhere
    whole: dict[str, Array]  # of the whole host, of rows that are metered
    watts: dict[str, Array]
    errors: dict[str, str]
    reasons: dict[str, str]  # why a family has no watts


@dataclass(frozen=True)
class Curves:
    """The meter of a run, what its caps limit, and its levels."""

    meter: str
    scope: str
    provenance: str
    cap_scope: str
    levels: dict[str, Curve]


def curves_of(run: Run) -> Curves | None:
    """The levels of a run; None where it has neither a meter nor caps."""
    power = run.plan.powered
    if power is None:
        return None
    cores, states = divisors(run.plan), {level.name: level.state for level in power.levels}
    found = {}
    for cap, windows in levels_of(run, rows=False).items():
        rates = {key: log(values) for key, values in windows.ops_per_s.items()}
        found[cap] = Curve(
            "over_cap" if over_cap(run.plan, cap, windows) else states.get(cap, "unknown"),
            {key: logs - np.log(cores[key]) for key, logs in rates.items() if key in cores},
            {key: rates[key] for key in windows.metered}, {f: log(w) for f, w in windows.watts.items()},
            windows.errors, windows.reasons,
        )  # fmt: skip
    return Curves(power.meter, power.scope, power.provenance, power.cap_scope, found)


def key_of(name: str) -> str:
    """The key of a row in windows, which are of all copies."""
    return row_key(name, "cores")
