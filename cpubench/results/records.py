"""The records of a run folder: what is stored, in which units, and nothing that can be computed from it.

Times are integers in nanoseconds, sizes in bytes. The JSON Schema in ``cpubench/data/run.schema.json`` is made
from these records (``cpubench.results.schema``), and loading a file checks it against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from cpubench.results.fields import Copies as Copies
from cpubench.results.fields import Count, Name
from cpubench.results.fields import Positive as Positive
from cpubench.results.fields import Sha256 as Sha256
from cpubench.results.names import row_key, row_name
from cpubench.results.windows import Limits, Power, PowerLog, WindowResult
from cpubench.results.windows import Window as Window

CpuList = Annotated[str, Meta(pattern="^[0-9,-]*$(?!\n)")]  # "0-3,8"


class Variant(Struct, frozen=True, kw_only=True):
    """A kernel with its parameters and copies, as it was planned."""

    kernel: Name
    family: Name
    params: Name  # the label, "rss=384M"; "" for a kernel without parameters
    copies: Copies
    scored: bool
    version: Positive  # of the kernel; different versions are never compared
    unit: Name  # what one operation is, "round trip"
    flags: list[Name]  # of the kernel: "blocking", "group", "pair", "parent", "files", ..
    index: Count  # of the parameter in the kernel's own list
    value: Count  # the parameter, resolved on this host: bytes, ns or a count
    groups: list[list[Count]]  # the logical CPUs of each copy, the one it runs on first
    divisor: Positive  # the cores (or vcpus) that the copies occupy
    held_bytes: Count  # memory that each copy holds while it is prepared
    ops: Count = 0  # per batch, calibrated once per run
    window_ns: Count = 0  # 0: a sample is exactly one batch; else batches run until this much time is over

    @property
    def name(self) -> str:
        return row_name(self.kernel, self.params)

    @property
    def key(self) -> str:
        return row_key(self.name, self.copies)


class Missing(Struct, frozen=True):
    """A row that cannot be measured, with its reason."""

    variant: Name
    reason: str
    scored: bool = False  # a reference is not made without it


class Divisor(Struct, frozen=True):
    kind: Literal["physical_core", "vcpu", "granted_cpu"]
    n: Annotated[float, Meta(gt=0)]


class Side(Struct, frozen=True, kw_only=True):
    """Which of two runs this is whose passes were measured in turns, so that they are compared pass by pass."""

    pair: str  # the same in both
    label: Literal["a", "b"]
    settings: dict[str, str]  # environment variables that this side alone has


class Plan(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.plan/1"] = "cpubench.plan/1"
    id: str
    created_utc: str
    cpubench: str
    suite: Positive
    build: dict[str, str | bool]  # compiler, flags, hashes of the programs that run the kernels
    host_id: str
    seed: Count
    profile: Literal["quick", "standard", "strict"]
    target_ppm: Positive  # half-width of every headline quantity at which the run may stop
    min_passes: Positive
    max_passes: Positive
    budget_ns: Count  # 0: no budget
    samples: Positive  # of each variant in a block
    sample_ns: Positive
    cpus: list[Count]
    divisor: Divisor
    llc_bytes: int | None
    caps: list[Name]
    variants: list[Variant]
    skipped: list[Missing]
    windows: list[Window]
    predicted_pass_ns: Count
    floor_ps: Count | None = None  # of an operation that does nothing; None: not measured
    side: Side | None = None  # of `run --ab`
    power: Power | UnsetType = UNSET
    machine: dict[str, str] | UnsetType = UNSET  # hashes of facts that stay until its end, of boot and host name

    @property
    def stood(self) -> dict[str, str]:
        """These hashes; none where nobody wrote them down."""
        return {} if isinstance(self.machine, UnsetType) else self.machine

    @property
    def powered(self) -> Power | None:
        return None if self.power is UNSET else self.power


class Samples(Struct, frozen=True, kw_only=True):
    """Evidence of each sample, columnar; with several copies, sums over the copies."""

    round: list[Count]
    wall_ns: list[Count]  # first start to last end
    ops: list[Count]
    elapsed_ns: list[Count]  # inside run() only
    hook_ns: list[Count]  # inside warm(), before() and after(), clock stopped
    cpu_ns: list[Count]  # CLOCK_THREAD_CPUTIME_ID of the threads that called run()
    # Runnable but waiting for a CPU (schedstat); empty where the kernel does not tell. It and the next four are of the
    # threads that called run(), not of a group's others or peers: `preempted` is of one copy, without groups and pairs.
    run_delay_ns: list[Count]
    nvcsw: list[Count]
    nivcsw: list[Count]
    minflt: list[Count]
    majflt: list[Count]
    moved: list[Count]  # copies whose CPU was not the one they are pinned to, at either end
    # Time that all copies shared / time that any was running, from the start of its first batch to the end of its last:
    # before() and after() between them are in it, so 1,000,000 does not say that the timed parts ran side by side.
    overlap_ppm: list[Count]
    cpu_first: list[Count]  # one copy only
    cpu_last: list[Count]


class Cell(Struct, frozen=True, kw_only=True):
    """What one block measured of one variant. A cell's rate is the sum over its copies of ops / elapsed."""

    kernel: Name
    params: Name
    copies: Copies
    obtained: dict[str, Any]  # placement, page size, file system, checksum, ..: what was really had
    samples: Samples
    copy_ops: list[Count]  # per copy, summed over the samples
    copy_elapsed_ns: list[Count]
    prepare_ns: Count | None  # None: it was never prepared
    error: str | None  # the reason of a sample that failed: later rounds of the block left the variant out

    @property
    def key(self) -> str:
        return row_key(row_name(self.kernel, self.params), self.copies)


