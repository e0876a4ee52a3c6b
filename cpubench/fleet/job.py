"""On the host: one run, started by a login and finished without one. ``python -m cpubench.fleet.job VERB FOLDER ..``

``check`` says whether the host may measure, ``start`` starts a process that outlives the login, ``clean`` ends what
still runs, gives limits back and removes the folder. Each prints one line of JSON. In the folder, ``pid-<boot id>``
names the process, whose arguments hold the folder; ``outcome.json`` says how the run ended, and ``run.json.gz`` is its
result.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.results.files import write_atomic

Json = dict[str, Any]
GRACE_S = 60.0  # from SIGTERM, after which a run saves what it measured and gives limits back, to SIGKILL
BOOT = Path("/proc/sys/kernel/random/boot_id")
WITH_RESULT = (0, 3, 70)  # exit codes of a run that was finished: done, not publishable, a limit not given back


def check(folder: Path, asked: Json) -> Json:
    """``state``: ready; or done, or running with ``ran_s``, of this cell already; or busy or refused, with ``text``."""
    there = _there(folder)
    if there["state"] != "gone":
        return there
    try:
        _check_suite(asked)
        _check_room(folder, asked.get("free_mb", 0))
        from cpubench.measure.folder import host_lock

        host_lock().close()
    except UsageError as error:
        return {"state": "busy" if error.code == "busy" else "refused", "text": str(error)}
    return {"state": "ready"}


def _check_suite(asked: Json) -> None:
    from cpubench.fleet.suite import kernels, suite_hash

    try:
        here = suite_hash(kernels(), asked["arguments"])
    except ImportError as error:
        raise UsageError("not_built", f"cpubench does not load here: {error}") from None
    if here != asked["suite"]:
        raise UsageError("suite", f"cpubench measures {here} here, the plan {asked['suite']}: install its version")


def _check_room(folder: Path, least_mb: float) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        status = os.statvfs(folder)
        with (folder / "probe").open("wb") as probe:
            probe.write(b"\0" * 65536)
        (folder / "probe").unlink()
    except OSError as error:
        raise UsageError("room", f"cannot be written: {error.strerror}", str(folder)) from None
    free_mb = status.f_bavail * status.f_frsize / 1e6
    if free_mb < least_mb:
        raise UsageError("room", f"{free_mb:.0f} MB are free, {least_mb:g} are needed (cpubench_free_mb)", str(folder))


def look(folder: Path) -> str:
    """running, done or gone."""
    for _ in range(2):  # it may end between the two
        if (folder / "outcome.json").exists():
            return "done"
        if _pid(folder) is not None:
            return "running"
    return "gone"


def _there(folder: Path) -> Json:
    """``state`` as ``look`` says it; of a run that goes on ``ran_s``, the seconds since it was started."""
    state = look(folder)
    if state != "running":
        return {"state": state}
    with contextlib.suppress(OSError):
        return {"state": state, "ran_s": round(max(time.time() - _pid_file(folder).stat().st_mtime, 0.0), 1)}
    return {"state": state, "ran_s": 0.0}


def _pid_file(folder: Path) -> Path:
    return folder / f"pid-{BOOT.read_text().strip()}"


def _pid(folder: Path) -> int | None:
    """The process of the job; None where it is gone, though another may have its number by now."""
    try:
        pid = int(_pid_file(folder).read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(folder) in words else None


def start(folder: Path, asked: Json) -> Json:
    """Starts the run, unless it goes on or is done; what an earlier try left half done is thrown away."""
    there = _there(folder)
    if there["state"] != "gone":
        return there
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "cpubench.fleet.job", "work", str(folder), json.dumps(asked)]
    with (folder / "log.txt").open("wb") as log:
        work = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )
    write_atomic(_pid_file(folder), str(work.pid).encode())
    return {"state": "started"}


def work(folder: Path, asked: Json) -> Json:
    """What became of the run, as ``outcome.json`` says too; limits are given back whatever became of it."""
    time.sleep(asked["settle_s"])  # the login that started this is over before anything is measured
    began, run = time.time(), folder / "run"
    command = [*shlex.split(asked.get("command") or f"{shlex.quote(sys.executable)} -m cpubench"), "run", "--json"]
    command += [*asked["arguments"], *([] if asked["cap"] == "as-is" else ["--cap", asked["cap"]]), "--out", str(run)]
    outcome: Json = {"state": "done", "started_utc": _utc(began), "exit": None, "error": None, "timed_out": False}
    try:
        outcome |= _run(command, folder, asked["deadline_s"])
    except OSError as error:
        outcome["error"] = {"code": "start", "text": f"{command[0]}: {error.strerror}"}
    outcome |= {"measured": any(run.glob("block-*.json")), "restore": restore()}
    try:
        if outcome["exit"] in WITH_RESULT and (run / "run.json").exists():
            outcome |= _pack(run / "run.json", folder / "run.json.gz")
    except OSError as error:
        outcome["error"] = {"code": "write", "text": f"the result was not packed: {error.strerror}"}
    outcome |= {"ended_utc": _utc(time.time()), "took_s": round(time.time() - began, 1)}
    with contextlib.suppress(OSError):  # of a full disk: then the run is gone without an outcome, which is told too
        write_atomic(folder / "outcome.json", json.dumps(outcome).encode())
    return outcome


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _run(command: list[str], folder: Path, deadline_s: float) -> Json:
    timed_out = False
    with (folder / "told.json").open("w+b") as told:
        run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=told, cwd=folder)
        try:
            signal.signal(signal.SIGTERM, lambda *_: run.terminate())  # of ``clean``: to the run, and then the rest
            run.wait(deadline_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            run.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(GRACE_S)
        finally:
            run.kill()
            run.wait()
        told.seek(0)
        text = told.read(100_000)
    try:
        error = json.loads(text).get("error")
    except (ValueError, AttributeError):
        told_of = {"code": "ended", "text": _last_words(folder, run.returncode)}
        error = None if run.returncode in WITH_RESULT else told_of
    return {"exit": run.returncode, "error": error, "timed_out": timed_out}


def _last_words(folder: Path, code: int) -> str:
    """Why a run ended that says it in no document: a signal, or the last line of its stderr."""
    lines = [line for line in (folder / "log.txt").read_text(errors="replace").splitlines() if line.strip()]
    return f"the run ended with {code}" + (f": {lines[-1][:300]}" if lines and code > 0 else "")


def _pack(file: Path, packed: Path) -> Json:
    data = gzip.compress(file.read_bytes(), 6, mtime=0)
    write_atomic(packed, data)
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def restore() -> Json:
    """Exit code and sentence of ``cpubench power restore``: nothing to do after a run that ended well."""
    command = [sys.executable, "-m", "cpubench", "power", "restore"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GRACE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"exit": None, "text": str(error)[:300]}
    return {"exit": done.returncode, "text": (done.stdout + done.stderr).strip()[-300:]}


def clean(folder: Path, keep: bool) -> Json:
    """How the limits were given back; what still runs is ended first, and the folder goes unless it is kept."""
    pid, until = _pid(folder), time.monotonic() + GRACE_S + 5
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):  # it may end meanwhile
            os.kill(pid, signal.SIGTERM)
            while _pid(folder) is not None and time.monotonic() < until:
                time.sleep(0.2)
            if _pid(folder) is not None:
                os.killpg(pid, signal.SIGKILL)  # it leads its session
    back = restore()
    if not keep and folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    return {"state": "cleaned", "restore": back}


def main(arguments: list[str]) -> int:
    """0; prints the answer of a verb as one line of JSON."""
    verb, folder, told = arguments[0], Path(arguments[1]), arguments[2]
    if verb == "clean":
        answer = clean(folder, told == "keep")
    else:
        answer = {"check": check, "start": start, "work": work}[verb](folder, json.loads(told))
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
