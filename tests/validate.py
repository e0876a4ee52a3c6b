"""Kernels against peers: the same work, written apart from them or by others, alternating on the same CPUs.

Needs an installed cpubench, a C compiler and an idle machine. Writes the table of docs/validation.md; ``--quick`` and
names print theirs only. Ends with 1 where a row is off by more than 5 % and nothing that was measured explains it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from peers.page import OFF, Row, Taken, spread, table, write
from peers.table import ARGUMENTS, EXPLAINED, MULTIPLE_OF, REST_S, TOOLS, WARM_OPS
from pools import CORES, DEADLINE_NS, KERNELS, LISTED, groups_of, param

from cpubench import _native
from cpubench.errors import UsageError
from cpubench.host.facts import collect
from cpubench.measure import programs
from cpubench.measure.calibrate import one_copy
from cpubench.measure.folder import host_lock
from cpubench.results.names import row_name

PEERS = Path(__file__).resolve().parent / "peers"
FLAGS = ["-O2", "-std=gnu11", "-static", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
NEAR = 0.03  # of the ratio: from here on a row is explained if it can be
WIDTH = 0.04  # pairs are taken until the interval of the median ratio is narrower
OTHERS = 0.15  # CPUs: a pair in which other processes used more is taken again
WORK = ("test_work", "steps=1000")
FACTS = collect()
SEEDS = itertools.count(1)
DUE_NS = 1_000_000_000  # no sample lasts longer; until then this process sleeps
Side = Callable[[], float]


class Plan(NamedTuple):
    """How much is measured, and where files go."""

    target_ns: int
    least: int  # pairs
    most: int
    folder: Path  # on tmpfs
    disk: Path

    def place(self, kernel: str) -> Path:
        return self.disk if "storage" in KERNELS[kernel]["flags"] else self.folder


def output(command: list[Any]) -> str:
    """What a program prints; this process sleeps meanwhile."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{Path(str(command[0])).name}: status {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def build(kernel: str, folder: Path) -> Path:
    """The peer's program, compiled into ``folder``."""
    program = folder / kernel
    output([*os.environ.get("CC", "cc").split(), *FLAGS, PEERS / f"{kernel}.c", "-o", program, "-lm"])
    return program


@contextlib.contextmanager
def pool(variant: tuple[str, str], copies: list[list[int]], folder: Path) -> Iterator[Callable[..., Any]]:
    """sample(ops, window_ns, seats) of fresh copies: memory is had anew for each, as a peer has it."""
    kernel, (index, record) = KERNELS[variant[0]], param(*variant)
    seats = [(cpus[0], record["value"] if "parent" in kernel["flags"] else 0) for cpus in copies]
    # Each with a seed of its own, as the passes of a run have: cycles differ, and so do the names of folders on a disk.
    paths, llc_bytes = (str(programs.COPY), str(programs.TARGET), str(folder)), FACTS["llc_bytes"] or 0
    made = _native.Pool(*paths, seats, llc_bytes, next(SEEDS))
    try:
        made.prepare(0, kernel["number"], index, record["value"], list(enumerate(copies)))
        yield lambda ops, window_ns=0, seats=(0,): made.sample(0, list(seats), ops, window_ns, DEADLINE_NS, DUE_NS)
        made.release(0)  # the kernel's proof that the work was done
    finally:
        made.close()


