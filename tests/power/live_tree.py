"""A host as a folder whose energy counter a process beside the test advances, by a model of load and limit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from power import limit_trees, meter_trees

IDLE_W, FREE_W = 40.0, 150.0
ZONE = f"{limit_trees.POWERCAP}/intel-rapl:0"
LIMIT = f"{ZONE}/constraint_0_power_limit_uw"


def host(root: Path) -> Path:
    """One package of 350 W whose limits act within a millisecond."""
    limit_trees.base(root, 1)
    limit_trees.zone(root, "intel-rapl:0", "package-0")
    meter_trees.packages(root, 0)
    for number in (0, 1):
        (root / f"{ZONE}/constraint_{number}_time_window_us").write_text("1000\n")
    (root / f"{ZONE}/max_energy_range_uj").write_text("262143328850\n")
    (root / f"{ZONE}/energy_uj").write_text(f"{0:016d}\n")
    return root


@contextmanager
def drawing(root: Path, idle_w: float = IDLE_W) -> Iterator[None]:
    """The host of ``root`` draws power meanwhile: 150 W under a load of this process, ``idle_w`` without."""
    files = [str(root / ZONE / "energy_uj"), str(root / LIMIT)]
    command = [sys.executable, str(Path(__file__).with_name("draw.py")), *files]
    with subprocess.Popen(
        [*command, str(idle_w), str(FREE_W), str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        assert process.stdout.readline() == b"drawing\n"
        try:
            yield
        finally:
            process.stdin.close()
            assert process.wait() == 0
