"""What a faster CPU is worth: GPU time that is not waited away, racks under a power budget, cost of a finished task.

Symbols, per attempt at a task: G seconds of the model, C seconds of tools on the critical path, O of orchestration and
network, H core-seconds, p the share of attempts that succeed; B sequences that a GPU serves at once, phi the part of
the tools' time in which a sequence's place on the GPU stays reserved (1: held, 0: given to others at once). A CPU that
is s times as fast divides C and H by s. Under load tools take ``stretch`` times as long as alone, at the same H. Bounds
are those of closed queueing networks (Denning and Buzen, 1978, operational analysis): no station does more than its
capacity, no user more than one task at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cpubench.analysis.draws import Array, told
from cpubench.analysis.quantity import Json

Drawn = Mapping[str, Mapping[str, Array]]
HOUR_S = 3600.0


def attempt(drawn: Drawn, speedup: float) -> dict[str, Array]:
    """Seconds and core-seconds of one attempt on a CPU that is ``speedup`` times as fast: G, C, O, H, T, and how long a
    place on the GPU is taken."""
    agent = drawn["agent"]
    model, other, held = agent["model_s"], agent["orchestration_s"], agent["held"]
    tools = agent["tools_s"] * agent["stretch"] / speedup
    return {"model_s": model, "tools_s": tools, "orchestration_s": other, "core_s": agent["core_s"] / speedup,
            "task_s": model + tools + other, "taken_s": model + held * (tools + other)}  # fmt: skip


def rate(drawn: Drawn, one: Mapping[str, Array]) -> dict[str, Array]:
    """Attempts per second that the places on the GPUs, the cores and the agents allow; inf where not given."""
    gpu, host = drawn["gpu"], drawn.get("host", {})
    unlimited = np.full_like(one["task_s"], np.inf)
    return {"GPU": gpu["count"] * gpu["sequences"] / one["taken_s"],
            "cores": host["cores"] / one["core_s"] if "cores" in host else unlimited,
            "agents": host["agents"] / one["task_s"] if "agents" in host else unlimited}  # fmt: skip


def stall(drawn: Drawn, speedups: Sequence[float]) -> Json:
    """By speed-up: time of a task, share of a GPU's place that waits, attempts per hour, cores; and what limits.

    ``stall`` is of one place: phi (C + O) / (G + phi (C + O)). ``gpu_idle`` is of all GPUs at the attempts that are
    reached: 1 - X G / (n B). ``cores_per_gpu`` never starve one: B H / G. ``cores_to_fill`` is what keeps all places
    of all GPUs in work; with fewer, the speed-up of the break-even fills them.
    """
    first, gpu, host = attempt(drawn, 1.0), drawn["gpu"], drawn.get("host", {})
    rows = []
    for speedup in speedups:
        one = attempt(drawn, speedup)
        bounds = rate(drawn, one)
        least = np.minimum.reduce(list(bounds.values()))
        waited = one["taken_s"] - one["model_s"]
        rows.append({
            "speedup": speedup, "limit": min(bounds, key=lambda name: float(bounds[name][0])),
            "task_s": told(one["task_s"]), "gain": told(first["task_s"] / one["task_s"]),
            "stall": told(waited / one["taken_s"]),
            "gpu_idle": told(1 - least * one["model_s"] / (gpu["count"] * gpu["sequences"])),
            "attempts_per_hour": told(least * HOUR_S),
            "completed_per_hour": told(least * HOUR_S * drawn["agent"]["success"]),
            "cores_busy": told(least * one["core_s"]),
            "cores_per_gpu": told(gpu["sequences"] * one["core_s"] / one["model_s"]),
            "cores_to_fill": told(bounds["GPU"] * one["core_s"]),
        })  # fmt: skip
    fixed = first["model_s"] + first["orchestration_s"]
    even = {
        "what": "cores that keep every place of the GPUs in work, at speed-up 1",
        "cores": told(rate(drawn, first)["GPU"] * first["core_s"]),
        "speedup": _speedup_to_fill(drawn) if "cores" in host else None,
    }
    return {"rows": rows, "gain_limit": told(first["task_s"] / fixed), "break_even": even}


def _speedup_to_fill(drawn: Drawn) -> Json:
    """The speed-up at which the cores keep up with the GPUs' places: n B H / s <= K (G + phi (C / s + O)), solved."""
    agent, gpu = drawn["agent"], drawn["gpu"]
    places, cores = gpu["count"] * gpu["sequences"], drawn["host"]["cores"]
    fixed, tools = agent["model_s"] + agent["held"] * agent["orchestration_s"], agent["tools_s"] * agent["stretch"]
    return told(np.maximum((places * agent["core_s"] / cores - agent["held"] * tools) / fixed, 0.0))


