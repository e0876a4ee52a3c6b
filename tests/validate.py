"""Kernels against peers: the same work, written apart from them or by others, alternating on the same CPUs.

``python -I tests/validate.py`` from any folder; needs an installed cpubench, a C compiler and an idle machine.
Writes the table of docs/validation.md; ``--quick`` prints a rough one only.
Ends with 1 where a row is off by more than 5 % and nothing that was measured explains it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cpubench import _native
from cpubench.host.facts import collect
from cpubench.host.layout import layout
from cpubench.host.topology import read_topology
from cpubench.measure import programs
from cpubench.measure.calibrate import one_copy

PEERS = Path(__file__).resolve().parent / "peers"
PAGE = PEERS.parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- written by tests/validate.py -->", "<!-- end of what it writes -->"
FLAGS = ["-O2", "-static", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
OFF = 0.05
DEADLINE_NS = 20_000_000_000
WORK = "test_work"
CORES = read_topology().cores
KERNELS = {kernel["name"]: kernel for kernel in _native.kernels(hidden=True)}


class Case(NamedTuple):
    """A variant with one copy, where it runs, and how much of it lasts long enough."""

    kernel: str
    param: dict[str, Any]
    cpus: list[int]
    folder: Path
    ops: int = 0

    @property
    def name(self) -> str:
        return f"{self.kernel}[{self.param['label']}]" if self.param["label"] else self.kernel


class Row(NamedTuple):
    variant: str
    unit: str
    peer: str
    figures: list[tuple[float, float]]  # kernel, peer
    explained: str = ""

    @property
    def off(self) -> bool:
        return abs(quartiles(self.figures)[1] - 1) > OFF


def quartiles(figures: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Of the ratios of pairs."""
    low, middle, high = statistics.quantiles([a / b for a, b in figures], n=4, method="inclusive")
    return low, middle, high


# What a peer is told after the operations and the CPUs. A new kernel needs its file in peers/ and its line here.
ARGUMENTS: dict[str, Callable[[Case], list[Any]]] = {
    "spawn_fork_exec": lambda case: [case.param["value"], programs.TARGET],
    "file_create": lambda case: [case.folder, 64],
    "switch_pipe": lambda case: [],
    "lock_mutex": lambda case: [case.param["value"]],
    "mem_chase": lambda case: [case.param["value"]],
    WORK: lambda case: [case.param["value"]],
}
MULTIPLE_OF = {"file_create": 64}  # of the operations: the mean size is then the same in any two batches


def perf_pipe(case: Case, program: Path) -> float:
    """Nanoseconds per round trip by `perf bench`, both ends on one CPU."""
    command = ["taskset", "-c", str(case.cpus[0]), "perf", "bench", "sched", "pipe", "-l", str(3 * case.ops)]
    found = re.search(r"([0-9.]+) usecs/op", output(command))
    if not found:
        raise OSError("perf bench sched pipe: no usecs/op in its answer")
    return 1000 * float(found[1])


# By variant, beside the peer: name, what must be installed, nanoseconds per operation.
OTHERS: dict[str, list[tuple[str, list[str], Callable[[Case, Path], float]]]] = {
    "switch_pipe[place=same]": [("`perf bench sched pipe`", ["perf", "taskset"], perf_pipe)],
    "file_create": [("C, 4096 sizes", [], lambda case, program: peer_ns(program, case, 4096))],
}
# By variant and peer: words, and the peer changed in what they say. Within 5 % of the kernel, it explains the row.
EXPLAINED: dict[tuple[str, str], tuple[str, Callable[[Case, Path], float]]] = {
    ("switch_pipe[place=other]", "C"): (
        "the kernel first waits until what was freed before is gone (RCU callbacks), as a new process does not; "
        "a peer that waits too",
        lambda case, program: peer_ns(program, case, "settle"),
    ),
    ("file_create", "C, 4096 sizes"): (
        "the kernel's 64 sizes have a mean of 15002 bytes, 5 % below that of 4096; a peer with 64",
        lambda case, program: peer_ns(program, case, 64),
    ),
}


