"""The inputs of tasks, generated: a project, its wheels and patch, data for short tools, and the tools themselves.

The bytes are the same on every host: whole numbers from a Mersenne twister, no floating point, no zlib, no clock. The
manifest's hash is pinned in ``pins.json``; where it differs, nothing is measured.
Sizes are those of real trees: a project of 382 files had p50 5.8 KB, p90 32 KB, p99 601 KB, 115 folders.
"""

from __future__ import annotations

import base64
import csv
import difflib
import hashlib
import io
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from string import Template

from cpubench.errors import UsageError
from cpubench.tasks import c_sources, sources
from cpubench.tasks.archive import zipped
from cpubench.tasks.tools import bpe

SEED = 20_251
GROUPS, FILES, WHEELS = 19, 400, 11
MERGES = 350  # a token of the chats is then 2.8 bytes on average, as names and numbers make it in code
TESTS = 10 * GROUPS  # before the agent adds ten
TOOLS = Path(__file__).with_name("tools")
PINS = Path(__file__).with_name("pins.json")
# Bytes of a file at a share of files, in thousandths.
QUANTILES = [
    (0, 200), (100, 1000), (250, 2500), (500, 5800), (750, 14_000), (900, 32_000), (970, 90_000), (1000, 400_000),
]  # fmt: skip
WORDS = sources.WORDS.split()
REGIONS = {code: f"Region {code.upper()}" for code in ("am", "br", "ce", "do", "el", "fa", "go", "hu")}


class Source(random.Random):
    """Whole numbers from the twister: of its methods getrandbits is the one that no Python changed."""

    def below(self, n: int) -> int:
        return self.getrandbits(32) * n >> 32

    def word(self) -> str:
        return WORDS[self.below(len(WORDS))]


def generate(folder: Path) -> str:
    """Writes the inputs into a new folder and returns the hash of their manifest.

    UsageError where it is not the pinned one: tasks on other bytes would be other tasks.
    """
    for name, data in contents():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    found, wanted = manifest_hash(folder), pinned()
    if found != wanted:
        raise UsageError(
            "inputs", f"the generated inputs are not those of this suite ({found[:12]}, not {wanted[:12]})"
        )
    return found


def pinned() -> str:
    """The hash of the manifest of this suite's inputs."""
    return str(json.loads(PINS.read_text())["inputs"])


def outputs(key: str) -> dict[str, str]:
    """The hashes that the outputs of a task's steps must have, by label; none of a task without fixed outputs."""
    found: dict[str, str] = json.loads(PINS.read_text())["outputs"].get(key, {})
    return found