def freed(drawn: Drawn, speedups: Sequence[float]) -> list[Json]:
    """GPUs that the same number of attempts needs no more: X phi C (1 - 1/s) / B, X filling all at speed-up 1."""
    agent, gpu = drawn["agent"], drawn["gpu"]
    attempts = rate(drawn, attempt(drawn, 1.0))["GPU"]
    saved_s = agent["held"] * agent["tools_s"] * agent["stretch"]
    return [{"speedup": s, "gpus": told(attempts * saved_s * (1 - 1 / s) / gpu["sequences"])} for s in speedups]


def cost(drawn: Drawn, speedups: Sequence[float]) -> Json:
    """By speed-up: money per completed task, by part; and the price of a vCPU at which the faster CPU costs the same.

    A sandbox is paid as long as the task lasts, whether or not its CPUs work: ``waste`` is the ratio of
    vCPU-seconds that are reserved to those that are used.
    """
    sandbox, energy, success = drawn["sandbox"], drawn["energy"], drawn["agent"]["success"]
    before = np.add.reduce(list(_spent(drawn, 1.0).values()))
    rows = []
    for speedup in speedups:
        spent, one = _spent(drawn, speedup), attempt(drawn, speedup)
        hours = sandbox["vcpus"] * one["task_s"] / HOUR_S
        others = spent["gpu"] + spent["memory"] + spent["energy"]
        whole = others + spent["vcpu"]
        rows.append({
            "speedup": speedup, "task_s": told(one["task_s"]), **{name: told(part) for name, part in spent.items()},
            "per_attempt": told(whole), "per_completed": told(whole / success),
            "per_completed_used": told((whole - spent["vcpu"] + sandbox["vcpu_price_per_hour"] * one["core_s"] / HOUR_S)
                                       / success),
            "waste": told(sandbox["vcpus"] * one["task_s"] / one["core_s"]),
            "break_even_vcpu_price": told((before - others) / hours),
        })  # fmt: skip
    return {"rows": rows,
            "break_even": {"what": "price of a vCPU-hour at which an attempt costs what it costs at speed-up 1"},
            "energy_counted": bool(np.any(energy["joules"] * energy["price_per_kwh"]))}  # fmt: skip


def _spent(drawn: Drawn, speedup: float) -> dict[str, Array]:
    """Money per attempt. Joules are taken as given: a faster CPU's are those that were measured on it."""
    gpu, sandbox, energy, one = drawn["gpu"], drawn["sandbox"], drawn["energy"], attempt(drawn, speedup)
    hours = one["task_s"] / HOUR_S
    return {
        "gpu": gpu["price_per_hour"] / (HOUR_S * gpu["sequences"]) * one["taken_s"],
        "vcpu": sandbox["vcpu_price_per_hour"] * sandbox["vcpus"] * hours,
        "memory": sandbox["gib_price_per_hour"] * sandbox["memory_gib"] * hours,
        "energy": energy["joules"] / 3.6e6 * energy["price_per_kwh"] * energy["pue"],
    }


def rack(drawn: Drawn, nodes: Sequence[tuple[str, Mapping[str, Array]]]) -> Json:
    """Whole nodes under the rack's watts, tasks per hour and per kW, joules per task, each against the first node.

    ``amplification`` is the ratio of tasks per watt; the rack's own ratio also has what is left over below one node.
    The break-even is the watts of a node at which its rack does as much as the first's, nodes being divisible.
    """
    room = np.maximum(drawn["rack"]["watts"] - drawn["rack"]["fixed_watts"], 0.0)
    rows: list[Json] = []
    first: Mapping[str, Array] | None = None
    for name, node in nodes:
        watts, per_hour = node["watts"], node["tasks_per_hour"]
        count = np.floor(room / watts)
        own = {"total": count * per_hour, "per_watt": per_hour / watts}
        first = first or own
        rows.append({
            "node": name, "nodes": told(count), "node_tasks_per_hour": told(per_hour), "node_watts": told(watts),
            "tasks_per_hour": told(own["total"]), "tasks_per_hour_per_kw": told(1000 * own["per_watt"]),
            "joules_per_task": told(HOUR_S / own["per_watt"]),
            "amplification": told(own["per_watt"] / first["per_watt"]),
            "rack_ratio": told(own["total"] / _positive(first["total"]), "none of the first fits"),
            "unused_watts": told(room - count * watts),
            "break_even_watts": told(per_hour / first["per_watt"]),
        })  # fmt: skip
    return {"rows": rows, "break_even": {"what": "watts of a node at which its rack does what the first node's does"}}


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)
