"""Kills runs at random moments and goes on with them: ``python tests/torture.py [KILLS] [QUICK KILLS] [--recipes]``.

Runs of seconds are killed and resumed until they have had enough, then real ones of the profile ``quick``; with
``--recipes`` there is also one ``quick`` run in each surrounding of ``tests/hosts/recipes.py``. Prints a JSON document
for each part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from hosts import recipes, short

MARK = "CPUBENCH_TORTURE"  # in the environment of all that a run starts
WAYS = ("command", "command", "block", "all", "block and guards", "SIGTERM", "SIGINT", "SIGHUP")
GONE_S = 10.0
FAILED = "ended by itself: "
VARIANTS = ["test_work[steps=1000]@1", "lock_mutex[cs=200ns]@cores", "file_create@cores", "spawn_shell@1",
            "switch_pipe[place=other]@1", "storage_create@1"]  # fmt: skip
QUICK = [sys.executable, "-I", "-m", "cpubench"]
SHORT = [sys.executable, "-I", str(Path(short.__file__)), ",".join(VARIANTS)]
MODULES = {b"cpubench.measure.block", b"cpubench.measure.calibrate"}
PASSES, SPAN_S = 20, 1.5  # about 5 s of which a kill waits for at most so much

Json = dict[str, Any]


def processes(mark: str) -> list[int]:
    """Pids of the processes that live and carry the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def name_of(pid: int) -> str:
    """What kind of process of a run it is: a guard is a fork of its block, which may have ended."""
    words = command_of(pid)
    if words[0] == b"cpubench-copy":
        return "copy"
    if not MODULES & set(words):
        return "command"
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return "block"
    return "guard" if parent == 1 or MODULES & set(command_of(parent)) else "block"


def command_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def outside() -> Json:
    """What a run could leave behind: files in places of everybody's, mounts, control groups."""
    places = [Path("/dev/shm"), Path(tempfile.gettempdir())]
    groups = [path for path in Path("/sys/fs/cgroup").rglob("*cpubench*") if path.is_dir()]
    return {
        "files": sorted(str(path) for place in places for path in place.glob("*cpubench-*")),
        "mounts": sorted(line.split(" ", 1)[1] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "groups": sorted(map(str, groups)),
    }


def blocks(folder: Path) -> dict[str, bytes]:
    """The finished files of a run that nothing may change, with its plan."""
    return {path.name: path.read_bytes() for path in [*folder.glob("block-*.json"), *folder.glob("plan.json")]}


def kill(command: list[str], way: str, after_s: float, environ: dict[str, str], mark: str) -> tuple[bool, str]:
    """Whether the command was still at work when it was killed, and what it said: all, or how it failed by itself."""
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=said, cwd="/",
                              start_new_session=True) as process:  # fmt: skip
            try:
                process.wait(after_s)
            except subprocess.TimeoutExpired:
                for pid in victims(way, process.pid, mark):
                    try:
                        os.kill(pid, signal.Signals[way] if way.startswith("SIG") else signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                cut = True
            else:
                cut = False
            process.wait()
        said.seek(0)
        text = said.read().decode(errors="replace")
        return cut, text if cut or process.returncode == 0 else f"{FAILED}{text}"


def victims(way: str, command: int, mark: str) -> list[int]:
    """Whom a way of killing meets, in that order."""
    if way == "command" or way.startswith("SIG"):
        return [command]
    kinds = {"block": ("block",), "all": ("command", "block", "guard", "copy"), "block and guards": ("guard", "block")}
    named = [(name_of(pid), pid) for pid in processes(mark)]
    return [pid for kind in kinds[way] for name, pid in named if name == kind]


def traced(said: str) -> bool:
    """Whether there is a traceback of ours: before our first line Ctrl-C has one of the interpreter's start."""
    return any(name in said.partition("Traceback")[2] for name in ("cpubench", "short.py"))


def faults(folder: Path, before: dict[str, bytes], there: Json, mark: str, said: str) -> Iterator[str]:
    """What a killed run did that it must not."""
    end = time.monotonic() + GONE_S
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.01)
    if left:
        yield f"processes are left: {[name_of(pid) for pid in left]}"
    yield from (f"{kind}: {was} became {now}" for kind, now in outside().items() if (was := there[kind]) != now)
    after = blocks(folder)
    yield from (f"{name} changed" for name, data in before.items() if after.get(name) != data)
    if traced(said) or said.startswith(FAILED):
        yield said[-400:]


