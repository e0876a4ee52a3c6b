"""Which rungs of the ladder of sandboxes this host allows: each is tried once before a run."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cpubench.measure.programs import BOX
from cpubench.tasks import inputs, sandbox
from cpubench.tasks.programs import PATH, Programs
from cpubench.tasks.steps import Place

TRIAL_S = 30


def try_rungs(found: Programs, rungs: Sequence[str], scratch: Path) -> None:
    """Adds to ``found.missing`` why a rung cannot be had, as "T3 RUNG", and to ``found.stored`` the adapters."""
    for rung in dict.fromkeys(rungs):
        fault = _absent(rung) or _fault(found, rung, scratch)
        if fault:
            found.missing[f"T3 {rung}"] = fault
        elif rung in sandbox.ADAPTERS:
            path = sandbox.adapter(rung)
            told = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", check=False)
            found.stored[rung] = {
                "path": path, "version": " ".join(told.stdout.split())[:200],
                "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
            }  # fmt: skip


def _absent(rung: str) -> str | None:
    if rung in sandbox.ADAPTERS and shutil.which(rung, path=sandbox.PATH) is None:
        return f"there is no {rung} along the path"
    if not BOX.is_file():
        return f"{BOX.name} is missing: install cpubench again"
    if "g" in sandbox.RUNGS.get(rung, "") and sandbox.group() is None:
        return "there is no unified hierarchy of control groups (cgroup2)"
    return None


def _fault(found: Programs, rung: str, scratch: Path) -> str | None:
    """Why a trial of the rung failed, in one line."""
    root = scratch / f"trial-{rung}"
    for part in ("work", "tmp"):
        (root / part).mkdir(parents=True)
    place = Place(str(scratch), str(root), found.paths["python3"], "", found.paths["sh"])
    try:
        if rung in ("runc", "runsc"):
            tool = (place.python, str(inputs.TOOLS / "bundle.py"), *sandbox.bundle(place)[2:])
            subprocess.run(tool, cwd=place.work, check=True, capture_output=True, timeout=TRIAL_S)
        asked = json.dumps({"jsonrpc": "2.0", "id": 1}) + "\n"
        done = subprocess.run(sandbox.command(place, rung, 0), input=asked, capture_output=True, text=True,
                              errors="replace", timeout=TRIAL_S, cwd=place.work,
                              env={"PATH": PATH, "LC_ALL": "C"})  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer after {TRIAL_S} s"
    except (OSError, subprocess.CalledProcessError) as error:
        return getattr(error, "strerror", None) or "its bundle could not be written"
    finally:
        shutil.rmtree(root, ignore_errors=True)
    answers = [json.loads(row) for row in done.stdout.splitlines() if row.startswith("{")]
    if done.returncode == 0 and len(answers) == 2 and answers[1].get("result") == sandbox.OUTPUT:
        return None
    told = [str(one["error"]) for one in answers if "error" in one] or done.stderr.strip().splitlines()
    told += [f"the interpreter inside did not find {one['result'].split()[1:]}" for one in answers if "result" in one]
    return (told or [f"ended with {done.returncode}"])[-1].strip()[-200:]
