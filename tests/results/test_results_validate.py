"""A run folder agrees with itself: plan, blocks and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from broken import Doc, block, reseal, written
from made import made_environment, made_run

from cpubench.analysis.flags import check_set_aside
from cpubench.errors import UsageError
from cpubench.results.files import canonical, content_hash, sealed
from cpubench.results.load import load_block, load_blocks, load_plan, load_run, validate


@pytest.fixture
def document() -> Doc:
    return made_run(5)


@pytest.fixture
def folder(tmp_path: Path, document: Doc) -> Path:
    written(tmp_path, document)
    (tmp_path / "plan.json").write_bytes(canonical(document["plan"]))
    for one in document["passes"]:
        (tmp_path / f"block-{one['index']:03}-as-is.json").write_bytes(canonical(one["blocks"][0]))
    return tmp_path


def test_a_run_loads_from_folder_and_from_file(folder: Path, document: Doc) -> None:
    assert load_run(folder) == load_run(folder / "run.json")
    assert len(load_run(folder).passes) == len(document["passes"])


def test_validate_counts_what_it_checked(folder: Path) -> None:
    found = validate(folder)
    counts = {"passes": 5, "variants": 17, "blocks": 5, "set_aside": 0, "unchecked": []}
    assert found == {"file": str(folder / "run.json"), "valid": True} | counts
    assert validate(folder / "run.json") == found


def test_validate_names_dropped_extra_and_changed_blocks(folder: Path, document: Doc) -> None:
    (folder / "block-001-as-is.json").unlink()
    changed = block(document, 2)
    changed["times"]["ready_ns"] += 1
    (folder / "block-002-as-is.json").write_bytes(canonical(sealed(changed)))
    (folder / "block-009-as-is.json").write_bytes(canonical(sealed(block(document, 4) | {"index": 9})))
    with pytest.raises(UsageError) as caught:
        validate(folder)
    assert caught.value.code == "blocks"
    assert "without a file: pass 1 at as-is" in caught.value.text
    assert "not in run.json: block-009-as-is.json" in caught.value.text
    assert "differ from run.json: block-002-as-is.json" in caught.value.text
    validate(folder / "run.json")  # which is whole in itself


def test_validate_compares_the_plan(folder: Path, document: Doc) -> None:
    (folder / "plan.json").write_bytes(canonical(document["plan"] | {"seed": 99}))
    with pytest.raises(UsageError, match=r"plan\.json: differs"):
        validate(folder)
    (folder / "plan.json").unlink()
    with pytest.raises(UsageError, match=r"plan\.json: there is no such file"):
        validate(folder)


def test_blocks_of_a_folder_come_in_order_and_once(folder: Path, document: Doc) -> None:
    plan = load_plan(folder / "plan.json")
    assert [b.index for b in load_blocks(folder, plan).values()] == [0, 1, 2, 3, 4]
    assert load_block(folder / "block-003-as-is.json", plan).sha256 == content_hash(block(document))
    (folder / "block-077-as-is.json").write_bytes((folder / "block-003-as-is.json").read_bytes())
    with pytest.raises(UsageError, match="holds pass 3 at as-is, as block-003"):
        load_blocks(folder)


def measured_again(folder: Path, document: Doc, **moved: int) -> Doc:
    """A second measurement of pass 1, which counts; the first had what ``moved``."""
    second = block(document, 1)
    earlier = {"environment": made_environment(**moved), "times": second["times"] | {"start_utc_ns": 500}}
    first = sealed(second | earlier)
    document["passes"][1]["set_aside"] = [first]
    written(folder, sealed(document))
    (folder / "block-001-as-is.json").write_bytes(canonical(first))
    (folder / "block-001-as-is-again.json").write_bytes(canonical(second))
    return first


def test_a_block_that_was_measured_again_is_set_aside(folder: Path, document: Doc) -> None:
    first = measured_again(folder, document, steal_ns=10**9)
    assert validate(folder)["set_aside"] == 1
    assert list(load_blocks(folder))[1] == "block-001-as-is-again.json"
    assert first["sha256"] not in {one.sha256 for one in load_blocks(folder).values()}
    assert validate(folder, judges=[check_set_aside])["blocks"] == 5


def test_a_block_without_a_flag_may_not_be_set_aside(folder: Path, document: Doc) -> None:
    measured_again(folder, document, others_ns=1)
    assert validate(folder)["set_aside"] == 1
    with pytest.raises(UsageError, match=r"run\.json: passes\[1\]\.set_aside\[0\]: is set aside without a flag"):
        validate(folder, judges=[check_set_aside])
    with pytest.raises(UsageError, match="without a flag"):
        validate(folder / "run.json", judges=[check_set_aside])


def test_what_was_set_aside_must_be_in_run_and_folder(folder: Path, document: Doc) -> None:
    measured_again(folder, document, steal_ns=10**9)
    (folder / "block-001-as-is.json").unlink()
    with pytest.raises(UsageError, match=r"without a file: pass 1 at as-is \(set aside\)$"):
        validate(folder)
    measured_again(folder, document, steal_ns=10**9)
    del document["passes"][1]["set_aside"]
    written(folder, sealed(document))
    with pytest.raises(UsageError, match=r"not in run\.json: block-001-as-is\.json$"):
        validate(folder)
    (folder / "block-001-as-is-again.json").write_bytes(canonical(sealed(block(document, 2) | {"rounds": []})))
    with pytest.raises(UsageError, match="holds pass 2 at as-is, as block-001"):
        load_blocks(folder)


def test_a_block_of_another_plan_is_refused(folder: Path, document: Doc) -> None:
    file = folder / "plan.json"
    file.write_bytes(canonical(document["plan"] | {"id": "other"}))
    with pytest.raises(UsageError, match=r"block-000-as-is\.json: belongs to the plan"):
        load_blocks(folder, load_plan(file))


def test_validate_counts_the_cores_that_copies_occupy(folder: Path, document: Doc) -> None:
    document["host"]["cores"] = [[0, 8], [1, 9]]
    assert validate(written(folder, reseal(document)))["valid"]
    document["host"]["cores"] = [[0, 1]]  # siblings: two copies on one core
    file = written(folder, reseal(document))
    with pytest.raises(UsageError, match=r"plan\.variants\[2\]: spawn_.*is divided by 2, and occupies 1 cores"):
        validate(file)
    assert load_run(file).plan.divisor.n == 2  # which is enough to read it


@pytest.mark.parametrize("cores", [None, 7, "0-3", [], [0, 1], [[0]], [[[0]], None]], ids=repr)
def test_a_host_that_does_not_tell_its_cores_is_not_held_to_them(folder: Path, document: Doc, cores: Any) -> None:
    document["host"]["cores"] = cores
    assert validate(written(folder, reseal(document)))["valid"]


def test_validate_asks_the_checks_of_the_folder_that_it_is_given(folder: Path) -> None:
    asked = []
    validate(folder, lambda where, run: asked.append((where, run.plan.id)))
    validate(folder / "run.json", lambda where, run: asked.append((where, "of a file alone")))
    assert asked == [(folder, "made-0")]
