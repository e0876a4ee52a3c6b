"""Real blocks of plans that are made by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import made
import msgspec
from pools import KERNELS, groups_of, param

from cpubench.measure.child import Installed, run_child
from cpubench.results.load import load_block
from cpubench.results.records import Block, Plan, Variant

WORK = ("test_work", "steps=1000")


def variant(kernel: str, label: str, copies: Any = "1", ops: int = 1000, window_ns: int = 0) -> Variant:
    """A variant that is sized by hand, on the CPUs of this machine."""
    index, record = param(kernel, label)
    groups = groups_of(kernel, label)
    groups = groups[-1:] if copies == "1" else groups
    k = KERNELS[kernel]
    return Variant(
        kernel=kernel, family=k["family"], params=label, copies=copies, scored=True, version=1, unit=k["unit"],
        flags=k["flags"], index=index, value=record["value"], groups=groups, divisor=len(groups),
        held_bytes=record["held_bytes"], ops=ops, window_ns=window_ns,
    )  # fmt: skip


def plan_of(variants: list[Variant], **fields: Any) -> Plan:
    return msgspec.convert(made.made_run(passes=0, variants=variants, **fields)["plan"], Plan)


def run_block(folder: Path, plan: Plan, group: Path | None = None) -> Block:
    """The block that a process measures of the plan, in a control group where one is given."""
    plan_file, out = folder / "plan.json", folder / "block.json"
    plan_file.write_bytes(msgspec.json.encode(plan))
    arguments = [str(plan_file), "0", "as-is", str(out)]
    run_child("cpubench.measure.block", arguments, folder, random.Random(1), Installed(group=group))
    assert [path.name for path in sorted(folder.iterdir())] == ["block.json", "plan.json"]
    return load_block(out, plan)
