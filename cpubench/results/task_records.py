"""The records of ``tasks.json``: what each step of each agent took, and nothing that can be computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from cpubench.results.fields import Count, Name
from cpubench.results.records import Divisor, Environment, Positive, Sha256
from cpubench.results.states import BASE_CAP
from cpubench.results.windows import Level, Limits, Power

Watts = Annotated[float, Meta(gt=0, le=1e7)]


class StepName(Struct, frozen=True, kw_only=True):
    """A step of a task, as every agent of it does it."""

    label: str
    kind: str
    phase: str
    pythons: Count  # interpreters that it starts
    shells: Count


class Spans(Struct, frozen=True, kw_only=True):
    """Columns, one entry a span; see ``cpubench.tasks.spans.Span`` for what each is."""

    step: list[Count]
    agent: list[Count]
    start_ns: list[int]  # below 0 where it began before the window
    wall_ns: list[Count]
    user_us: list[Count]
    sys_us: list[Count]
    minor_faults: list[Count]
    major_faults: list[Count]
    voluntary: list[Count]
    involuntary: list[Count]
    peak_bytes: list[Count]
    forks: list[Count | None]
    read_bytes: list[Count | None]
    written_bytes: list[Count | None]
    around_ns: list[Count]
    background: list[bool]


class Pressure(Struct, frozen=True, kw_only=True):
    """Time in the window in which some task of the host waited for it (/proc/pressure)."""

    cpu_us: Count
    memory_us: Count
    io_us: Count


class Repeat(Struct, frozen=True, kw_only=True):
    """A task that was done once, or a window of many agents."""

    index: Count
    wall_ns: Count  # from before the first step to after the last, or of the window
    window_ns: Count  # 0: the task was done once, from its first step to its last
    harness_us: Count  # CPU time of the agents' own processes, and below of their tools
    tools_us: Count
    failures: list[str]
    leftovers: list[str]
    unknown: list[str]  # checks that this host does not allow
    ready_ns: Count  # until all agents had come to their places
    pressure: Pressure | None
    memory_low_bytes: Count | None
    environment: Environment
    spans: Spans
    mean_w: Watts | None = None  # over the repeat, of all that the meter has
    power_reason: str | None = None  # why a meter told no watts
    limits: Limits | UnsetType = UNSET  # of a run with caps


class TaskRow(Struct, frozen=True, kw_only=True):
    name: str
    task: str
    params: list[str]
    tools: list[str]
    agents: Positive
    version: Positive
    skipped: str | None  # why nothing was measured
    steps: list[StepName]
    repeats: list[Repeat]


class TaskRun(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.tasks/1"]
    cpubench: str
    suite: str
    created_utc: str
    profile: str
    estimate: bool  # too few repeats for verdicts
    seed: Count
    think: Annotated[float, Meta(ge=0)]  # scale of the pauses for the model
    cpus: list[Count]
    divisor: Divisor
    host: dict[str, Any]
    programs: dict[str, dict[str, Any]]
    missing: dict[str, str]
    file_system: dict[str, Any]
    inputs_sha256: Sha256
    tasks: list[TaskRow]
    stopped: Literal["done", "interrupted", "failed", "running"]
    sha256: Sha256
    notes: list[str] = field(default_factory=list)
    meter: str = ""  # "": none
    meter_scope: str = ""
    meter_provenance: str = ""
    meter_problem: str = ""  # why there is none
    cap: Name = BASE_CAP  # the level at which all of this file was done
    powered: Power | UnsetType = field(name="power", default=UNSET)  # with all levels of a run that has caps

    @property
    def level(self) -> Level | None:
        """The cap as it was found to work before the first repeat; None in a run without caps."""
        levels = [] if isinstance(self.powered, UnsetType) else self.powered.levels
        return next((one for one in levels if one.name == self.cap), None)

    @property
    def capped(self) -> bool:
        """Whether it was done under a cap, ours or one that was set from outside."""
        return self.cap != BASE_CAP


def windowed(row: TaskRow) -> bool:
    """Whether many did the task in a window; else one did it from its first step to its last."""
    return row.task in ("T4", "T6") or row.agents > 1


def paced_cpus(divisor: Divisor, cpus: Sequence[int]) -> float:
    """The CPUs of which neighbours of T6 use half: what a quota grants, else all that the run may use."""
    return divisor.n if divisor.kind == "granted_cpu" else len(cpus)