def manifest(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of the inputs, by its name in the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def manifest_hash(folder: Path) -> str:
    return hashlib.sha256(json.dumps(manifest(folder), sort_keys=True).encode()).hexdigest()


def contents() -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file of the inputs."""
    source = Source(SEED)
    repo = dict(_project(source))
    repo |= dict(_filler(source, FILES - len(repo)))
    yield from ((f"repo/{name}", text.encode()) for name, text in repo.items())
    yield "patches/test_regression.py", sources.REGRESSION.encode()
    yield "patches/fix.diff", _fix(repo["ledger/mod_07.py"]).encode()
    for number in range(WHEELS):
        yield f"wheels/dep_{number:02d}-1.{number}-py3-none-any.whl", _wheel(source, number)
    yield from ((f"mix/{name}", text.encode()) for name, text in _mix(source))
    yield from ((f"c/{name}", data) for name, data in c_sources.contents(Source(SEED + 3).below))
    yield from ((f"chat/{name}", text.encode()) for name, text in _chat(Source(SEED + 4)))
    for path in sorted(TOOLS.glob("*.py")):
        yield f"tools/{path.name}", path.read_bytes()


def _fill(template: str, **values: object) -> str:
    return Template(template).safe_substitute(values)


def _module(group: int, broken: bool) -> str:
    below, off = ("<=", " + 1") if broken else ("<", "")
    return _fill(sources.MODULE, GROUP=f"{group:02d}", DEP=f"dep_{group % WHEELS:02d}", FACTOR=1000 + 37 * group,
                 BELOW=below, OFF=off)  # fmt: skip


def _project(source: Source) -> Iterator[tuple[str, str]]:
    """The parts that run."""
    yield "ledger/__init__.py", '"""A ledger."""\n'
    yield "ledger/native.py", sources.NATIVE
    yield "tests/__init__.py", ""
    yield "build/.keep", ""
    yield "tests/support.py", sources.SUPPORT
    for group in range(GROUPS):
        yield f"ledger/mod_{group:02d}.py", _module(group, broken=group == 7)
        yield f"tests/test_mod_{group:02d}.py", _fill(sources.TESTS, GROUP=f"{group:02d}", N=group,
                                                      FACTOR=1000 + 37 * group)  # fmt: skip
    yield "native/mix.c", sources.MIX_C
    for part in range(3):
        functions = [
            _fill(
                sources.FUNCTION_C, NAME=f"{part}_{n}", A=source.below(90), B=1 + source.below(90), C=source.below(999)
            )
            for n in range(25)
        ]
        yield f"native/part_{part}.c", "#include <stddef.h>\n#include <stdint.h>\n" + "".join(functions)


def _fix(broken: str) -> str:
    name, right = "ledger/mod_07.py", _module(7, broken=False)
    rows = difflib.unified_diff(broken.splitlines(True), right.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(rows)


def _size(source: Source, place: int, of: int) -> int:
    """Bytes of the file at this place of so many in the order of sizes."""
    at = 1000 * (2 * place + 1) // (2 * of)
    for (low, few), (high, many) in pairwise(QUANTILES):
        if at <= high:
            return few + (many - few) * (at - low) // (high - low)
    raise ValueError(at)


def _filler(source: Source, count: int) -> Iterator[tuple[str, str]]:
    """Files that are only read: four to a folder, sizes as in real projects, lines of known words."""
    lines = [" ".join(source.word() for _ in range(5 + source.below(8))) for _ in range(2000)]
    places = sorted(range(count), key=lambda _: source.getrandbits(32))
    for number, place in enumerate(places):
        folder = f"docs/area_{number // 32:02d}/part_{number // 4 % 8}"
        yield f"{folder}/page_{number:03d}.md", _text(source, lines, _size(source, place, count))


def _text(source: Source, lines: list[str], size: int) -> str:
    rows, length = [], 0
    while length < size:
        row = f"{source.word()}_{source.below(1000)}: {lines[source.below(len(lines))]}\n"
        rows.append(row)
        length += len(row)
    return "".join(rows)[: size - 1] + "\n"


def _wheel(source: Source, number: int) -> bytes:
    """A wheel of twelve modules, 60 KB, with a RECORD that holds."""
    name = f"dep_{number:02d}"
    info = f"{name}-1.{number}.dist-info"
    files = {f"{name}/__init__.py": _fill(sources.DEPENDENCY, NAME=name, RATE=700 + 50 * number)}
    for part in range(11):
        rows = [
            f"def {source.word()}_{n}(rows):\n    return [row * {source.below(999)} for row in rows]\n\n\n"
            for n in range(70)
        ]
        files[f"{name}/part_{part:02d}.py"] = "".join(rows)
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.{number}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: cpubench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{path},sha256={_record_hash(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    return zipped((path, text.encode()) for path, text in files.items())


def _record_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _mix(source: Source) -> Iterator[tuple[str, str]]:
    """The data of short tools: tables, texts, logs, settings."""
    yield "sales.csv", _sales(source, 20_000)
    for number in range(10):
        yield f"sales_{number}.csv", _sales(source, 1000 + 200 * number)
    yield "regions.json", json.dumps(REGIONS, sort_keys=True, indent=1)
    lines = [" ".join(source.word() for _ in range(12)) for _ in range(500)]
    for number in range(10):
        yield f"text_{number}.txt", _text(source, lines, 2000 + 5000 * number)
    for number in range(4):
        yield f"log_{number}.txt", _text(source, lines, 200_000)
    for number in range(5):
        yield f"settings_{number}.json", json.dumps({"limits": {"rate": number}, "names": lines[:20]}, indent=1)
        values = "".join(f"{word} = {at}\n" for at, word in enumerate(WORDS[:60]))
        yield f"settings_{number}.ini", f"[limits]\nrate = {number}\n\n[names]\n{values}"


def _chat(source: Source) -> Iterator[tuple[str, str]]:
    """What is said to a host of chats, and the merges of its tokeniser. One word of twelve is a name that is seen once
    or twice, as in code: no cache of pieces has it."""
    names = ["".join(chr(97 + source.below(26)) for _ in range(8)) for _ in range(4000)]
    words = [name if n % 12 == 0 else source.word() for n, name in enumerate(names * 12)]
    lines = [" ".join(words[at : at + 9]) for at in range(0, len(words), 9)]
    yield "text.txt", _text(source, lines, 520_000)
    counts = ((f" {word}", len(WORDS) + 10 - rank) for rank, word in enumerate(WORDS))
    yield "merges.txt", "".join(f"{a} {b}\n" for a, b in bpe.train(counts, MERGES))


def _sales(source: Source, count: int) -> str:
    out, codes = io.StringIO(), sorted(REGIONS)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "region", "amount"])
    writer.writerows((n, codes[source.below(len(codes))], source.below(100_000)) for n in range(count))
    return out.getvalue()
