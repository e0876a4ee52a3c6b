"""An agent at work: runs a step in a process group of its own, or asks a server, and tells what it took."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpubench.tasks import verify
from cpubench.tasks.servers import Server, charge, line
from cpubench.tasks.spans import Counters, Span, count
from cpubench.tasks.steps import Place, Step

RESET = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGALRM]  # Python ignores the first two
LOOK_S = 0.0005
CLOSED = -1  # in place of a file descriptor
ENDING_NS = 2_000_000_000  # that a server may take to end by itself
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


class Late(Exception):
    """The time of a step is over."""


class Failed(Exception):
    """A check of a step failed: a sentence that begins with its label."""


@dataclass
class Desk:
    """The state between steps."""

    place: Place
    env: dict[str, str]
    counters: Counters
    cpus: int
    pins: dict[str, str] | None
    agent: int = 0
    zero_ns: int = field(default_factory=time.monotonic_ns)
    idle_ns: int = field(default_factory=time.monotonic_ns)  # since when no step runs
    ours: set[int] = field(default_factory=lambda: verify.children() or set())  # children that are no step's
    servers: dict[str, Server] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)  # hashes of fixed ones by label
    load_us: int = 0  # CPU time of generators of load that have ended


def adopt_orphans() -> bool:
    """Makes this process the parent of what its descendants leave behind (prctl(2)), so that nothing escapes it."""
    try:
        import ctypes  # needs libffi, which a hand-made Python may lack

        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def on_alarm() -> None:
    """Lets SIGALRM raise ``Late``: one thread, one wait at a time."""

    def late(number: int, frame: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)


def do(desk: Desk, number: int, step: Step, stop_ns: int | None = None) -> Span:
    """The span of a step that was done and checked; Failed where it did not do what it must.

    Late where ``stop_ns`` came first: then the step is killed, and is no failure.
    """
    os.chdir(Path(desk.place.work, step.folder))
    left_s = step.timeout_s if stop_ns is None else min(step.timeout_s, (stop_ns - time.monotonic_ns()) / 1e9)
    if left_s <= 0:
        raise Late
    before = desk.counters.transferred(), desk.counters.last_pid()
    began_ns = time.monotonic_ns()
    span = Span(number, desk.agent, began_ns - desk.zero_ns, 0, around_ns=began_ns - desk.idle_ns)
    signal.setitimer(signal.ITIMER_REAL, left_s)
    try:
        status, output = _ACTIONS[step.action](desk, step, span)
    except Late:
        _strays(desk, span)
        if stop_ns is not None and time.monotonic_ns() >= stop_ns:
            raise
        raise Failed(f"{step.label}: not done after {step.timeout_s:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        desk.idle_ns = time.monotonic_ns()
    count(span, before, desk.counters)
    strays = _strays(desk, span)
    desk.spans.append(span)
    if step.fixed:
        desk.outputs[step.label] = verify.digest(output)
    pinned = None if desk.pins is None else desk.pins.get(step.label, "none")
    fault = verify.fault(step, status, output, pinned) or verify.impossible(span, step.label, desk.cpus)
    if strays and not fault:
        fault = f"{step.label}: process left behind: {', '.join(strays)}"
    if fault:
        raise Failed(fault)
    return span


def _spawn(desk: Desk, argv: tuple[str, ...], files: list[Any]) -> int:
    return os.posix_spawn(argv[0], argv, desk.env, file_actions=files, setpgroup=0, setsigdef=RESET)


def _ended(span: Span, pid: int, began_ns: int) -> int:
    """Waits for a process and counts it; its exit status, or minus its signal."""
    _, status, usage = os.wait4(pid, 0)
    span.wall_ns = time.monotonic_ns() - began_ns
    span.add(usage)
    return os.waitstatus_to_exitcode(status)


def _run(desk: Desk, step: Step, span: Span) -> tuple[int, bytes]:
    out = f"{desk.place.root}/output"
    files = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
             (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
             (os.POSIX_SPAWN_DUP2, 1, 2)]  # fmt: skip
    began_ns = time.monotonic_ns()
    pid = _spawn(desk, step.argv, files)
    try:
        status = _ended(span, pid, began_ns)
    except BaseException:  # late, or we are to end
        _kill(pid)
        raise
    return status, Path(out).read_bytes()


def _start(desk: Desk, step: Step, span: Span) -> tuple[int, bytes]:
    """Starts a server and waits until it says that it is ready: its first line."""
    (inner, asked), (answers, outer) = os.pipe(), os.pipe()  # not inherited, but for the ends that are copied
    began_ns = time.monotonic_ns()
    files = [(os.POSIX_SPAWN_DUP2, inner, 0), (os.POSIX_SPAWN_DUP2, outer, 1)]
    pid = _spawn(desk, step.argv, files)
    os.close(inner)
    os.close(outer)
    desk.ours.add(pid)
    server = Server(pid, asked, answers, began_ns, Span(span.step, span.agent, span.start_ns, 0, background=True))
    desk.servers[step.server] = server
    told = line(server)
    span.wall_ns = time.monotonic_ns() - began_ns
    try:
        charge(span, server, json.loads(told).get("usage"))
    except ValueError:
        return -1, told or b"it ended at once"
    return 0, told


def _ask(desk: Desk, step: Step, span: Span) -> tuple[int, bytes]:
    """Asks for a tool; the answer says what it used."""
    server = desk.servers[step.server]
    name, argument = step.argv
    request = {
        "jsonrpc": "2.0",
        "id": span.step,
        "method": "tools/call",
        "params": {"name": name, "arguments": argument},
    }
    began_ns = time.monotonic_ns()
    os.write(server.asked, json.dumps(request).encode() + b"\n")
    told = line(server)
    span.wall_ns = time.monotonic_ns() - began_ns
    answer = json.loads(told or b'{"error": "the server ended"}')
    charge(span, desk.servers[step.charged] if step.charged else server, answer.get("usage"))
    if "error" in answer or answer.get("id") != span.step:
        return 1, json.dumps(answer.get("error", "the answer is another call's")).encode()
    return 0, json.dumps(answer["result"]).encode() + b"\n"


def _stop(desk: Desk, step: Step, span: Span) -> tuple[int, bytes]:
    """Ends a server by the end of its input; what it used beside its answers is a span in the background."""
    server = desk.servers[step.server]
    os.close(server.asked)
    server.asked = CLOSED  # the window may end while we wait for it
    began_ns = time.monotonic_ns()
    _, status, usage = os.wait4(server.pid, 0)
    os.close(server.answers)
    del desk.servers[step.server]
    desk.ours.discard(server.pid)
    server.span.add(usage)
    _wait_for_rest(desk, server.span, began_ns + ENDING_NS)
    span.wall_ns = time.monotonic_ns() - began_ns
    server.span.user_us, server.span.sys_us = max(0, server.span.user_us), max(0, server.span.sys_us)
    server.span.wall_ns = time.monotonic_ns() - server.started_ns
    if step.load:
        desk.load_us += round(1e6 * (usage.ru_utime + usage.ru_stime))
    else:
        desk.spans.append(server.span)
    return os.waitstatus_to_exitcode(status), b""


def _wait_for_rest(desk: Desk, span: Span, end_ns: int) -> None:
    """Waits until what a server started has ended too: a sandbox is down when its last process is, and bwrap leaves the
    first one of its namespaces to end after itself."""
    while (left := (verify.children() or set()) - desk.ours) and time.monotonic_ns() < end_ns:
        for pid in left:
            done, _, usage = os.wait4(pid, os.WNOHANG)
            if done:
                span.add(usage)
        time.sleep(LOOK_S)


_ACTIONS = {"run": _run, "start": _start, "ask": _ask, "stop": _stop}


def _strays(desk: Desk, span: Span) -> list[str]:
    """Names of processes that a step left running, killed; the time of those that ended meanwhile is the step's."""
    names, end_ns = [], time.monotonic_ns() + ENDING_NS
    while (left := (verify.children() or set()) - desk.ours) and time.monotonic_ns() < end_ns:
        for pid in sorted(left):  # whose children are ours once it has ended
            done, _, usage = os.wait4(pid, os.WNOHANG)
            if done:
                span.add(usage)
                continue
            with suppress(OSError):
                names.append(Path(f"/proc/{pid}/comm").read_text().strip())
            os.kill(pid, signal.SIGKILL)
            os.wait4(pid, 0)
    return names


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def clear(desk: Desk) -> None:
    """Ends servers and what else is still there; a sandbox has a moment to take down what it made."""
    for server in desk.servers.values():
        for number in {server.asked, server.answers} - {CLOSED}:
            os.close(number)
        end_ns = time.monotonic_ns() + ENDING_NS
        while (
            not os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) and time.monotonic_ns() < end_ns
        ):
            time.sleep(LOOK_S)
        _kill(server.pid)
        desk.ours.discard(server.pid)
    desk.servers.clear()
    _strays(desk, Span(0, 0, 0, 0))