class BlockTimes(Struct, frozen=True, kw_only=True):
    """Where the block's time went, from the start of its process."""

    start_utc_ns: Count
    ready_ns: Count  # until every copy stood at its CPU
    prepare_ns: Count  # the kernels' own preparation, after that
    rounds_ns: Count  # from the first sample to the end of the last
    timed_ns: Count  # inside timed samples, first start to last end
    hook_ns: Count  # untimed before, after and warm work of the kernels inside the rounds
    clock_read_ns: Count  # what one reading of the clock costs, rounded up


class Snapshot(Struct, frozen=True, kw_only=True):
    """Counters of the host at one moment, since its start unless said; None where the host does not tell."""

    t_ns: Count  # CLOCK_MONOTONIC_RAW
    busy_ns: Count | None = None  # of the plan's CPUs together: user, nice and system time (proc_stat(5))
    irq_ns: Count | None = None
    softirq_ns: Count | None = None
    steal_ns: Count | None = None
    others_ns: Count | None = None  # CPU time of all processes that are neither the block's nor the kernel's
    kernel_ns: Count | None = None  # of the kernel's own threads
    stalled_ns: Count | None = None  # some task waited for a CPU (/proc/pressure/cpu)
    throttles: Count | None = None  # periods in which a quota of the own groups was used up
    throttled_ns: Count | None = None
    core_throttles: Count | None = None  # thermal_throttle/*_count, an event of a core or package once
    package_throttles: Count | None = None
    power_limits: Count | None = None
    freq_khz: list[Count] = field(default_factory=list)  # now, of each of the plan's CPUs; empty: not told
    runnable: Count | None = None  # tasks that run or could, now
    logins: Count | None = None  # sessions of users, now
    suspended_ns: Count | None = None  # CLOCK_BOOTTIME less CLOCK_MONOTONIC
    online: CpuList | None = None  # CPUs, now
    allowed: CpuList | None = None  # to the block, now


class Busy(Struct, frozen=True, kw_only=True):
    """A process of somebody else, and the CPU time that it took meanwhile."""

    name: str
    took_ns: Count


class Environment(Struct, frozen=True, kw_only=True):
    """What the host did around the rounds of a block."""

    before: Snapshot | None = None  # None: by a cpubench that did not look
    after: Snapshot | None = None
    busiest: list[Busy] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # of each counter that is None, or doubtful


class Block(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.block/1"]
    plan_id: str
    index: Count  # the pass
    cap: str
    times: BlockTimes
    environment: Environment
    rounds: list[list[Count]]  # the order of each round, as indexes into plan.variants
    cells: list[Cell]
    windows: list[WindowResult]
    sha256: Sha256
    limits: Limits | UnsetType = UNSET  # of a run with caps
    around_windows: Environment | UnsetType = UNSET  # where `environment` is of the rounds

    @property
    def changed(self) -> list[str]:
        """What was not as the cap level wants it, in sentences."""
        return [] if self.limits is UNSET else self.limits.changed


class Pass(Struct, frozen=True):
    index: Count
    blocks: list[Block]
    set_aside: list[Block] = field(default_factory=list)  # flagged blocks that were measured again, once


class Stopped(Struct, frozen=True, kw_only=True):
    by: Literal["target", "budget", "max", "interrupted", "failed"]
    passes: Count
    half_width_ppm: int | None  # of the widest headline quantity; None where there was none


class Run(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.run/1"]
    plan: Plan
    host: dict[str, Any]
    imported: dict[str, str]  # versions of what was really imported
    passes: list[Pass]
    stopped: Stopped
    sha256: Sha256
    notes: list[str] = field(default_factory=list)
    idle_after: PowerLog | UnsetType = UNSET
