"""The records of a run folder: what is stored, in which units, and nothing that can be computed from it.

Times are integers in nanoseconds, sizes in bytes. The JSON Schema in ``cpubench/data/run.schema.json`` is made
from these records (``cpubench.results.schema``), and loading a file checks it against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from cpubench.results.names import row_key, row_name

Copies = Literal["1", "cores", "cpus"]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(gt=0)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Variant(Struct, frozen=True, kw_only=True):
    """A kernel with its parameters and copies, as it was planned."""

    kernel: str
    family: str
    params: str  # the label, "rss=384M"; "" for a kernel without parameters
    copies: Copies
    scored: bool
    version: Positive  # of the kernel; different versions are never compared
    unit: str  # what one operation is, "round trip"
    flags: list[str]  # of the kernel: "blocking", "group", "pair", "parent", "files", ..
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

    variant: str
    reason: str
    scored: bool = False  # a reference is not made without it


class Divisor(Struct, frozen=True):
    kind: Literal["physical_core", "vcpu", "granted_cpu"]
    n: Annotated[float, Meta(gt=0)]


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
    caps: list[str]
    variants: list[Variant]
    skipped: list[Missing]
    windows: list[Window]
    predicted_pass_ns: Count
    floor_ps: Count | None = None  # of an operation that does nothing; None: not measured


class Window(Struct, frozen=True, kw_only=True):
    """A contiguous all-copies measurement of one family, after its variants ran unmeasured for ``settle_ns``."""

    family: str
    settle_ns: Count
    length_ns: Positive


class Samples(Struct, frozen=True, kw_only=True):
    """Evidence of each sample, columnar; with several copies, sums over the copies."""

    round: list[Count]
    wall_ns: list[Count]  # first start to last end
    ops: list[Count]
    elapsed_ns: list[Count]  # inside run() only
    hook_ns: list[Count]  # inside warm(), before() and after(), clock stopped
    cpu_ns: list[Count]  # CLOCK_THREAD_CPUTIME_ID of the threads that called run()
    run_delay_ns: list[Count]  # runnable but waiting for a CPU (schedstat); empty where the kernel does not tell
    nvcsw: list[Count]
    nivcsw: list[Count]
    minflt: list[Count]
    majflt: list[Count]
    moved: list[Count]  # copies whose CPU was not the one they are pinned to, at either end
    overlap_ppm: list[Count]  # time that all copies shared / time that any was running
    cpu_first: list[Count]  # one copy only
    cpu_last: list[Count]


class Cell(Struct, frozen=True, kw_only=True):
    """What one block measured of one variant. A cell's rate is the sum over its copies of ops / elapsed."""

    kernel: str
    params: str
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


class WindowCell(Struct, frozen=True, kw_only=True):
    kernel: str
    params: str
    t0_ns: Count
    t1_ns: Count
    copy_ops: list[Count]
    copy_elapsed_ns: list[Count]
    error: str | None


class WindowResult(Struct, frozen=True, kw_only=True):
    family: str
    t0_ns: Count
    t1_ns: Count
    cells: list[WindowCell]


class BlockTimes(Struct, frozen=True, kw_only=True):
    """Where the block's time went, from the start of its process."""

    start_utc_ns: Count
    ready_ns: Count  # until every copy stood at its CPU
    prepare_ns: Count  # the kernels' own preparation, after that
    rounds_ns: Count  # from the first sample to the end of the last
    timed_ns: Count  # inside timed samples, first start to last end
    hook_ns: Count  # untimed before, after and warm work of the kernels inside the rounds
    clock_read_ns: Count  # what one reading of the clock costs, rounded up


class Block(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.block/1"]
    plan_id: str
    index: Count  # the pass
    cap: str
    times: BlockTimes
    environment: dict[str, Any]
    rounds: list[list[Count]]  # the order of each round, as indexes into plan.variants
    cells: list[Cell]
    windows: list[WindowResult]
    sha256: Sha256


class Pass(Struct, frozen=True):
    index: Count
    blocks: list[Block]


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
