"""Every kernel's whole life under ASan and UBSan, those with threads under TSan, all under valgrind where it is.

``python tests/sanitize.py`` from the checkout's folder or any other; needs an installed cpubench.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cpubench import _native
from cpubench.host.layout import layout
from cpubench.host.topology import read_topology

EXT = Path(__file__).resolve().parent.parent / "ext"
SOURCES = ("copy", "arena", "files", "group", "measure", "process", "tree", "work", "registry")
PROGRAM = [EXT / f"{name}.c" for name in SOURCES]
FLAGS = ["-g", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread"]
TOOLS = {
    "asan+ubsan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"],
    "tsan": ["-fsanitize=thread"],
    "valgrind": [],
}
# 9 is no exit status of the program itself.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=9:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=9",
    "TSAN_OPTIONS": "exitcode=9:halt_on_error=1",
}
VALGRIND = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--track-fds=no", "--trace-children=no"]
LARGEST_BYTES = 64 << 20  # larger values than this and the least of a kernel run the same code, for minutes


def variants() -> list[tuple[dict, dict, list[str]]]:
    """(kernel, parameter, CPUs) of all that can be placed here and is not too large."""
    found = []
    cores = read_topology().cores
    for kernel in _native.kernels(hidden=True):
        if kernel["name"] == "test_fault":
            continue
        largest = max(LARGEST_BYTES, min(param["held_bytes"] for param in kernel["params"]))
        for param in kernel["params"]:
            groups = layout(cores, param["place"], param["threads"])
            if groups and not param["relative"] and param["held_bytes"] <= largest:
                found.append((kernel, param, [str(cpu) for cpu in groups[0]]))
    return found


def build(tool: str, folder: Path) -> Path:
    program = folder / f"copy-{tool}"
    cc = os.environ.get("CC", "cc").split()
    kernels = sorted((EXT / "kernels").glob("*.c"))
    subprocess.run([*cc, *FLAGS, *TOOLS[tool], *PROGRAM, *kernels, "-o", program], check=True)
    return program


def main() -> int:
    tools = [tool for tool in TOOLS if tool != "valgrind" or shutil.which("valgrind")]
    faults = runs = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target = folder / "target"
        subprocess.run(["cc", "-O2", "-static", "-nostdlib", EXT / "target.c", "-o", target], check=True)
        for tool in tools:
            program = build(tool, folder)
            for kernel, param, cpus in variants():
                if tool == "tsan" and not {"group", "own"} & set(kernel["flags"]):
                    continue
                files = folder / "files"
                files.mkdir(exist_ok=True)
                ops = str(min(40, kernel["max_ops"] or 40))
                command = [program, "solo", kernel["name"], param["label"], ops, files, target, *cpus]
                command = [*VALGRIND, *command] if tool == "valgrind" else command
                done = subprocess.run(
                    command, env={**os.environ, **OPTIONS}, capture_output=True, text=True, check=False
                )
                runs += 1
                if done.returncode or done.stderr:
                    faults += 1
                    print(
                        f"{tool}: {kernel['name']}[{param['label']}]: status {done.returncode}\n{done.stderr}",
                        file=sys.stderr,
                    )
            print(f"{tool}: done", flush=True)
    skipped = "" if "valgrind" in tools else "; valgrind is not installed: skipped"
    print(f"{runs} runs, {faults} with faults{skipped}")
    return 1 if faults or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
