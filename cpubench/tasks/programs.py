"""The programs that tasks are made of, as this host has them: path and version, or why there is none."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.tasks.catalogue import Task

PROBE_S = 60
SOURCE = "#include <stddef.h>\n#include <stdint.h>\nint probe(void) { return 0; }\n"
PATH = "/usr/local/bin:/usr/bin:/bin"
MODULES = {"T1": ("venv", "ctypes", "unittest", "compileall"), "T2": ("sqlite3", "http.server"),
           "T5": ("sqlite3", "asyncio")}  # fmt: skip
COMPILED = ("T1", "T1b")


@dataclass
class Programs:
    """Paths by name, what is stored of them, and reasons of those that cannot be used."""

    paths: dict[str, str] = field(default_factory=dict)
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def reason(self, task: Task) -> str | None:
        """Why the task cannot be done here; None where it can."""
        kind = "T1" if task.task == "T4" else task.task
        needs = [*MODULES.get(kind, ()), *task.tools, *(["cc"] if kind in COMPILED else [])]
        needs += [f"T3 {task.params[0]}"] if kind == "T3" else []
        return next((self.missing[need] for need in needs if need in self.missing), None)


def probe(scratch: Path, path: str = PATH, python: str | None = None) -> Programs:
    """What is found along ``path``; ``scratch`` is an empty folder for a trial of the compiler.

    The interpreter is the one below this program's own environment: one that a wrapper script starts would be measured
    with its wrapper.
    """
    found = Programs()
    base = python or os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    _keep(found, "python3", base, ["-c", "import sys; print(sys.version)"])
    shell = shutil.which("sh", path=path)
    if shell is None or "python3" in found.missing:
        raise UsageError("programs", found.missing.get("python3") or "there is no sh along the path", path)
    _keep(found, "sh", shell, None)
    for name in dict.fromkeys(name for names in MODULES.values() for name in names):
        fault = _ran([base, "-c", f"import {name}"])[1]
        if fault is not None:
            found.missing[name] = f"python3 has no module {name}: {fault}"
    compiler = shutil.which("cc", path=path)
    fault = "no compiler: there is no cc along the path" if compiler is None else _compile(compiler, scratch)
    if compiler is None or fault:
        found.missing["cc"] = fault or ""
    else:
        _keep(found, "cc", compiler, ["--version"])
    git = shutil.which("git", path=path)
    if git:
        _keep(found, "git", git, ["--version"])
    else:
        found.missing["git"] = "there is no git along the path"
    text, fault = _ran([base, "-m", "pip", "--version"])
    if fault is None:
        found.stored["pip"] = {"path": base, "version": text.split(" from ")[0]}
    else:
        found.missing["pip"] = f"python3 has no pip: {fault}"
    return found


def check_tools(names: Sequence[str]) -> tuple[str, ...]:
    """The optional programs, sorted."""
    wrong = [name for name in names if name not in ("git", "pip")]
    if wrong:
        raise UsageError("tools", f"{wrong[0]!r} is none of git and pip", "--tools")
    return tuple(sorted(set(names)))


def _keep(found: Programs, name: str, path: str, version: Sequence[str] | None) -> None:
    text, fault = ("", None) if version is None else _ran([path, *version])
    if fault is not None:
        found.missing[name] = f"{path}: {fault}"
        return
    real = os.path.realpath(path)
    found.paths[name] = path
    digest = hashlib.sha256(Path(real).read_bytes()).hexdigest()
    found.stored[name] = {"path": path, "file": real, "version": text, "sha256": digest}


def _ran(argv: Sequence[str]) -> tuple[str, str | None]:
    """The first line of what a program says, and why it failed."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=PROBE_S, cwd="/",
                              stdin=subprocess.DEVNULL, env={"PATH": PATH, "LC_ALL": "C"})  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", getattr(error, "strerror", None) or f"no answer after {PROBE_S} s"
    told = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode:
        return "", (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1][:200]
    return (told or [""])[0][:200], None


def _compile(compiler: str, scratch: Path) -> str | None:
    source = scratch / "probe.c"
    source.write_text(SOURCE)
    fault = _ran([compiler, "-shared", "-fPIC", "-o", str(scratch / "probe.so"), str(source)])[1]
    return None if fault is None else f"the compiler {compiler} cannot make a shared library: {fault}"
