"""T6: agents that hold their memory and work, until one of them takes much more for a moment: what do the others feel?

Traces of 144 coding tasks had a baseline of 185 MB an agent, peaks of 2 to 4 GB, up to 2.9 GB within a second, and
bursts of one to two seconds (arXiv 2602.09345). Neighbours run a short tool each and wait so long after it that all
together use half of the CPUs (of a quota: of what it grants), as agents that wait for their models leave them idle.
Where they are fewer than half of the CPUs they do not wait, and use less.
"""

from __future__ import annotations

import mmap
import os
import random
import resource
import time
from typing import Any

from cpubench.tasks import desk, spans
from cpubench.tasks.burst_steps import BURST, BURST_S, bursts, place_at
from cpubench.tasks.catalogue import Task
from cpubench.tasks.spans import Span

BLOCK_BYTES = 4 << 20

Json = dict[str, Any]


def held(size: int) -> mmap.mmap:
    """Memory of which every page was written, with bytes that no kernel shares or compresses well."""
    made, block = mmap.mmap(-1, size), os.urandom(BLOCK_BYTES)
    for at in range(0, size, BLOCK_BYTES):
        made[at : min(size, at + BLOCK_BYTES)] = block[: min(BLOCK_BYTES, size - at)]
    return made


def roam(spec: Json, task: Task, table: desk.Desk, tells: int, go: int) -> Json:
    """What one agent does: the first one takes its bursts, the others work."""
    from cpubench.tasks import crew

    base_bytes, burst_bytes = (int(part.removesuffix("MB")) << 20 for part in task.params)
    base = held(base_bytes)
    open_ns = crew.await_signal(tells, go)
    table.zero_ns = open_ns
    before = crew.used_us()
    end_ns = open_ns + spec["window_ns"]
    failures = _bursts(table, burst_bytes, open_ns, end_ns) if table.agent == 0 else _works(spec, task, table, end_ns)
    own_us, tools_us = (new - old for new, old in zip(crew.used_us(), before, strict=True))
    if base[:64] != base[BLOCK_BYTES : BLOCK_BYTES + 64]:
        failures.append("the memory that an agent held is not what it wrote")
    base.close()
    bursts_us = sum(span.user_us + span.sys_us for span in table.spans if span.step == BURST)
    counted = [span for span in table.spans if span.start_ns + span.wall_ns >= 0]
    return {"spans": spans.columns(counted), "failures": failures, "harness_us": own_us - bursts_us,
            "tools_us": tools_us + bursts_us}  # fmt: skip


def _bursts(table: desk.Desk, size: int, open_ns: int, end_ns: int) -> list[str]:
    """Takes memory at its times, writes all of it, holds it until the burst's end, and gives it back."""
    for begin_s in bursts((end_ns - open_ns) / 1e9):
        begin_ns = open_ns + round(begin_s * 1e9)
        time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
        before, start_ns = resource.getrusage(resource.RUSAGE_SELF), time.monotonic_ns()
        try:
            memory = held(size)
        except OSError as error:
            return [f"burst: {size >> 20} MiB cannot be had: {error.strerror}"]
        time.sleep(max(0, start_ns + BURST_S * 1e9 - time.monotonic_ns()) / 1e9)
        good = memory[:64] == memory[BLOCK_BYTES : BLOCK_BYTES + 64] == memory[-BLOCK_BYTES : 64 - BLOCK_BYTES]
        memory.close()
        span = Span(BURST, table.agent, start_ns - table.zero_ns, time.monotonic_ns() - start_ns)
        span.add(resource.getrusage(resource.RUSAGE_SELF))
        span.user_us -= round(before.ru_utime * 1e6)
        span.sys_us -= round(before.ru_stime * 1e6)
        span.minor_faults -= before.ru_minflt
        span.major_faults -= before.ru_majflt
        span.voluntary -= before.ru_nvcsw
        span.involuntary -= before.ru_nivcsw
        table.spans.append(span)
        if not good:
            return ["burst: the memory is not what was written"]
    time.sleep(max(0, end_ns - time.monotonic_ns()) / 1e9)
    return []


def _works(spec: Json, task: Task, table: desk.Desk, end_ns: int) -> list[str]:
    """Runs the tool again and again; of how the wait is drawn, its mean keeps half of the CPUs busy, if enough work."""
    todo = task.steps(table.place)
    rng = random.Random(f"{spec['seed']} {spec['index']} {table.agent}")
    idle = max(0.0, 2 * (task.agents - 1) / spec["paced_cpus"] - 1)  # of a step's time, waited after it
    begins_s = bursts(spec["window_ns"] / 1e9)
    wait_s = rng.random() * 0.1
    while True:
        time.sleep(min(wait_s, max(0, end_ns - time.monotonic_ns()) / 1e9))
        now_ns = time.monotonic_ns()
        if now_ns >= end_ns:
            return []
        at_s = (now_ns - table.zero_ns) / 1e9
        step = place_at(at_s, begins_s)
        table.idle_ns = now_ns
        try:
            took_ns = desk.do(table, step, todo[step], end_ns).wall_ns
        except desk.Late:
            return []
        except (desk.Failed, OSError) as error:
            return [str(error)]
        wait_s = took_ns / 1e9 * idle * (0.5 + rng.random())
