"""What an agent does: steps, each one call of a tool, and the place where they are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

PHASES = ("sandbox.create", "env.setup", "deps.install", "fs.copy", "explore", "edit", "build", "test", "snippet", "db",
          "net", "teardown", "wait.model", "wait.sched")  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Folders and programs of an agent; ``root`` is its own and holds home, tmp and work."""

    inputs: str
    root: str
    python: str
    cc: str
    shell: str

    @property
    def work(self) -> str:
        return f"{self.root}/work"

    def tool(self, name: str, *arguments: str) -> tuple[str, ...]:
        """The command of one of the programs in ``tools``."""
        return (self.python, f"{self.inputs}/tools/{name}.py", *arguments)


@dataclass(frozen=True)
class Step:
    """One call of a tool, or the start or end of a server of tools, and what must come of it."""

    label: str
    kind: str  # search, read, edit, test ..: steps of a kind are told together
    phase: str
    argv: tuple[str, ...] = ()  # of "ask": the tool's name and its argument
    action: Literal["run", "start", "ask", "stop"] = "run"
    server: str = ""  # the name of the one that is started, asked or stopped
    folder: str = ""  # below the agent's work folder
    status: int = 0
    expect: str = ""  # a regular expression that the output must match somewhere
    fixed: bool = True  # its output is the same on every host, and its hash is pinned
    pure: bool = False  # leaves nothing that a later step needs
    pythons: int = 0  # interpreters that it starts
    shells: int = 0
    timeout_s: float = 120.0
    charged: str = ""  # the server whose use an answer tells, where it is not the one that was asked
    load: bool = False  # of a server that is a generator of load: its CPU time is the harness's


def environment(place: Place, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of every step: nothing of the caller's, whose shell's start-up files could run 59 programs."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": f"{place.root}/home", "TMPDIR": f"{place.root}/tmp",
        "LC_ALL": "C", "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1",
        "GIT_CONFIG_NOSYSTEM": "1", **extra,
    }  # fmt: skip
