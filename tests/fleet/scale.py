"""How long an index of thousands of runs takes: ``python tests/fleet/scale.py [FOLDER] [RUNS] [ROWS]`` prints figures.

Not collected by pytest. The files are made once and kept in FOLDER (``--make``: no more than that): one in a hundred
is made anew, the others have its blocks and a host of their own, so that reading and scoring them is the same work.
ROWS 0: the usual made-up variants (150 kB a run); more: so many rows with two copies each, as the real suite has 64.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from made import made_run, made_wide_variants
from made_fleet import cell, put_run

from cpubench.analysis.reference import make_reference
from cpubench.fleet.collect import rules_of
from cpubench.fleet.index import FILE, open_index
from cpubench.results.files import canonical, sealed
from cpubench.results.load import run_of

MODELS, EACH = 40, 100
COLLECT = """
import json, resource, sys, time
from cpubench.entry import main
begin = time.monotonic()
main(sys.argv[1:])
took = time.monotonic() - begin
own, kids = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
used = own.ru_utime + own.ru_stime + kids.ru_utime + kids.ru_stime
told = {"s": took, "cpu_s": used, "own_mb": own.ru_maxrss / 1000, "largest_child_mb": kids.ru_maxrss / 1000}
print(json.dumps(told), file=sys.stderr)
"""


def make(folder: Path, runs: int, rows: int) -> Path:
    """The folder of a fleet with so many runs, and its reference beside it; what is there stays."""
    fleet, reference = folder / f"{runs}-{rows}", folder / f"{runs}-{rows}.json"
    if reference.exists():
        return fleet
    variants: dict[str, Any] = {"variants": made_wide_variants(2, rows)} if rows else {}
    made: dict[str, Any] = {}
    for at in range(runs):
        if at % EACH == 0:
            made = made_run(16, seed=at, noise=0.01, **variants)
        name = f"host{at:05}"
        host = {**made["host"], "cpu_model": f"CPU {at % MODELS}", "hostname": name, "id": name, "virtual": False}
        put_run(fleet, cell(name), sealed({**made, "host": host, "plan": {**made["plan"], "host_id": name}}))
    document = make_reference(run_of(canonical(made_run(8, noise=0, **variants))), "made")
    reference.write_text(json.dumps(document))
    return fleet


def collected(fleet: Path) -> dict[str, float]:
    """Seconds, CPU seconds and peak memory of one `fleet collect`, as a process of its own."""
    command = [sys.executable, "-c", COLLECT, "fleet", "collect", str(fleet), "--reference", f"{fleet}.json", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stderr.splitlines()[-1])
    return figures | {"results": json.loads(done.stdout)["counts"]["results"]}


def main() -> None:
    """Prints a line of JSON for each step."""
    given = [one for one in sys.argv[1:] if one != "--make"]
    folder, runs, rows = (given + ["/tmp/cpubench-scale", "5000", "0"][len(given) :])[:3]
    fleet = make(Path(folder), int(runs), int(rows))
    if "--make" in sys.argv:
        return
    size = sum(one.stat().st_size for one in fleet.glob("*/*/run.json.gz"))
    print(json.dumps({"runs": int(runs), "packed_mb": size / 1e6}), flush=True)
    (fleet / FILE).unlink(missing_ok=True)
    for step in ("first", "again"):
        print(json.dumps({step: collected(fleet)}), flush=True)
    with open_index(fleet, rules_of(Path(f"{fleet}.json"), "equal").mark) as index:
        begin = time.monotonic()
        found = index.medians({run["path"] for run in index.runs()})
        print(json.dumps({"medians": {"s": time.monotonic() - begin, "rows": len(found)}}), flush=True)
    print(json.dumps({"index_mb": (fleet / FILE).stat().st_size / 1e6}))


if __name__ == "__main__":
    main()
