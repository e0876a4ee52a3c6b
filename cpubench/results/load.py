"""Reading a run folder: everything is checked before anything is believed, and a fault names its file and place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cpubench.errors import UsageError
from cpubench.results.check import check_block, check_cores, check_plan, check_run, check_seal
from cpubench.results.packed import SUM, check_sum, is_packed
from cpubench.results.parse import MAX_BYTES, located, parse, read, read_raw, shown, uncollected
from cpubench.results.records import Block, Plan, Run
from cpubench.results.recount import check_counts

T = TypeVar("T")
Check = Callable[[Path, Run], None]  # raises UsageError where a file of the folder is not what the run says
Judge = Callable[[Run], None]  # raises UsageError where the run holds what it may not
Recheck = Callable[[Path, Run], list[str]]  # likewise with its file; what could not be checked, and why
MOST_BLOCKS = 20_000  # files of a folder: ten times as many as any profile can measure
AGAIN = "-again.json"  # ends the name of the second measurement of a block: it counts, the first is set aside


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Nothing; a fault inside names the file, and one that is too large for this machine is refused as well."""
    try:
        with uncollected():
            yield
    except UsageError as fault:
        raise located(file, fault) from None
    except MemoryError:
        raise located(file, UsageError("memory", "there is not enough memory here to read it")) from None


def load_run(path: Path) -> Run:
    """The run of a folder, of a ``run.json`` or of a packed ``run.json.gz``."""
    file = run_file(path)
    with reading(file):
        return run_of(read(file))


def run_of(raw: bytes) -> Run:
    """The run that the text of a ``run.json`` holds."""
    with uncollected():  # until the document is gone: the collector would walk through its million lists
        document = parse(raw)
        run = typed(document, "cpubench.run/1", Run)
        _check_seals(document)
        check_run(run)
        del document
        return run


def load_block(path: Path, plan: Plan | None = None) -> Block:
    """The block of a ``block-*.json``; given its plan, also checked against that."""
    with reading(path):
        document = parse(read(path))
        block = typed(document, "cpubench.block/1", Block)
        check_seal(document)
        check_block(block, plan)
    return block


def load_plan(path: Path) -> Plan:
    """The plan of a ``plan.json``."""
    with reading(path):
        plan = typed(parse(read(path)), "cpubench.plan/1", Plan)
        check_plan(plan, "plan")
    return plan


def load_blocks(folder: Path, plan: Plan | None = None) -> dict[str, Block]:
    """The finished blocks of a run folder that count, by file name, in the order of their passes."""
    return _load_all(folder, plan)[0]


def _load_all(folder: Path, plan: Plan | None = None) -> tuple[dict[str, Block], dict[str, Block]]:
    """The blocks that count, and those that were set aside because they were measured again."""
    blocks = {file.name: load_block(file, plan) for file in _block_files(folder)}
    firsts = {name: f"{name.removesuffix(AGAIN)}.json" for name in blocks if name.endswith(AGAIN)}
    aside = {first: blocks[first] for name, first in firsts.items() if first in blocks
             if (blocks[first].index, blocks[first].cap) == (blocks[name].index, blocks[name].cap)}  # fmt: skip
    counting = {name: block for name, block in blocks.items() if name not in aside}
    seen: dict[tuple[int, str], str] = {}
    for name, block in counting.items():
        first = seen.setdefault((block.index, block.cap), name)
        if first != name:
            text = f"holds pass {block.index} at {block.cap}, as {first} does"
            raise located(folder / name, UsageError("twice", text))
    return dict(sorted(counting.items(), key=lambda item: (item[1].index, item[1].cap))), aside


def _block_files(folder: Path) -> list[Path]:
    """The block files of a folder by name, which together are no more than a run may be: each alone is bounded."""
    with looking(folder):
        files = sorted(folder.glob("block-*.json"))
    total = 0
    for file in files:
        with contextlib.suppress(OSError):  # gone, or a link to nowhere: reading it says so
            total += file.stat().st_size
    if len(files) > MOST_BLOCKS or total > MAX_BYTES:
        text = f"holds {len(files)} blocks of {total} bytes; at most {MOST_BLOCKS} of {MAX_BYTES} together are read"
        raise located(folder, UsageError("too_large", text))
    return files