def output(command: list[Any]) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{Path(str(command[0])).name}: status {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def build(name: str, folder: Path) -> Path:
    program = folder / name
    output([*os.environ.get("CC", "cc").split(), *FLAGS, PEERS / f"{name}.c", "-o", program, "-lm"])
    return program


def peer_command(program: Path, case: Case, *last: Any) -> list[str]:
    """``last`` takes the place of as many arguments of the table, or is added to them."""
    told = ARGUMENTS[case.kernel](case)
    told = [*told[: len(told) - len(last)], *last] if case.kernel == "file_create" else [*told, *last]
    return [str(word) for word in (program, case.ops, ",".join(map(str, case.cpus)), *told)]


def peer_ns(program: Path, case: Case, *last: Any) -> float:
    return float(output(peer_command(program, case, *last)))


@contextmanager
def pool(case: Case, copies: list[list[int]]) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """sample(ops, window_ns, seats) of fresh copies: memory is had anew for each, as a peer has it."""
    kernel = KERNELS[case.kernel]
    touched = case.param["value"] if "parent" in kernel["flags"] else 0
    seats = [(cpus[0], touched) for cpus in copies]
    made = _native.Pool(str(programs.COPY), str(programs.TARGET), str(case.folder), seats, LLC_BYTES)
    try:
        index = [param["label"] for param in kernel["params"]].index(case.param["label"])
        made.prepare(0, kernel["number"], index, case.param["value"], list(enumerate(copies)))
        yield lambda ops, window_ns=0, seats=(0,): made.sample(0, list(seats), ops, window_ns, DEADLINE_NS)
        made.release(0)  # the kernel's proof that the work was done
    finally:
        made.close()


LLC_BYTES = collect()["llc_bytes"] or 0


def kernel_ns(case: Case) -> float:
    """Nanoseconds per operation of one sample, after a shorter one."""
    with pool(case, [case.cpus]) as sample:
        sample(max(1, case.ops // 10))
        (answer,) = sample(case.ops)
    return answer["elapsed_ns"] / answer["ops"]


def sized(case: Case, target_ns: int) -> Case:
    with pool(case, [case.cpus]) as sample:
        found = one_copy(lambda ops: sample(ops)[0]["elapsed_ns"], target_ns, KERNELS[case.kernel]["max_ops"])
    assert found
    multiple = MULTIPLE_OF.get(case.kernel, 1)
    return case._replace(ops=-(-found[0] // multiple) * multiple)


def alternate(ours: Callable[[], float], theirs: Callable[[], float], pairs: int) -> tuple[float, float, list[float]]:
    """Both medians and the ratio of each pair; who comes first is swapped with each."""
    found = []
    for turn in range(pairs):
        if turn % 2:
            second, first = theirs(), ours()
        else:
            first, second = ours(), theirs()
        found.append((first, second))
    return (*(statistics.median(side) for side in zip(*found, strict=True)), [a / b for a, b in found])  # type: ignore[return-value]


def cases(folder: Path) -> list[Case]:
    """All scored variants that have a place here."""
    found = []
    for name, kernel in KERNELS.items():
        for param in kernel["params"]:
            groups = layout(CORES, param["place"], param["threads"])
            if param["scored"] and groups:
                found.append(Case(name, param, groups[-1], folder))
    return found


def compare(case: Case, program: Path, target_ns: int, pairs: int) -> Iterator[Row]:
    """The row of the peer, and those of established tools."""
    case = sized(case, target_ns)
    peers: list[tuple[str, Callable[[], float]]] = [("C", lambda: peer_ns(program, case))]
    for name, needs, tool in TOOLS.get(case.name, []):
        missing = [need for need in needs if not shutil.which(need)]
        try:
            _ = missing or tool(case)
        except OSError as error:
            missing = [str(error)]
        if missing:
            print(f"{case.name}: {name}: skipped: {missing[0]}", file=sys.stderr)
        else:
            peers.append((name, lambda tool=tool: tool(case)))  # type: ignore[misc]
    for name, theirs in peers:
        row = Row(case.name, f"ns per {KERNELS[case.kernel]['unit']}", 0, name, 0, [])
        ours, other, ratios = alternate(lambda: kernel_ns(case), theirs, pairs)
        row = row._replace(kernel=ours, peer=other, ratios=ratios)
        if row.off and (case.name, name) in EXPLAINED:
            words, changed = EXPLAINED[case.name, name]
            closed = statistics.median(alternate(lambda: kernel_ns(case), lambda: changed(case, program), pairs)[2])  # noqa: B023
            row = row._replace(explained=f"{words}: {closed:.3f}" if abs(closed - 1) <= OFF else "")
        yield row


def gain(folder: Path, program: Path, target_ns: int, pairs: int) -> Row:
    """Two copies against one: by the pool's window, and by two processes that nothing but their start connects."""
    param = next(param for param in KERNELS[WORK]["params"] if param["label"] == "steps=1000")
    both = layout(CORES, "any")[-2:]
    case = sized(Case(WORK, param, both[0], folder), target_ns)

    def ours() -> float:
        with pool(case, both) as sample:
            batch = max(1, case.ops // 50)
            rates = [
                sum(a["ops"] / a["elapsed_ns"] for a in sample(batch, target_ns, s)) for s in [(0, 1), (0,), (0, 1)]
            ]
        return rates[2] / rates[1]

    def rate(places: list[list[int]]) -> float:
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 30_000_000
        commands = [peer_command(program, case._replace(cpus=cpus), case.ops, start) for cpus in places]
        running = [
            subprocess.Popen([str(w) for w in c], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for c in commands
        ]
        return sum(1 / float(process.communicate()[0]) for process in running)

    ours_gain, peer_gain, ratios = alternate(ours, lambda: rate(both) / rate(both[:1]), pairs)
    return Row(f"{case.name}, two copies against one", "times the rate", ours_gain, "C", peer_gain, ratios)


def table(rows: list[Row]) -> str:
    lines = [
        "| variant | unit | kernel | peer | peer's figure | ratio (middle half) | explained by |",
        "|---|---|--:|---|--:|--:|---|",
    ]
    for row in rows:
        low, middle, high = statistics.quantiles(row.ratios, n=4, method="inclusive")
        ratio = f"{middle:.3f} ({low:.3f} to {high:.3f})"
        words = row.explained or ("**nothing**" if row.off else "")
        lines.append(
            f"| `{row.variant}` | {row.unit} | {row.kernel:.5g} | {row.peer_name} | {row.peer:.5g} | {ratio} | {words} |"
        )
    return "\n".join(lines)


def host_line() -> str:
    facts = collect()
    kind = {True: "a virtual machine", False: "not virtual", None: "virtual or not: unknown"}[facts["virtual"]]
    return f"Host: {facts['cpu_model']}, {len(CORES)} cores, Linux {facts['kernel']}, {kind}."


def write(text: str) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE}: the markers are gone")
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three short pairs of each, and nothing is written")
    parser.add_argument("names", nargs="*", help="these kernels only, and nothing is written")
    options = parser.parse_args()
    target_ns, pairs = (20_000_000, 3) if options.quick else (80_000_000, 9)
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(dir=shm) as files:
        rows: list[Row] = []
        for case in cases(Path(files)):
            if not options.names or case.kernel in options.names:
                rows += compare(case, build(case.kernel, Path(name)), target_ns, pairs)
                print(rows[-1].variant, file=sys.stderr)
        if len(CORES) > 1 and (not options.names or WORK in options.names):
            rows.append(gain(Path(files), build(WORK, Path(name)), target_ns, pairs))
    text = f"{host_line()}\n\n{table(rows)}"
    print(text)
    if not options.quick and not options.names:
        write(text)
    return 1 if any(row.off and not row.explained for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
