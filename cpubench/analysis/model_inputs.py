"""What goes into a model: measured by a run, given by the user, or assumed; told apart, and all printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpubench.analysis.draws import drawn
from cpubench.analysis.models import cost, freed, rack, stall
from cpubench.analysis.quantity import Json
from cpubench.errors import UsageError
from cpubench.results.inputs import Given, Inputs, Table
from cpubench.results.states import under_cap

NEEDS: dict[str, dict[str, Sequence[str]]] = {
    "stall": {"agent": ("model_s", "tools_s", "core_s"), "gpu": ("count", "sequences")},
    "cost": {"agent": ("model_s", "tools_s", "core_s"), "gpu": ("sequences", "price_per_hour"),
             "sandbox": ("vcpus", "vcpu_price_per_hour")},
    "rack": {"rack": ("watts",)},
}  # fmt: skip
ASSUMED = {
    "agent": {"orchestration_s": 0.0, "success": 1.0, "held": 1.0, "stretch": 1.0},
    "sandbox": {"memory_gib": 0.0, "gib_price_per_hour": 0.0},
    "energy": {"joules": 0.0, "price_per_kwh": 0.0, "pue": 1.0},
    "rack": {"fixed_watts": 0.0},
    "gpu": {}, "host": {},
}  # fmt: skip
UNITS = {"model_s": "s", "tools_s": "s", "orchestration_s": "s", "core_s": "core-s", "watts": "W", "fixed_watts": "W",
         "tasks_per_hour": "1/h", "joules": "J", "memory_gib": "GiB", "vcpus": "vCPU", "cores": "cores"}  # fmt: skip
MEASURED = {"tools_s": "wall_s", "core_s": "core_seconds_per_task"}
USED = {"stall": ("agent", "gpu", "host"), "cost": ("agent", "gpu", "sandbox", "energy"), "rack": ("rack",)}


def model(name: str, inputs: Inputs, runs: Sequence[tuple[str, Json]]) -> Json:
    """The document of a model. ``runs`` are names and documents of tasks (``analysis.tasks``), one for `stall` and
    `cost`, for `rack` one for each node whose tasks per hour the inputs leave out, in their order.

    UsageError names what is missing.
    """
    notes = [f"{label} was done under {document['cap']['level']}: {document['cap']['state']}"
             for label, document in runs if under_cap(document)]  # fmt: skip
    notes += [f"{label} is an estimate: too few repeats for verdicts" for label, one in runs if one["estimate"]]
    tables = {key: dict(inputs.tables.get(key, {})) for key in USED[name]}
    nodes = inputs.nodes
    if name == "rack":
        nodes = _measured_nodes(nodes, runs)
        # With an agent and GPUs, what a faster CPU frees of these is told too.
        if {"agent", "gpu"} <= set(inputs.tables):
            tables |= {key: dict(inputs.tables[key]) for key in ("agent", "gpu")}
            notes += _measured(tables["agent"], inputs.task, [])
    elif len(runs) > 1:
        raise UsageError("runs", f"model {name} is of one run; {len(runs)} were given")
    else:
        notes += _measured(tables["agent"], inputs.task, runs)
    needs = NEEDS[name] | (NEEDS["stall"] if "agent" in tables and name == "rack" else {})
    for table, keys in needs.items():
        for key in keys:
            if key not in tables[table]:
                raise UsageError("inputs", f"{_lack(key, runs)} (model {name} needs it)", f"{table}.{key}")
    for table, own in tables.items():
        for key, value in ASSUMED[table].items():
            own.setdefault(key, Given(value, source="assumed"))
    made = _computed(name, tables, nodes, inputs.speedups)
    listed = [(f"{table}.{key}", one) for table, own in tables.items() for key, one in own.items()]
    listed += [(f"{label}.{key}", one) for label, own in (nodes if name == "rack" else []) for key, one in own.items()]
    return {"model": name, "inputs": _listed(listed), **made, "notes": notes}


def _lack(key: str, runs: Sequence[tuple[str, Json]]) -> str:
    return "is missing: give it" + (", or a run of tasks that measured it" if key in MEASURED and not runs else "")


def _computed(name: str, tables: Mapping[str, Table], nodes: Sequence[tuple[str, Table]], speedups: Sequence[float]
              ) -> Json:  # fmt: skip
    if name == "stall":
        return stall(drawn(tables), speedups)
    if name == "cost":
        return cost(drawn(tables), speedups)
    room = tables["rack"]["watts"].value - tables["rack"]["fixed_watts"].value
    if room <= 0:
        raise UsageError("inputs", "leaves no watts for nodes", "rack.fixed_watts")
    # The same names as tables, so that every node has draws of its own.
    every = drawn({**tables, **{f"node {at}": own for at, (_, own) in enumerate(nodes)}})
    made = rack(every, [(label, every[f"node {at}"]) for at, (label, _) in enumerate(nodes)])
    return made | {"gpus_freed": freed(every, speedups) if "agent" in tables else []}


def _measured(agent: Table, task: str | None, runs: Sequence[tuple[str, Json]]) -> list[str]:
    """Notes, after putting into ``agent`` what the run tells of its task and the inputs do not say."""
    times, at_once = agent.pop("times", Given(1.0, source="assumed")), agent.pop("at_once", None)
    if at_once is not None and (at_once.low is not None or not at_once.value.is_integer()):
        raise UsageError("inputs", "is one whole number of agents, as T4 has levels", "agent.at_once")
    if not runs:
        if at_once is not None and "stretch" not in agent:
            raise UsageError(
                "inputs", "needs a run of tasks, for `stall` or `cost`: give agent.stretch", "agent.at_once"
            )
        return ["agent.times was not used: tools_s and core_s are given"] if times.source != "assumed" else []
    label, document = runs[0]
    row = _row(document, task or "T1")
    for key, name in MEASURED.items():
        if key in agent:
            continue
        _check_whole(label, row, f"give agent.{key}")
        found = row[name]
        if found["value"] is None:
            raise UsageError(
                "run", f"{label}: {row['task']} has no {name} ({found['reason']}): give it", f"agent.{key}"
            )
        source = f"{label}, {row['task']}" + (f", {times.value:g} times" if times.value != 1 else "")
        ends = (found["low"], found["high"])
        low, high = (None if end is None else end * times.value for end in ends)
        kind = "unknown" if None in ends else "interval"
        agent[key] = Given(found["value"] * times.value, low, high, kind, source)
    if at_once is not None and "stretch" not in agent:
        agent["stretch"] = _stretch(label, document, at_once.value)
    notes = []
    if times.low is not None:
        notes.append("agent.times is a range: its middle was taken")
    return notes


def _row(document: Json, task: str) -> Json:
    rows = [row for row in document["tasks"] if task in (row["task"], row["task"].partition("[")[0])]
    whole: list[Json] = [row for row in rows if not row["skipped"]]
    if not rows:
        names = ", ".join(row["task"] for row in document["tasks"])
        raise UsageError("task", f"{task!r} is not in the run, which has {names}", "agent.task")
    return (whole or rows)[0]


def _stretch(label: str, document: Json, agents: float) -> Given:
    """How many times as long as alone the median step of so many agents took."""
    levels = {row["agents"]: row for row in document["tasks"] if row["task"].startswith("T4")}
    row = levels.get(int(agents))
    if row is not None:
        _check_whole(label, row, "give agent.stretch")
    if row is None or row["stretch"]["p50"] is None:
        why = f"has no T4 of {agents:g} agents, but of {sorted(levels)}" if row is None else "has too few steps"
        raise UsageError("run", f"{label} {why}: give agent.stretch", "agent.at_once")
    return Given(row["stretch"]["p50"], kind="unknown", source=f"{label}, {row['task']}, median step")


def _check_whole(label: str, row: Json, instead: str) -> None:
    """UsageError where some repeat of a row failed: those that a timeout spared would be the fast ones."""
    if row["failures"]:
        text = f"{label}: {row['task']} failed in {row['failures']} of {row['repeats']} repeats: {instead}"
        raise UsageError("run", text)


def _measured_nodes(nodes: Sequence[tuple[str, Table]], runs: Sequence[tuple[str, Json]]) -> list[tuple[str, Table]]:
    """Nodes with tasks per hour: those that lack them take the runs, in order."""
    left = list(runs)
    made = []
    for label, own in nodes:
        table = dict(own)
        if "tasks_per_hour" not in table:
            if not left:
                raise UsageError("inputs", "is missing: give it, or a run of tasks for this node",
                                 f"node {label}.tasks_per_hour")  # fmt: skip
            table["tasks_per_hour"] = _per_hour(*left.pop(0))
        if "watts" not in table:
            raise UsageError("inputs", "is missing: the watts of the whole node at that work", f"node {label}.watts")
        made.append((label, table))
    if left:
        raise UsageError("runs", f"{len(left)} more than there are nodes without tasks_per_hour")
    if not made:
        raise UsageError("inputs", "has no [[rack.node]]; each needs a name and watts", "rack")
    return made


def _per_hour(label: str, document: Json) -> Given:
    """Tasks per hour of a host at the most agents whose steps take at most twice as long as alone."""
    agents = document["density"]["agents"]
    row = next((row for row in document["tasks"] if row["task"].startswith("T4") and row["agents"] == agents), None)
    found = row["tasks_per_hour"] if row else None
    if row is None or found is None or found["value"] is None:
        why = found["reason"] if found else document["density"]["reason"]
        raise UsageError("run", f"{label} tells no tasks per hour of many agents ({why}): give tasks_per_hour")
    _check_whole(label, row, "give tasks_per_hour")
    kind = "unknown" if found["low"] is None else "interval"
    return Given(found["value"], found["low"], found["high"], kind, f"{label}, {row['task']}")


def _listed(given: Sequence[tuple[str, Given]]) -> Json:
    made: Json = {"measured": [], "user": [], "assumed": []}
    for name, one in given:
        kind = {"inputs": "user", "assumed": "assumed"}.get(one.source, "measured")
        made[kind].append({"name": name, "value": one.value, "low": one.low, "high": one.high,
                           "unit": UNITS.get(name.rpartition(".")[2]), "source": one.source,
                           "kind": one.kind})  # fmt: skip
    return made