@contextmanager
def looking(path: Path) -> Iterator[None]:
    """Nothing; where the path may not even be looked at (no permission, a name that is too long, a NUL in it) that is
    said of it."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise located(path, UsageError("unreadable", f"cannot be read: {reason}")) from None


def validate(
    path: Path, *beside: Check, judges: Sequence[Judge] = (), rechecks: Sequence[Recheck] = ()
) -> dict[str, Any]:
    """What a valid run holds, as numbers of passes, variants and blocks; a folder's other files must agree with it.

    ``beside`` checks those files of a folder that are made from the run in rooms above this one; ``judges`` know rules
    of such rooms that a run must keep, ``rechecks`` what they compute anew; ``unchecked`` is what they could not.
    """
    file = run_file(path)
    run = load_run(file)
    unchecked = []
    with reading(file):
        check_cores(run)
        check_counts(run)
        for judge in judges:
            judge(run)
        for recheck in rechecks:
            unchecked += recheck(file, run)
    blocks = [block for one in run.passes for block in one.blocks]
    if is_packed(file):  # it travels without the files of its folder, and with its sum
        _check_sum(file)
    elif path.is_dir():
        for check in (_check_beside, *beside):
            check(path, run)
    return {
        "file": str(file),
        "valid": True,
        "passes": len(run.passes),
        "variants": len(run.plan.variants),
        "blocks": len(blocks),
        "set_aside": sum(len(one.set_aside) for one in run.passes),
        "unchecked": unchecked,
    }


def run_file(path: Path) -> Path:
    """The ``run.json`` that ``path`` is, or that the folder ``path`` holds; packed where there is no other."""
    with looking(path):
        if not path.is_dir():
            return path
        check_no_fleet(path)
        names = ("run.json", "run.json.gz", "plan.json", "tasks.json")
        there = [name for name in names if (path / name).exists()]
    if there and there[0].startswith("run.json"):
        return path / there[0]
    if "tasks.json" in there:
        raise located(path, UsageError("tasks", "holds a run of tasks, which `cpubench tasks show` tells of"))
    if "plan.json" in there:
        raise located(path, UsageError("unfinished", "holds a plan but no run.json: finish it with run --resume"))
    if any(path.glob("*/tasks.json")):
        raise located(path, UsageError("tasks", "holds runs of tasks, which `cpubench tasks show` tells of: name one"))
    raise located(path, UsageError("not_a_run", "is no run folder: it holds no run.json"))


def check_no_fleet(path: Path) -> None:
    """None if the path is not the folder of a fleet, in which each host has a folder of packed runs."""
    if any((path / name).exists() for name in ("run.json", "run.json.gz")):
        return
    if any(next(path.glob(f"*/*/{name}"), None) is not None for name in ("run.json.gz", "failure.json")):
        text = ("holds the results of a fleet: `cpubench fleet collect` tells a line of each unit, `cpubench report` "
                "makes their page, and the folders of two of its hosts can be compared")  # fmt: skip
        raise located(path, UsageError("fleet", text))


def typed(document: dict[str, Any], schema: str, record: type[T]) -> T:
    """The document as a record of ``schema``; other majors are refused before their fields are looked at."""
    family, _, major = schema.partition("/")
    found = document.get("schema")
    if not isinstance(found, str) or not found.startswith(f"{family}/"):
        what = "without a schema" if found is None else f"of schema {shown(str(found), 60)!r}"
        if found is None and {"benchmarks", "machine_info"} <= document.keys():
            what = "of pytest-benchmark"  # ours, too: it is made of a run and lacks the blocks
        raise UsageError("schema", f"is a file {what}; wanted is {schema}", "$.schema")
    if found != schema:
        text = f"schema {shown(found, 60)} is unknown; this cpubench knows {family}/{major}"
        raise UsageError("schema_version", text, "$.schema")
    try:
        return msgspec.convert(document, record, strict=True)
    except msgspec.ValidationError as error:
        text, _, place = str(error).rpartition(" - at ")
        raise UsageError("record", text or place, place.strip("`") if text else "$") from None
    except RecursionError:
        raise UsageError("nested", "is nested too deeply") from None
    except UnicodeError:  # half a surrogate pair, which JSON can spell
        raise UsageError("text", "holds text that is no Unicode", "$") from None


def _check_seals(document: dict[str, Any]) -> None:
    """None if neither a block nor the run around the blocks was changed."""
    for number, one in enumerate(document["passes"]):
        for kind in ("blocks", "set_aside"):
            for at, block in enumerate(one.get(kind, ())):
                check_seal(block, f"passes[{number}].{kind}[{at}]")
    check_seal(document)


def _check_sum(file: Path) -> None:
    """None if a packed run is what the sum beside it says, where there is one."""
    told = file.with_name(file.name + SUM)
    if told.exists():
        with reading(file):
            check_sum(read_raw(file, MAX_BYTES), read_raw(told, 4096))


def _check_beside(folder: Path, run: Run) -> None:
    """None if ``plan.json`` and the block files of the folder hold what ``run.json`` holds."""
    plan = folder / "plan.json"
    if load_plan(plan) != run.plan:
        raise located(plan, UsageError("plan", "differs from the plan in run.json"))
    kinds = ("", " (set aside)")
    held = {(block.index, block.cap, kind): block.sha256 for one in run.passes
            for kind, blocks in zip(kinds, (one.blocks, one.set_aside), strict=True) for block in blocks}  # fmt: skip
    files = [(name, block, kind) for kind, blocks in zip(kinds, _load_all(folder), strict=True)
             for name, block in blocks.items()]  # fmt: skip
    beside = {(block.index, block.cap, kind): block.sha256 for _, block, kind in files}
    names = {(block.index, block.cap, kind): name for name, block, kind in files}
    dropped = [f"pass {index} at {cap}{kind}" for index, cap, kind in held if (index, cap, kind) not in beside]
    extra = [names[key] for key in beside if key not in held]
    changed = [names[key] for key in beside if key in held and held[key] != beside[key]]
    faults = {"in run.json without a file": dropped, "not in run.json": extra, "differ from run.json": changed}
    text = "; ".join(f"{what}: {_some(which)}" for what, which in faults.items() if which)
    if text:
        raise located(folder, UsageError("blocks", text))


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
