"""What a replay shows of a run: its rows under stable names, the samples of each, and the facts beside them.

The suites and ``cpubench.bench.export`` both take everything from here, so that the two agree.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from cpubench.analysis.cells import blocks_at
from cpubench.results.names import is_control, kernel_of, row_key, split_key
from cpubench.results.parse import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cpubench.host.topology import Core
    from cpubench.measure.profiles import Profile
    from cpubench.results.records import Cell, Missing, Run, Variant


class Row(NamedTuple):
    """A variant as pytest names it; what is printed of it is made harmless, for the run can be anybody's."""

    family: str
    name: str  # "spawn_fork_exec[rss=384M]", as it is in the plan
    copies: str

    @property
    def key(self) -> str:
        return row_key(self.name, self.copies)

    @property
    def param(self) -> str:
        return shown(f"{self.name}-{self.copies}")

    @property
    def test(self) -> str:
        return f"test_{shown(self.family)}[{self.param}]"

    @property
    def fullname(self) -> str:
        """The key by which pytest-benchmark compares, equal wherever the suites lie and pytest was started."""
        return f"suites/bench_{shown(self.family)}.py::{self.test}"

    @property
    def group(self) -> str:
        return f"{shown(self.family)}@{self.copies}"


def rows_of_kernels(
    kernels: Iterable[dict[str, Any]], profile: Profile, smt: bool, cores: Sequence[Core] = ()
) -> list[Row]:
    """The rows that a run of this profile plans on these cores, before it knows what this host cannot measure."""
    from cpubench.measure.variants import COPIES, expanded, name_of, planned

    return [
        Row(kernel["family"], name_of(kernel, param), copies)
        for kernel in kernels
        for _, param in expanded(kernel, cores)
        for copies in COPIES
        if planned(kernel, param, copies, profile, smt)
    ]


def rows_planned(run: Run) -> list[Variant]:
    """The variants of the plan without the control kernel."""
    return [variant for variant in run.plan.variants if not is_control(variant.kernel)]


def rows_skipped(run: Run) -> list[Missing]:
    """What the plan had to leave out, without the control kernel."""
    return [missing for missing in run.plan.skipped if not is_control(missing.variant)]


def rows_of_run(run: Run) -> list[Row]:
    """The rows of the plan, then those that it had to leave out."""
    rows = [Row(v.family, v.name, v.copies) for v in rows_planned(run)]
    families = {v.kernel: v.family for v in run.plan.variants}
    for missing in rows_skipped(run):
        name, copies = split_key(missing.variant)
        kernel = kernel_of(name)
        rows.append(Row(families.get(kernel) or _family_of(kernel), name, copies or "1"))
    return list(dict.fromkeys(rows))


def skip_reason(run: Run, row: Row) -> str:
    """Why the run has no such row: it was skipped with these copies, or as a whole, or never planned."""
    left_out = (shown(missing.reason) for missing in run.plan.skipped if missing.variant in (row.key, row.name))
    return next(left_out, f"not in the plan of this run (profile {run.plan.profile})")


def _family_of(kernel: str) -> str:
    """The family in a kernel's name; a skipped row has nothing else to tell it by."""
    prefix = kernel.partition("_")[0]
    return {"mem": "memory"}.get(prefix, prefix)


def default_cap(run: Run) -> str:
    """The level that a replay shows when none is asked for: as-is where it was measured, else the plan's first."""
    return "as-is" if "as-is" in run.plan.caps else run.plan.caps[0]


def cells_at(run: Run, cap: str) -> dict[str, list[tuple[int, Cell]]]:
    """(pass, cell) of each variant key at one level."""
    cells = defaultdict(list)
    for block in blocks_at(run, cap):
        for cell in block.cells:
            cells[cell.key].append((block.index, cell))
    return cells


def seconds_per_op(cells: Iterable[tuple[int, Cell]]) -> list[float]:
    """Seconds per operation of one copy, for each sample of each pass in order.

    With several copies a sample holds sums over them, so that this is still the time that one copy waits for one
    operation; the rate of all copies together is ``ops_per_s``. A sample without operations is NaN, which the clock
    and the export refuse: it is never shown as 0.
    """
    return [
        elapsed / ops * 1e-9 if ops else math.nan
        for _, cell in cells
        for elapsed, ops in zip(cell.samples.elapsed_ns, cell.samples.ops, strict=True)
    ]


def failure(cells: Iterable[tuple[int, Cell]]) -> str | None:
    """Why a variant has nothing to show; None if it has samples and each is a time."""
    cells = list(cells)
    errors = [f"{shown(cell.error)} (pass {index})" for index, cell in cells if cell.error]
    seconds = seconds_per_op(cells)
    if not seconds:
        return errors[0] if errors else "the run holds no sample of it"
    if not all(math.isfinite(s) and s > 0 for s in seconds):
        return "the run holds a sample of it without operations or without time"
    return None
