"""A run without what no figure needs: its samples' evidence, which is nine tenths of its text.

For thousands of files: msgspec reads over what has no field here, and the seal is checked on the text as it stands,
which costs a tenth of making that anew. Whatever is not as we write it goes the way of ``load_run`` instead, which
refuses it in its own words, or takes it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from cpubench.errors import UsageError
from cpubench.results import records as r
from cpubench.results.check import check_belongs, check_copies, check_plan, once
from cpubench.results.check_windows import check_log, check_windows
from cpubench.results.fields import Copies, Count, Name, Sha256
from cpubench.results.load import run_of
from cpubench.results.names import row_key, row_name
from cpubench.results.parse import check_depth, check_size, uncollected
from cpubench.results.windows import Limits, PowerLog, WindowResult

_SEAL = re.compile(rb',"sha256":"([0-9a-f]{64})"(?=,"stopped":\{[^{}]*\}\}$)')


class _Samples(Struct, frozen=True, kw_only=True):
    wall_ns: list[Count]
    run_delay_ns: list[Count]


class _Cell(Struct, frozen=True, kw_only=True):
    kernel: Name
    params: Name
    copies: Copies
    samples: _Samples
    copy_ops: list[Count]
    copy_elapsed_ns: list[Count]
    error: str | None

    @property
    def key(self) -> str:
        return row_key(row_name(self.kernel, self.params), self.copies)


class _Block(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.block/1"]
    plan_id: str
    index: Count
    cap: str
    environment: r.Environment
    rounds: list[list[Count]]
    cells: list[_Cell]
    windows: list[WindowResult]
    limits: Limits | UnsetType = UNSET
    around_windows: r.Environment | UnsetType = UNSET

    @property
    def changed(self) -> list[str]:
        return [] if self.limits is UNSET else self.limits.changed


class _Aside(Struct, frozen=True):
    cap: str


class _Pass(Struct, frozen=True):
    index: Count
    blocks: list[_Block]
    set_aside: list[_Aside] = field(default_factory=list)


class _Run(Struct, frozen=True, kw_only=True):
    schema: Literal["cpubench.run/1"]
    plan: r.Plan
    host: dict[str, Any]
    passes: list[_Pass]
    stopped: r.Stopped
    sha256: Sha256
    notes: list[str] = field(default_factory=list)
    idle_after: PowerLog | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Run).decode


def brief_run(raw: bytes) -> r.Run:
    """The run that the text of a ``run.json`` holds, as far as its figures and its faults need it.

    Whoever asks for a sample's evidence of it gets an AttributeError.
    """
    check_size(raw)
    with uncollected():
        try:
            made = _decode(raw) if _sealed(raw) else None
            if made is not None:
                _check(made)
                return cast(r.Run, made)
        except (msgspec.MsgspecError, UsageError, UnicodeError, RecursionError):
            pass
        return run_of(raw)


def _sealed(raw: bytes) -> bool:
    """Whether the seal of the run is the hash of its text without it, as it is of what ``files.canonical`` wrote."""
    found = _SEAL.search(raw, max(0, len(raw) - 1000))
    if found is None:
        return False
    text = hashlib.sha256(raw[: found.start()])
    text.update(raw[found.end() :])
    return text.hexdigest().encode() == found[1]


def _check(run: _Run) -> None:
    """None if what is here belongs together, as ``check.check_run`` has it of the whole."""
    check_plan(run.plan)
    check_depth(run.host, "host")
    if not isinstance(run.idle_after, UnsetType):
        check_log(run.idle_after, "idle_after")
    once((one.index for one in run.passes), str, "pass")
    if run.stopped.passes != len(run.passes):
        raise UsageError("passes", f"stopped after {run.stopped.passes} passes, and holds {len(run.passes)}")
    copies = {(v.kernel, v.params, v.copies): len(v.groups) for v in run.plan.variants}
    for one in run.passes:
        once((block.cap for block in one.blocks), str, "cap level of a pass")
        for made in one.blocks:
            block = cast(r.Block, made)
            if block.index != one.index:
                raise UsageError("pass", f"a block of pass {block.index} in pass {one.index}")
            check_belongs(block, run.plan, "")
            check_windows(block, run.plan, "")
            once(((c.kernel, c.params, c.copies) for c in block.cells), str, "variant of a block")
            for cell in block.cells:
                planned = copies.get((cell.kernel, cell.params, cell.copies))
                if planned is None:
                    raise UsageError("variant", f"{cell.key} is not in the plan")
                if cell.copy_ops or cell.copy_elapsed_ns or cell.error is None:
                    check_copies(cell.copy_ops, cell.copy_elapsed_ns, planned, "")
                if cell.samples.run_delay_ns and len(cell.samples.run_delay_ns) != len(cell.samples.wall_ns):
                    raise UsageError("length", "run_delay_ns")