def tortured(start: list[str], again: list[str], folder: Path, span_s: float, kills: int, rng: random.Random,
             passes: str) -> Json:  # fmt: skip
    """One run that is killed so often, and then finished: what went wrong, and how often which way met it."""
    mark = f"{MARK}={secrets.token_hex(8)}"
    environ = {**os.environ, MARK: mark.partition("=")[2], "SHORT_PASSES": passes}
    there, before, wrong, ways = outside(), {}, [], Counter[str]()
    resumed = False
    for _ in range(kills):
        way, resumed = rng.choice(WAYS), (folder / "plan.json").exists()
        if not resumed and folder.exists():  # nothing was planned: a person would remove that
            subprocess.run(["rm", "-r", str(folder)], check=True)
        command = [*again, "run", "--resume", str(folder)] if resumed else [*start, "--out", str(folder)]
        cut, said = kill(command, way, rng.random() * span_s, environ, mark)
        ways[way if cut else "not met"] += 1
        wrong += [f"{way}: {fault}" for fault in faults(folder, before, there, mark, said)]
        before = blocks(folder)
    if not (folder / "plan.json").exists():
        return {"kills": ways, "wrong": wrong, "passes": 0}
    done = subprocess.run([*again, "run", "--resume", str(folder)], env=environ, capture_output=True, text=True,
                          cwd="/", check=False)  # fmt: skip
    wrong += [f"resumed: {done.stderr[-300:]}"] * (done.returncode != 0)
    wrong += [f"at the end: {fault}" for fault in faults(folder, before, there, mark, done.stderr)]
    valid = subprocess.run([*again, "validate", str(folder)], env=environ, capture_output=True, text=True, cwd="/",
                           check=False)  # fmt: skip
    wrong += [f"not valid: {valid.stderr.strip()}"] * (valid.returncode != 0)
    wrong += [f"left in the folder: {path.name}" for path in folder.glob(".*")]
    return {"kills": ways, "wrong": wrong, "passes": len(list(folder.glob("block-???-as-is.json")))}


def short_kills(kills: int, folder: Path, seed: int, each: int = 6) -> Iterator[Json]:
    """Runs of seconds, killed ``each`` times."""
    rng = random.Random(seed)
    for number in range(-(-kills // each)):
        start = [*SHORT, "run", "--profile", "quick", "--seed", str(rng.randrange(2**32))]
        most = min(each, kills - number * each)
        yield tortured(start, SHORT, folder / f"short-{number}", SPAN_S, most, rng, str(PASSES))


def quick_kills(kills: int, folder: Path, seed: int) -> Iterator[Json]:
    """Real runs of ``quick``, each killed once."""
    rng = random.Random(seed)
    for number in range(kills):
        start = [*QUICK, "run", "--profile", "quick", "--seed", str(rng.randrange(2**32))]
        yield tortured(start, QUICK, folder / f"quick-{number}", 110.0, 1, rng, "")


def document(text: str) -> tuple[Json, list[str]]:
    """The one document of a command, and what is wrong with it."""
    try:
        return json.loads(text or "{}"), []
    except ValueError as error:
        return {}, [f"stdout is no one document ({error}): {text[-400:]}"]


def surroundings(folder: Path) -> Iterator[Json]:
    """A real run of ``quick`` in each surrounding: exit code, rows without a number, and whether that is right."""
    tools = folder / "tools"
    tools.mkdir()
    recipes.tools(tools)
    for number, (name, recipe) in enumerate(recipes.RECIPES.items()):
        out = folder / f"recipe-{number}"
        out.mkdir()
        out.chmod(0o777)
        command = [*QUICK, "run", "--profile", "quick", "--json", "--out", str(out / "r")]
        done = recipes.run(recipe, command, tools, out, 400)
        told, wrong = document(done.stdout)
        lacking = {row["variant"]: row["reason"] for row in told.get("failed", []) + told.get("skipped", [])}
        wrong += ["a traceback"] * ("Traceback" in done.stderr)
        if recipe.refusal:
            wrong += ["not refused"] * (done.returncode != 2 or recipe.refusal not in done.stderr)
            wrong += ["something is left"] * bool(list(out.iterdir()))
        else:
            wrong += [f"exit code {done.returncode}: {done.stderr[-300:]}"] * (done.returncode != 0)
            known = [*recipe.reasons.items(), *recipe.quick.items()]
            strange = [key for key, reason in lacking.items()
                       if not any(key.startswith(start) and text in reason for start, text in known)]  # fmt: skip
            wrong += [f"without a number: {key}: {lacking[key]}" for key in strange]
            valid = subprocess.run([*QUICK, "validate", str(out / "r")], capture_output=True, text=True, check=False)
            wrong += [f"not valid: {valid.stderr.strip()}"] * (valid.returncode != 0)
        yield {"recipe": name, "exit": done.returncode, "rows without a number": len(lacking), "wrong": wrong}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int, nargs="?", default=300)
    parser.add_argument("quick", type=int, nargs="?", default=10)
    parser.add_argument("--recipes", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="torture-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        parts = [
            told(f"short, seed {asked.seed}", summary(short_kills(asked.kills, folder, asked.seed))),
            told("quick", summary(quick_kills(asked.quick, folder, asked.seed))),
            *(told("recipe", one) for one in (surroundings(folder) if asked.recipes else ())),
        ]
    return int(any(one["wrong"] for one in parts))


def told(name: str, found: Json) -> Json:
    """The same, after printing it: an hour's work is not kept for the end."""
    print(json.dumps({name: found}), flush=True)
    return found


def summary(runs: Iterator[Json]) -> Json:
    kills, wrong, passes, count = Counter[str](), [], 0, 0
    for one in runs:
        kills.update(one["kills"])
        wrong += one["wrong"]
        passes, count = passes + one["passes"], count + 1
    return {"runs": count, "kills": sum(kills.values()) - kills["not met"], "ways": kills, "passes": passes,
            "wrong": wrong}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
