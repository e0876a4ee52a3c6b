"""T5: the host of chats: per turn accept, JSON, template, tokens, session, event stream, log; the model is not there.

One process per CPU serves; a client beside it sends prepared requests and hashes the answers, and its CPU time is the
harness's. Contexts of 1, 32 and 119 thousand tokens: the last is the median of a coding session (4,265 of them,
arXiv 2606.30560), as is the answer of 214 tokens.
"""

from __future__ import annotations

import json
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

from cpubench.tasks import agent, crew, desk, servers, spans, verify
from cpubench.tasks.catalogue import Task
from cpubench.tasks.chat_steps import BEFORE, SIZES, steps
from cpubench.tasks.spans import Span

RAMP_NS = 1_000_000_000
READY_S = 120.0
LATE_S = 60.0  # that the last turns of a crowd may take after the window

Json = dict[str, Any]


def work(spec: Json, task: Task, folder: Path) -> Json:
    """What all sessions did in one window: a span for each turn, the host's CPU time in the background."""
    began_ns = time.monotonic_ns()
    table = agent.opened(spec, task, folder, 0, alone=False)
    todo = steps(table.place, task.params[0])
    first = next(number for number, step in enumerate(todo) if step.kind == "turn")
    crowds: list[subprocess.Popen[bytes]] = []
    try:
        for number, step in enumerate(todo[:BEFORE]):
            desk.do(table, number, step)
        crowds = _crowds(table, task, min(task.agents, len(spec["cpus"])))
        ready_ns = time.monotonic_ns()
        open_ns = ready_ns + RAMP_NS
        end_ns = open_ns + spec["window_ns"]
        for one in crowds:
            assert one.stdin is not None
            one.stdin.write(b"%d %d\n" % (open_ns, end_ns))
            one.stdin.flush()
        seen = crew.watch(open_ns, end_ns, spec)
        before = spans.used_us(resource.RUSAGE_CHILDREN)
        turns = [turn for one in crowds for turn in json.loads(one.communicate(timeout=LATE_S)[0] or b"[]")]
        clients_us = spans.used_us(resource.RUSAGE_CHILDREN) - before
        failures = _faults(table, turns, crowds)
    except (desk.Failed, OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise OSError(0, f"the host of chats: {error}") from None
    finally:
        for one in crowds:
            one.kill()
            one.wait()
        desk.clear(table)
    found = [Span(first + at, session, start_ns, wall_ns) for session, at, start_ns, wall_ns, _, _ in turns]
    host = Span(first, 0, 0, spec["window_ns"], background=True)
    for turn in turns:
        servers.count(host, turn[5])
    found.append(host)
    return {
        "wall_ns": spec["window_ns"], "window_ns": spec["window_ns"], "failures": failures, "outputs": {},
        "spans": spans.columns(found), "harness_us": clients_us,
        "tools_us": host.user_us + host.sys_us, "leftovers": [], **seen, "ready_ns": ready_ns - began_ns,
    }  # fmt: skip


def _crowds(table: desk.Desk, task: Task, count: int) -> list[subprocess.Popen[bytes]]:
    """Client processes that are ready, with as many sessions each."""
    size = str(SIZES[task.params[0]])
    shares = [range(number, task.agents, count) for number in range(count)]
    made, first = [], 0
    for share in shares:
        argv = table.place.tool("chat_client", "crowd", f"{table.place.inputs}/chat/text.txt", size, str(first),
                                str(len(share)))  # fmt: skip
        one = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=table.env,
                               cwd=f"{table.place.work}/chat")  # fmt: skip
        table.ours.add(one.pid)
        made.append(one)
        first += len(share)
    for one in made:
        assert one.stdout is not None
        if not one.stdout.readline():
            raise ValueError("a client ended at once")
    return made


def _faults(table: desk.Desk, turns: list[Any], crowds: list[subprocess.Popen[bytes]]) -> list[str]:
    """What was wrong with answers, in sentences: each must be the pinned one of its turn."""
    pins = table.pins or {}
    told = [(at, verify.digest(json.dumps(result).encode() + b"\n")) for _, at, _, _, result, _ in turns]
    wrong = [at for at, digest in told if table.pins is not None and pins.get(f"turn.{at}") != digest]
    failures = [f"turn.{at}: the answer is not what it is on other hosts" for at in sorted(set(wrong))]
    failures += [f"a client ended with {one.returncode}" for one in crowds if one.returncode]
    with Path(table.place.work, "chat", "chat.log").open() as log:
        logged = sum(1 for _ in log)
    if logged < len(turns):
        failures.append(f"{len(turns)} turns ended, and {logged} are in the log")
    return failures
