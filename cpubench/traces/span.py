"""A span: one call of a tool, one answer of a model, one wait for a person; the same whatever format it came from."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from msgspec import Struct, structs

SCHEMA = "cpubench.trace/1"
Kind = Literal["llm", "tool", "human", "remote", "sandbox"]
KINDS = ("llm", "tool", "human", "remote", "sandbox")
CLASSES = ("test", "install", "build", "py", "git", "search", "read", "edit", "db", "net", "sandbox", "other")


class Span(Struct, frozen=True, kw_only=True, rename={"cls": "class"}):
    """Seconds since the epoch, seconds, bytes; None is "the trace does not say".

    ``internal_dur`` is what the tool itself says that it took, ``dur`` what its caller saw. A ``remote`` span is a call
    whose work another machine did. Until it is classified, ``cls`` is "" and ``cmd`` holds the command. Copies of it
    have the same ``key``, which is "" where the trace does not name its calls, and is written nowhere.
    """

    t: float | None = None
    dur: float | None = None
    kind: str = "tool"
    agent: str = "a1"
    task: str = "t1"
    step: int = 0
    tool: str = ""
    cls: str = ""
    cmd_hash: str | None = None
    in_bytes: int | None = None
    out_bytes: int | None = None
    exit: int | None = None
    cpu_user: float | None = None
    cpu_sys: float | None = None
    forks: int | None = None
    maxrss: int | None = None
    internal_dur: float | None = None
    cmd: str | None = None
    key: str = ""

    @property
    def seconds(self) -> tuple[float | None, str]:
        """What the span counts, and by whose word: its CPU time beats the tool's own time, that the caller's."""
        if self.cpu_user is not None and self.cpu_sys is not None:
            return self.cpu_user + self.cpu_sys, "cpu"
        if self.internal_dur is not None:
            return self.internal_dur, "internal"
        return self.dur, "caller"


def told(span: Span, keep_commands: bool) -> dict[str, Any]:
    """The span as a line of the normal form; a command is there as its hash, and in full only on request."""
    made = structs.asdict(span)
    made["class"] = made.pop("cls")
    del made["key"]
    command = (made.pop("cmd") or "").encode(errors="replace").decode()
    if command and not made["cmd_hash"]:
        made["cmd_hash"] = hashlib.sha256(command.encode()).hexdigest()[:16]
    return made | ({"cmd": command} if keep_commands and command else {})
