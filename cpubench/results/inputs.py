"""The inputs of a model that a user gives: a TOML file of numbers, each exact or a range."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.parse import located, shown
from cpubench.results.toml import read_toml

MOST = 1e12  # of anything: above is a slip
MAX_ROWS = 64  # speed-ups and nodes


@dataclass(frozen=True)
class Given:
    """A number that goes into a model: its value, its ends where it is uncertain, and where it is from.

    ``kind``: exact; range (a user's, anything in it is as likely); interval (95 % of a measurement); unknown (measured,
    and nothing tells how far off it may be).
    """

    value: float
    low: float | None = None
    high: float | None = None
    kind: str = "exact"
    source: str = "inputs"


Table = dict[str, Given]

# What a table may hold: the least value of each number, the most, and whether the least itself is allowed.
AMOUNT, COUNT, SHARE = (0.0, MOST, True), (0.0, MOST, False), (0.0, 1.0, True)
KEYS: dict[str, dict[str, tuple[float, float, bool]]] = {
    "agent": {"model_s": COUNT, "tools_s": COUNT, "orchestration_s": AMOUNT, "core_s": COUNT,
              "success": (0.0, 1.0, False), "held": SHARE, "times": COUNT, "at_once": COUNT, "stretch": COUNT},
    "gpu": {"count": COUNT, "sequences": COUNT, "price_per_hour": AMOUNT},
    "host": {"cores": COUNT, "agents": COUNT},
    "sandbox": {"vcpus": COUNT, "memory_gib": AMOUNT, "vcpu_price_per_hour": AMOUNT, "gib_price_per_hour": AMOUNT},
    "energy": {"joules": AMOUNT, "price_per_kwh": AMOUNT, "pue": (1.0, 10.0, True)},
    "rack": {"watts": COUNT, "fixed_watts": AMOUNT},
    "node": {"watts": COUNT, "tasks_per_hour": COUNT},
}  # fmt: skip


@dataclass(frozen=True)
class Inputs:
    """A file of inputs: numbers by table, the task that stands for the user's, speed-ups, nodes with their names."""

    tables: dict[str, Table]
    task: str | None
    speedups: list[float]
    nodes: list[tuple[str, Table]]


def load_inputs(path: Path) -> Inputs:
    """The inputs of a file; UsageError says which key of it is not to be used."""
    try:
        return _inputs(read_toml(path, "inputs"))
    except UsageError as fault:
        raise located(path, fault) from None


def _inputs(raw: dict[str, Any]) -> Inputs:
    raw = {name: dict(own) if isinstance(own, dict) else own for name, own in raw.items()}
    speedups = _speedups(raw.pop("speedups", [1.0, 1.5, 2.0, 3.0]))
    rack, agent = raw.get("rack"), raw.get("agent")
    nodes = _nodes(rack.pop("node", [])) if isinstance(rack, dict) else []
    task = agent.pop("task", None) if isinstance(agent, dict) else None
    if not isinstance(task, str | None):
        raise UsageError("inputs", 'is the name of a task, such as "T1"', "agent.task")
    unknown = sorted(set(raw) - (set(KEYS) - {"node"}))
    if unknown:
        raise UsageError("inputs", f"unknown table {shown(unknown[0], 40)}; known are speedups, {', '.join(KEYS)}")
    return Inputs({name: _table(own, name, name) for name, own in raw.items()}, task, speedups, nodes)


def _table(own: Any, kind: str, where: str) -> Table:
    if not isinstance(own, dict):
        raise UsageError("inputs", "is no table", where)
    for key in own:
        if key not in KEYS[kind]:
            raise UsageError("inputs", f"unknown key {shown(key, 40)}; known are {', '.join(KEYS[kind])}", where)
    return {key: _number(value, KEYS[kind][key], f"{where}.{key}") for key, value in own.items()}


def _number(value: Any, limits: tuple[float, float, bool], where: str) -> Given:
    """One number, or [low, high]."""
    ends = value if isinstance(value, list) else [value]
    low, high, closed = limits
    for one in ends:
        if type(one) not in (int, float) or not low <= one <= high or (one == low and not closed):
            raise UsageError("inputs", f"is a number {'from' if closed else 'above'} {low:g} to {high:g}", where)
    if len(ends) == 1:
        return Given(float(ends[0]))
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise UsageError("inputs", "a range is [low, high], the lower end first", where)
    return Given((ends[0] + ends[1]) / 2, float(ends[0]), float(ends[1]), "range")


def _speedups(given: Any) -> list[float]:
    if not isinstance(given, list) or not 0 < len(given) <= MAX_ROWS:
        raise UsageError("inputs", f"are 1 to {MAX_ROWS} numbers, such as [1.0, 1.5, 2.0]", "speedups")
    return sorted({1.0, *(_number(one, (0.01, 1000.0, True), "speedups").value for one in given)})


def _nodes(given: Any) -> list[tuple[str, Table]]:
    if not isinstance(given, list) or len(given) > MAX_ROWS or not all(isinstance(one, dict) for one in given):
        raise UsageError("inputs", f"are at most {MAX_ROWS} tables, each begun by [[rack.node]]", "rack.node")
    nodes: list[tuple[str, Table]] = []
    for at, one in enumerate(given):
        own = dict(one)
        name = own.pop("name", None)
        if not isinstance(name, str) or not name or name in [known for known, _ in nodes]:
            raise UsageError("inputs", "needs a name of its own", f"rack.node[{at}]")
        nodes.append((shown(name, 40), _table(own, "node", f"rack.node[{at}]")))
    return nodes
