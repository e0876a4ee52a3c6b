"""What a run of tasks does, and how long it will take: profiles, numbers of agents at once, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.measure.asked import Asked
from cpubench.results.records import Divisor
from cpubench.results.task_records import paced_cpus
from cpubench.tasks import burst_steps, catalogue
from cpubench.tasks.catalogue import Task

# Seconds of one repeat on two CPUs of a virtual machine, alone on it; a run says better after its first round.
TOOK_S = {"T0": 0.5, "T1": 4.0, "T1b[serial]": 3.1, "T1b[parallel]": 1.9, "T2[process]": 15.2, "T2[server]": 1.8,
          "T3": 0.7, "T3[runc]": 1.5, "T3[runsc]": 3.0, "T5": 1.3}  # fmt: skip
STARTING_S = 0.25  # of a repeat: its process, and the removal of its files
READY_S = {"T4": 0.7, "T5": 0.02, "T6": 0.3, "T3": 0.02}  # CPU time until an agent stands at its place
AROUND_S = {"T4": 3.7, "T5": 2.5, "T6": 3.0, "T3": 2.5}  # of a window: ramp, preparation, what is cut at its end
# That an agent and its tools may need at once, in MiB; half of the memory is for them. 64 agents of T4 on two CPUs took
# 211 MiB in all; the largest of their tools takes 34, so that 24 each leave room for 45 of them at once.
AGENT_MB = {"T3": 32, "T4": 24, "T5": 6}
CROWDS = {"quick": (("32k", 4.0),), "standard": (("1k", 64.0), ("32k", 4.0), ("32k", 32.0), ("119k", 4.0))}
MOST_SESSIONS = 1024
# What a quick run leaves out, where no tasks are named: four minutes are not enough for every rung.
LEFT_OUT = {
    "quick": {"T1b[serial]", "T3[seccomp]", "T3[cgroup]", "T3[overlay]", "T3[runsc]", "T5[1k]"},
    "standard": set[str](),
}  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """How often tasks are repeated, and with which numbers of agents, in multiples of the cores; 0 is one agent."""

    repeats: int
    windows: int
    window_s: float  # of T4, whose agents wait for their models
    multiples: tuple[float, ...]
    short_s: float  # of the other tasks of many
    boxes: tuple[float, ...]  # sandboxes at once, in multiples of the cores
    neighbours: tuple[int, ...]  # agents of T6
    estimate: bool


PROFILES = {
    "quick": Profile(3, 1, 20.0, (0, 1, 4), 5.0, (1,), (8,), estimate=True),
    "standard": Profile(8, 2, 60.0, (0, 0.5, 1, 2, 4, 8), 20.0, (1, 4), (8, 64), estimate=False),
}


@dataclass(frozen=True)
class Options:
    """What ``cpubench tasks run`` was asked for; None is the profile's own."""

    profile: str = "standard"
    tasks: Sequence[str] | None = None
    agents: Sequence[int] | None = None
    think: float = 1.0
    tools: Sequence[str] = ()
    workdir: Path | None = None
    out: Path | None = None
    seed: int | None = None
    repeats: int | None = None
    window_s: float | None = None
    power: Asked = field(default_factory=Asked)


def check_profile(name: str) -> None:
    """UsageError for a profile that there is not."""
    if name not in PROFILES:
        raise UsageError("profile", f"{name!r} is none of {', '.join(PROFILES)}", "--profile")


def numbers(options: Options, cores: float) -> list[int]:
    """Numbers of agents of T4, ascending. ``cores`` are the divisor's: under a quota, what it grants."""
    if options.agents is not None:
        return sorted(set(options.agents))
    return sorted({max(1, int(multiple * cores)) for multiple in PROFILES[options.profile].multiples})


def planned(options: Options, cores: float, tools: tuple[str, ...], memory_bytes: int | None) -> list[Task]:
    """All tasks of the options, in the order of their rows."""
    every = offered(options, cores, tools, memory_bytes)
    if options.tasks is None:
        every = [task for task in every if task.name not in LEFT_OUT[options.profile]]
    return catalogue.chosen(every, options.tasks)


def offered(options: Options, cores: float, tools: tuple[str, ...], memory_bytes: int | None) -> list[Task]:
    """All that the options' ``tasks`` may name, those too that the profile leaves out otherwise."""
    alone_or_waiting = [*catalogue.solo(tools), *catalogue.fleets(numbers(options, cores), tools)]
    return [*alone_or_waiting, *many(options.profile, cores, memory_bytes)]


def many(profile: str, cores: float, memory_bytes: int | None) -> list[Task]:
    """The windows of T3, T5 and T6."""
    one = PROFILES[profile]
    made = [Task("T3", ("all",), agents=max(2, int(multiple * cores))) for multiple in one.boxes]
    made += [Task("T5", (context,), agents=min(MOST_SESSIONS, max(2, int(multiple * cores))))
             for context, multiple in CROWDS[profile]]  # fmt: skip
    for agents in one.neighbours:
        sizes = burst_steps.sizes(memory_bytes, agents) or (f"{burst_steps.BASES_MB[-1]}MB",
                                                            f"{burst_steps.BURSTS_MB[-1]}MB")  # fmt: skip
        made.append(Task("T6", sizes, agents=agents))
    return made


def too_many(task: Task, memory_bytes: int | None) -> str | None:
    """Why so many agents are not started here."""
    if not task.windowed or memory_bytes is None or (task.task == "T4" and task.agents == 1):
        return None
    if task.task == "T6":
        base, burst = (int(size.removesuffix("MB")) for size in task.params)
        need = task.agents * (base + burst_steps.BESIDE_MB) + burst
    else:
        need = task.agents * AGENT_MB[task.task]
    if need << 20 <= memory_bytes / 2:
        return None
    return f"{task.agents} agents may need {need} MiB; half of the usable memory is {memory_bytes >> 21} MiB"


def window_s(options: Options, task: Task) -> float:
    """Length of a task's window; 0 of one that is done from its first step to its last."""
    profile = PROFILES[options.profile]
    if not task.windowed:
        return 0.0
    return options.window_s or (profile.window_s if task.task == "T4" else profile.short_s)


def predicted_s(options: Options, order: Sequence[Task], cpus: int) -> float:
    """Seconds that so many repeats and windows will take."""
    total = 0.0
    for task in order:
        if task.windowed:
            total += window_s(options, task) + AROUND_S[task.task] + READY_S[task.task] * task.agents / cpus
        else:
            total += TOOK_S.get(task.name, TOOK_S.get(task.task, 0.0)) + STARTING_S
    return total


def spec_of(document: dict[str, Any], options: Options, task: Task, index: int) -> dict[str, Any]:
    """What the process of a repeat is told of the run, without its folders."""
    programs = document["programs"]
    return {
        "task": task.task, "params": task.params, "tools": task.tools, "agents": task.agents, "index": index,
        "python": programs["python3"]["path"], "cc": programs.get("cc", {}).get("path", ""),
        "shell": programs["sh"]["path"], "cpus": document["cpus"], "seed": document["seed"],
        "paced_cpus": paced_cpus(Divisor(**document["divisor"]), document["cpus"]),
        "window_ns": round(window_s(options, task) * 1e9), "think": options.think,
    }  # fmt: skip
