"""What the processes of a block and of calibration share: they die with their parent, leave nothing behind, and tell a
failure in one line.

Standard library and the extension only: the block imports this.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cpubench import _native
from cpubench.measure.scratch import guard
from cpubench.results.files import canonical, write_atomic

# (the plan, the process's own arguments, scratch folder, nanosecond of its start) -> what it found
Work = Callable[[dict[str, Any], list[str], Path, int], dict[str, Any]]


class BlockFailed(Exception):
    """What was measured is not worth a file: the text says why."""


def serve(arguments: list[str], work: Work) -> int:
    """0, or 1 with one line on stderr: what could not be done. ``arguments`` are the plan's file, those of the process
    itself, the file to write, and, from ``run_child``, the scratch folder, the start and the parent's pid."""
    plan_file, *own, out, folder, started_ns, parent = arguments
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _native.die_with(int(parent))
        guard(Path(folder))
        found = work(json.loads(Path(plan_file).read_bytes()), own, Path(folder), int(started_ns))
        write_atomic(Path(out), canonical(found))
    except BlockFailed as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, _native.PoolBroken) as error:
        where = getattr(error, "filename", None) or ("pool" if isinstance(error, _native.PoolBroken) else "system call")
        print(f"{where}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 1
    return 0


def _stop(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)