def kernel_ns(variant: tuple[str, str], cpus: list[int], ops: int, plan: Plan) -> float:
    """Nanoseconds per operation of one sample, after an untimed one; of many batches where one may not last so long.

    But not on a disk, where what earlier batches deleted may slow the next: there it is one batch, as in a run.
    """
    warm_ops = WARM_OPS.get(peer_of(variant[0]), lambda value: ops // 10)(param(*variant)[1]["value"])
    with pool(variant, [cpus], plan.place(variant[0])) as sample:
        sample(max(1, warm_ops))
        time.sleep(REST_S.get(peer_of(variant[0]), 0))
        kernel = KERNELS[variant[0]]
        (answer,) = sample(ops, plan.target_ns if kernel["max_ops"] and "storage" not in kernel["flags"] else 0)
    return answer["elapsed_ns"] / answer["ops"]


def calibrated(variant: tuple[str, str], cpus: list[int], plan: Plan) -> int:
    """Operations of a sample."""
    with pool(variant, [cpus], plan.place(variant[0])) as sample:
        found = one_copy(lambda ops: sample(ops)[0]["elapsed_ns"], plan.target_ns, KERNELS[variant[0]]["max_ops"])
    assert found
    multiple = MULTIPLE_OF.get(peer_of(variant[0]), 1)
    return -(-found[0] // multiple) * multiple


def others_s() -> float:
    """CPU seconds that all but this process and the children it waited for have used; a hypervisor's theft too."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK") - sum(used.ru_utime + used.ru_stime for used in own)


def alternate(ours: Side, theirs: Side, plan: Plan) -> Taken:
    """Pairs, taken in turns; who comes first is swapped with each, taken again or not."""
    found: list[tuple[float, float]] = []
    again = disturbed = 0
    while len(found) < plan.least or (len(found) < plan.most and not narrow([a / b for a, b in found])):
        began, before = time.monotonic(), others_s()
        if (len(found) + again) % 2:
            second, first = theirs(), ours()
        else:
            first, second = ours(), theirs()
        busy = others_s() - before > OTHERS * (time.monotonic() - began)
        if busy and again < plan.least:
            again += 1
            time.sleep(again)  # other work may end
            continue
        found.append((first, second))
        disturbed += busy
    ours_median, theirs_median = (statistics.median(side) for side in zip(*found, strict=True))
    return Taken(ours_median, theirs_median, [a / b for a, b in found], disturbed)


def narrow(ratios: list[float]) -> bool:
    """Whether the 95 % interval of the median, by ranks, is narrower than WIDTH."""
    n, ranked = len(ratios), sorted(ratios)
    low = max(0, int(n / 2 - 0.98 * n**0.5))
    return ranked[n - 1 - low] - ranked[low] < WIDTH


def compare(variant: tuple[str, str], program: Path, plan: Plan) -> Iterator[Row]:
    """The row of the peer, and those of established tools."""
    kernel, label = variant
    name, unit = row_name(kernel, label), f"ns per {KERNELS[kernel]['unit']}"
    cpus, told = groups_of(*variant)[-1], ARGUMENTS[peer_of(kernel)](param(*variant)[1]["value"], plan.place(kernel))
    ops = calibrated(variant, cpus, plan)

    def against(command: Callable[[int], list[Any]], figure: str = "(.+)", unit_ns: float = 1) -> Taken:
        def theirs(ops: int) -> float:
            found = re.search(figure, output(command(ops)))
            if not found:
                raise OSError(f"no figure in the answer of {command(ops)}")
            return float(found[1]) * unit_ns

        # At least as long as the kernel's sample; a kernel that stamps its operations also waits between them.
        latency = "latency" in KERNELS[kernel]["flags"]
        enough = 100 if latency else max(ops, round(1.1 * plan.target_ns / theirs(ops)))
        return alternate(lambda: kernel_ns(variant, cpus, ops, plan), lambda: theirs(enough), plan)

    def peer(*more: Any) -> Callable[[int], list[Any]]:
        return lambda ops: [program, ops, ",".join(map(str, cpus)), *told, *more]

    row = Row(name, unit, "C", against(peer()))
    if row.taken.distance > NEAR and (why := EXPLAINED.get(name)):
        changed = against(peer(*why.more))
        if changed.distance <= OFF:
            row = row._replace(explained=f"{why.words}: {spread(changed.ratios)}")
    yield row
    for tool in TOOLS.get(name, []):
        if missing := [need for need in tool.needs if not shutil.which(need)]:
            print(f"{name}: {tool.name}: skipped: {missing[0]} is not installed", file=sys.stderr)
            continue
        taken = against(lambda ops, tool=tool: tool.command(ops, cpus), tool.figure, tool.unit_ns)
        yield Row(name, unit, tool.name, taken)


def gain(program: Path, plan: Plan) -> Row:
    """Two copies against one: by the pool's window, and by two processes that nothing but their start connects."""
    both = groups_of(*WORK)[-2:]
    ops = calibrated(WORK, both[0], plan)

    def ours() -> float:
        with pool(WORK, both, plan.folder) as sample:
            taken = [sample(max(1, ops // 50), plan.target_ns, seats) for seats in ((0, 1), (0,), (0, 1))]
        _, one, two = (sum(a["ops"] / a["elapsed_ns"] for a in answers) for answers in taken)
        return two / one

    def rate(places: list[list[int]]) -> float:
        start = time.monotonic_ns() + 30_000_000
        commands = [[program, ops, cpus[0], *ARGUMENTS[WORK[0]](1000, plan.folder), start] for cpus in places]
        running = [subprocess.Popen([str(w) for w in line], stdout=-1, stderr=-3, text=True) for line in commands]
        return sum(1 / float(process.communicate()[0]) for process in running)

    taken = alternate(ours, lambda: rate(both) / rate(both[:1]), plan)
    return Row(f"{WORK[0]}[{WORK[1]}], two copies against one", "times the rate", "C", taken)


def peer_of(kernel: str) -> str:
    """The name of a kernel's peer: one serves a kernel of files on tmpfs and on the disk."""
    twin = kernel.replace("storage_", "file_")
    return kernel if (PEERS / f"{kernel}.c").exists() else twin


def host_line() -> str:
    kind = {True: "a virtual machine", False: "not virtual", None: "virtual or not: unknown"}[FACTS["virtual"]]
    load = f"load average {os.getloadavg()[0]:.2f} before"
    return f"Host: {FACTS['cpu_model']}, {len(CORES)} cores, Linux {FACTS['kernel']}, {kind}; {load}."


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="7 to 15 pairs of 50 ms, and nothing is written")
    parser.add_argument("names", nargs="*", help="these kernels only, and nothing is written")
    options = parser.parse_args()
    rows, host = [], host_line()
    # The temporary folder may be a tmpfs; the folder of the checkout is on a disk, as a run folder is.
    places = {"built": None, "files": "/dev/shm", "disk": "."}
    with host_lock(), contextlib.ExitStack() as stack:
        built, files, disk = (Path(stack.enter_context(tempfile.TemporaryDirectory(dir=d))) for d in places.values())
        length_ns, least, most = (50_000_000, 7, 15) if options.quick else (100_000_000, 9, 41)
        plan = Plan(length_ns, least, most, files, disk.resolve())
        for kernel in [name for name in LISTED if not options.names or name in options.names]:
            # Of a kernel that is only shown, all values.
            params = KERNELS[kernel]["params"]
            for label in [p["label"] for p in params if p["scored"]] or [p["label"] for p in params]:
                if groups_of(kernel, label):
                    rows += compare((kernel, label), build(peer_of(kernel), built), plan)
                else:
                    print(f"{kernel}[{label}]: skipped: no place for it here", file=sys.stderr)
                print(table(rows[-1:]).rpartition("\n")[2], file=sys.stderr, flush=True)
        if len(CORES) > 1 and (not options.names or WORK[0] in options.names):
            rows.append(gain(build(WORK[0], built), plan))
    text = f"{host}\n\n{table(rows)}"
    print(text)
    if not options.quick and not options.names:
        write(text)
    return 1 if any(row.taken.distance > OFF and not row.explained for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as error:  # another run measures here
        print(f"validate: {error}", file=sys.stderr)
        sys.exit(2)
