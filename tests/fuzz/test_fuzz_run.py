"""A run file that was changed anywhere is refused, or says the same numbers; it never ends in a traceback."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from broken import reseal
from hypothesis import given
from hypothesis import strategies as st
from made import made_run, made_variants, truthful, written
from many import many

from cpubench.analysis.cells import ns_per_op, ops_per_s
from cpubench.analysis.reference import make_reference
from cpubench.analysis.score import score
from cpubench.bench.export import to_csv, to_pytest_benchmark
from cpubench.errors import UsageError
from cpubench.recheck import validated
from cpubench.report.output import as_text
from cpubench.report.terminal import show_score
from cpubench.results.files import canonical
from cpubench.results.load import load_run
from cpubench.results.records import Run

Doc = dict[str, Any]
HOST = {"id": "made", "llc_bytes": 32 << 20, "cpus_allowed": "0-1", "cores": [[0], [1]], "quota_cpus": None,
        "virtual": "kvm", "mitigations": {"meltdown": "no"}, "caches": [{"level": 1}]}  # fmt: skip
PASSES = 8  # the fewest that have a score
ODD = [None, True, False, -1, 0, 1, 2, 2**31, 2**63 - 1, 2**63, 2**64, 1.5, -0.0, 1e308, 5e-324, "", "x", "1",
       "\x1b[2J", "as-is", [], {}, [[]], [0], {"a": {}}, "A" * 5000]  # fmt: skip
# What may change unnoticed in a file whose hashes were all made anew, by the kind of its place; in a folder with its
# plan and its blocks only the first four. No figure of a score is made of any of it.
FREE = (
    "host", "imported", "notes", "stopped",  # facts that nothing else in the file tells; what ended a run early
    "plan.id", "plan.created_utc", "plan.cpubench", "plan.build", "plan.suite",  # names; a score asks for its suite
    "plan.budget_ns", "plan.predicted_pass_ns", "plan.floor_ps", "plan.skipped", "plan.windows", "plan.side",
    "plan.cpus", "plan.variants",  # words of kernels, which the reference has too, and how they were calibrated
    "passes.blocks.environment", "passes.blocks.times",
    "passes.blocks.cells.error", "passes.blocks.cells.prepare_ns", "passes.blocks.cells.obtained",
    *(f"passes.blocks.cells.samples.{name}" for name in (
        "cpu_first", "cpu_last", "cpu_ns", "hook_ns", "majflt", "minflt", "moved", "nivcsw", "nvcsw", "overlap_ppm",
        "run_delay_ns")),  # evidence of noise
)  # fmt: skip


def original() -> Doc:
    small = [v for v in made_variants() if v.kernel in ("file_create", "switch_pipe", "mem_chase")]
    return truthful(made_run(PASSES, noise=0.01, variants=small) | {"host": {"hostname": "made", **HOST}})


ORIGINAL = original()
REFERENCE = make_reference(msgspec.convert(ORIGINAL, Run), "made")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document but its root."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, key)
        yield from places(one, (*at, key))


PLACES = [at for at in places(ORIGINAL) if at[-1] != "sha256"]
# Each kind of place as often as any other: most of a file are samples.
KINDS: dict[str, list[tuple[Any, ...]]] = {}
for _at in PLACES:
    KINDS.setdefault(".".join(str(step) for step in _at if not isinstance(step, int)), []).append(_at)


def parent(document: Doc, at: tuple[Any, ...]) -> Any:
    for step in at[:-1]:
        document = document[step]
    return document


def changed(rng: random.Random) -> tuple[str, Doc]:
    """What was done to a place of which kind, and the document with that change."""
    document: Doc = copy.deepcopy(ORIGINAL)
    kind = rng.choice(list(KINDS))
    at = rng.choice(KINDS[kind])
    where, key = parent(document, at), at[-1]
    old = where[key]
    how = rng.choice(["gone", "odd", "odd", "number", "number", "number", "other", "swap", "twice", "added"])
    if how == "gone":
        del where[key]
    elif how == "number" and isinstance(old, int | float):
        where[key] = rng.choice([old + 1, old - 1, old * 2, old // 2, old * 1.01, round(old * 1.01), -old])
    elif how == "other":
        other = rng.choice(PLACES)
        where[key] = copy.deepcopy(parent(ORIGINAL, other)[other[-1]])
    elif how == "swap":
        other_key = rng.choice(list(where) if isinstance(where, dict) else range(len(where)))
        where[key], where[other_key] = where[other_key], old
    elif how == "twice" and isinstance(where, list):
        where.insert(key, copy.deepcopy(old))
    elif how == "added" and isinstance(old, dict):
        old[rng.choice(["later", "schema", "\x1b[2J", ""])] = copy.deepcopy(rng.choice(ODD))
    else:
        where[key] = copy.deepcopy(rng.choice(ODD))
    return f"{how} {kind}", document


def sealed_anew(document: Doc) -> Doc:
    """The document with hashes that fit, where it still has a form that can have them."""
    try:
        return reseal(document)
    except (KeyError, TypeError, AttributeError, ValueError):
        return document


def readable(fault: UsageError) -> None:
    line = str(fault)
    assert line.isprintable()
    assert len(line) < 320


def numbers(run: Run) -> Any:
    """All of a run that scores are made of; which rows are scored, and in which families, the reference says."""
    rows = [(v.key, len(v.groups), v.divisor) for v in run.plan.variants]
    cells = [(one.index, block.cap, cell.key, ops_per_s(cell), ns_per_op(cell))
             for one in run.passes for block in one.blocks for cell in block.cells]  # fmt: skip
    return run.plan.divisor, rows, cells


NUMBERS = numbers(msgspec.convert(ORIGINAL, Run))


def used(run: Run) -> None:
    """Nothing; does with the run what commands do."""
    try:
        document = score(run, REFERENCE)
        show_score(document, io.StringIO())
        as_text(document)
    except UsageError:
        pass
    to_csv(run)
    as_text(to_pytest_benchmark(run))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("fuzz") / "run", ORIGINAL)


def test_the_run_that_is_changed_is_valid(folder: Path) -> None:
    assert validated(folder)["valid"]
    used(load_run(folder))


@many(150)
@given(rng=st.randoms(use_true_random=False), seal=st.booleans())
def test_a_changed_run_is_refused_or_says_the_same(folder: Path, rng: random.Random, seal: bool) -> None:
    what, document = changed(rng)
    file = folder.parent / "changed.json"
    try:
        file.write_bytes(canonical(sealed_anew(document) if seal else document))
    except (UnicodeEncodeError, ValueError):  # no JSON
        return
    try:
        run = load_run(file)
        used(run)
        validated(file)
    except UsageError as fault:
        readable(fault)
        return
    assert numbers(run) == NUMBERS, what
    same = document == ORIGINAL or msgspec.convert(document, Run) == msgspec.convert(ORIGINAL, Run)
    assert same or what.partition(" ")[2].startswith(FREE), what


@many(60)
@given(data=st.data())
def test_changed_bytes_are_refused_or_the_same_content(folder: Path, data: st.DataObject) -> None:
    raw = bytearray(canonical(ORIGINAL))
    for _ in range(data.draw(st.integers(1, 4))):
        at, kind = (
            data.draw(st.integers(0, len(raw) - 1)),
            data.draw(st.sampled_from(["flip", "cut", "insert", "move"])),
        )
        if kind == "flip":
            raw[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del raw[at : at + data.draw(st.integers(1, 1000))]
        elif kind == "insert":
            raw[at:at] = data.draw(st.binary(max_size=20))
        else:
            raw = raw[at:] + raw[:at]
        raw = raw or bytearray(b"{}")
    file = folder.parent / "bytes.json"
    file.write_bytes(raw)
    try:
        run = load_run(file)
    except UsageError as fault:
        readable(fault)
        return
    assert msgspec.to_builtins(run) == msgspec.to_builtins(msgspec.convert(ORIGINAL, Run))


@many(60)
@given(rng=st.randoms(use_true_random=False))
def test_a_folder_holds_its_run_to_plan_and_blocks(folder: Path, rng: random.Random) -> None:
    """Of a changed run.json with hashes that fit, only what neither the plan nor a block holds is unnoticed."""
    what, document = changed(rng)
    try:
        (folder / "run.json").write_bytes(canonical(sealed_anew(document)))
        validated(folder)
    except (UsageError, UnicodeEncodeError, ValueError):
        return
    finally:
        (folder / "run.json").write_bytes(canonical(ORIGINAL))
    same = msgspec.convert(document, Run) == msgspec.convert(ORIGINAL, Run)
    assert same or what.partition(" ")[2].split(".")[0] in ("host", "imported", "notes", "stopped"), what


def test_every_kind_of_place_is_listed() -> None:
    assert len(KINDS) > 80
    assert json.loads(json.dumps(ORIGINAL)) == ORIGINAL
