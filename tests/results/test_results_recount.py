"""A number that was changed disagrees with another, even where every hash was made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from broken import Doc, block, cell, reseal, written
from made import made_run, made_variants
from made_watts import made_capped_run

from cpubench.errors import UsageError
from cpubench.results.load import load_run, validate
from cpubench.results.records import Run
from cpubench.results.recount import check_counts

Change = Callable[[Doc], object]
ALONE, MANY = 3, 4  # cells of file_create: one copy, one batch a sample; all cores, batches until a window is over


@pytest.fixture
def document() -> Doc:
    return made_run(5)


def add(values: list[int], at: int, much: int) -> None:
    values[at] += much


def faster(document: Doc) -> None:
    """Half of the time, wherever the cell itself tells it."""
    one = cell(document, ALONE)
    for column in ("elapsed_ns", "wall_ns"):
        one["samples"][column] = [ns // 2 for ns in one["samples"][column]]
    one["copy_elapsed_ns"] = [sum(one["samples"]["elapsed_ns"])]


def more(document: Doc) -> None:
    """Twice the operations in the same time, likewise."""
    one = cell(document, ALONE)
    one["samples"]["ops"] = [2 * ops for ops in one["samples"]["ops"]]
    one["copy_ops"] = [2 * ops for ops in one["copy_ops"]]


def dropped(document: Doc) -> None:
    """A slow pass is gone, and those after it have moved up."""
    del document["passes"][2]
    for at, one in enumerate(document["passes"]):
        one["index"] = one["blocks"][0]["index"] = at
    document["stopped"]["passes"] = 4


def gap(document: Doc) -> None:
    del document["passes"][2]
    document["stopped"]["passes"] = 4


COUNTS: dict[str, tuple[Change, str, str]] = {
    "half of the time": (faster, "sums", "passes[3].blocks[0].times.timed_ns"),
    "twice the operations": (more, "ops", "passes[3].blocks[0].cells[3].samples.ops[0]"),
    "half a batch": (lambda d: add(cell(d, MANY)["samples"]["ops"], 0, 1), "ops", "cells[4].samples.ops[0]"),
    "a pass that is gone": (gap, "passes", "passes[2]"),
    "a pass that is gone and the gap closed": (dropped, "rounds", "passes[2].blocks[0].rounds"),
    "a pass in another's place": (
        lambda d: block(d).update(rounds=block(d, 2)["rounds"]), "rounds", "passes[3].blocks[0].rounds",
    ),
    "another seed": (lambda d: d["plan"].update(seed=5), "rounds", "passes[0].blocks[0].rounds"),
    "fewer rounds": (lambda d: block(d)["rounds"].pop(), "rounds", "passes[3].blocks[0].rounds"),
    "a sample twice": (lambda d: cell(d)["samples"].update(round=[0, 0]), "rounds", "cells[2].samples.round"),
    "a sample too many": (lambda d: cell(d)["samples"].update(round=[0, 2]), "rounds", "cells[2].samples.round"),
    "a cell that is gone": (lambda d: block(d)["cells"].pop(), "cells", "passes[3].blocks[0].cells"),
    "other CPUs": (lambda d: cell(d)["obtained"].update(cpus=[[0]]), "cpu", "cells[2].obtained.cpus"),
    "more time than there was": (
        lambda d: cell(d, MANY)["samples"]["wall_ns"].__setitem__(1, 1), "elapsed", "cells[4].samples.elapsed_ns[1]",
    ),
    "less time than a batch took": (
        lambda d: add(cell(d, ALONE)["samples"]["wall_ns"], 1, 9), "elapsed", "cells[3].samples.elapsed_ns[1]",
    ),
    "samples beyond the rounds": (lambda d: block(d)["times"].update(rounds_ns=1), "sums", "times.rounds_ns"),
    "untimed work": (lambda d: block(d)["times"].update(hook_ns=1), "sums", "blocks[0].times.hook_ns"),
    "a block set aside with other rounds": (
        lambda d: d["passes"][3].update(set_aside=[block(d, 2)]), "rounds", "passes[3].set_aside[0].rounds",
    ),
    "a block in two passes": (lambda d: clocked(d, 10**9, 1000), "clocks", "passes[3].blocks[0]"),
    "a pass before its time": (lambda d: clocked(d, 10, 10), "clocks", "passes[3].blocks[0]"),
}  # fmt: skip


def clocked(document: Doc, boot_ns: int, utc_ns: int) -> None:
    """The clocks of a block that stood elsewhere have come with it."""
    block(document)["environment"]["before"]["t_ns"] = boot_ns
    block(document)["times"]["start_utc_ns"] = utc_ns


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_said_twice_must_agree(tmp_path: Path, document: Doc, name: str) -> None:
    change, code, place = COUNTS[name]
    change(document)
    if "set_aside" in place:
        document["passes"][3]["set_aside"][0] = msgspec.json.decode(msgspec.json.encode(block(document, 2)))
        document["passes"][3]["set_aside"][0]["index"] = 3
    sums_of_copies(document, name)
    run = msgspec.convert(reseal(document), Run)
    with pytest.raises(UsageError) as caught:
        check_counts(run)
    assert caught.value.code == code
    assert caught.value.where.endswith(place)


def sums_of_copies(document: Doc, name: str) -> None:
    """Whoever changes the samples changes the copies: else they do not add up, which loading finds already."""
    if name == "half a batch":
        add(cell(document, MANY)["copy_ops"], 0, 1)


def test_a_true_run_is_valid(tmp_path: Path, document: Doc) -> None:
    assert validate(written(tmp_path, document))["valid"]


def test_a_run_that_goes_on_after_a_boot_or_a_stepped_clock_is_valid(document: Doc) -> None:
    clocked(document, 10, 3000)
    check_counts(msgspec.convert(document, Run))
    clocked(document, 10**9 + 1, 0)
    block(document, 4)["environment"]["before"]["t_ns"] = 10**9 + 2
    check_counts(msgspec.convert(document, Run))


def test_a_failed_cell_may_have_been_emptied(tmp_path: Path, document: Doc) -> None:
    one = cell(document)
    one.update(copy_ops=[0, 0], copy_elapsed_ns=[0, 0], error="EPERM", samples={name: [] for name in one["samples"]})
    assert validate(written(tmp_path, reseal(document)))["valid"]
    one.update(error=None)
    with pytest.raises(UsageError, match=r"times\.timed_ns: \d+ ns, and the samples add up to \d+"):
        validate(written(tmp_path, reseal(document)))


def test_the_stamps_of_a_latency_kernel_are_no_batch(document: Doc) -> None:
    variants = [msgspec.structs.replace(v, flags=["latency"]) for v in made_variants()]
    document = made_run(5, variants=variants)
    one = cell(document, ALONE)
    one["samples"]["elapsed_ns"] = [ns // 3 for ns in one["samples"]["elapsed_ns"]]
    check_counts(msgspec.convert(document, Run))


def test_counts_are_for_validation_and_reading_goes_without(tmp_path: Path, document: Doc) -> None:
    block(document)["times"]["hook_ns"] = 1
    assert len(load_run(written(tmp_path, reseal(document))).passes) == 5


def test_the_limits_without_a_cap_are_the_same_around_all_blocks(tmp_path: Path) -> None:
    """A run that went on at another limit would have one level of two hosts."""

    def limited(document: Doc, held: dict[str, int], cap: str) -> Doc:
        for one in document["passes"][3:]:
            for block_ in one["blocks"]:
                if block_["cap"] == cap:
                    block_["limits"] |= dict.fromkeys(("asked", "before", "after"), held)
        return document

    made = made_capped_run(8)
    check_counts(msgspec.convert(made, Run))
    check_counts(msgspec.convert(limited(made, {"a": 2}, "200W"), Run))
    with pytest.raises(UsageError, match=r"a: 1 then, 2 now") as told:
        check_counts(msgspec.convert(limited(made, {"a": 2}, "as-is"), Run))
    assert (told.value.code, told.value.where.startswith("passes[3].blocks[")) == ("limits", True)
    with pytest.raises(UsageError, match="a: 1 then, nothing now; b: nothing then, 1 now"):
        check_counts(msgspec.convert(limited(made, {"b": 1}, "as-is"), Run))
