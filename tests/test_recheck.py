"""Validation computes anew what follows from a run: a swapped host, another stop, a log that says something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made import made_run, truthful, written

import cpubench
from cpubench.errors import UsageError
from cpubench.recheck import validated
from cpubench.results.files import sealed

Doc = dict[str, Any]
HOST = {"id": "made", "llc_bytes": 32 << 20, "cpus_allowed": "0-1", "cores": [[0], [1]], "quota_cpus": None,
        "virtual": "kvm"}  # fmt: skip


@pytest.fixture
def document() -> Doc:
    """A run of twelve passes, the fewest, on a host that tells its facts."""
    return truthful(made_run(12, noise=0.005) | {"host": {"hostname": "made", **HOST}})


def fault(folder: Path, document: Doc) -> UsageError:
    with pytest.raises(UsageError) as caught:
        validated(written(folder, sealed(document)))
    line = str(caught.value)
    assert line.isprintable()
    assert len(line) < 300
    return caught.value


def test_a_true_run_is_valid_and_says_what_was_not_checked(tmp_path: Path, document: Doc) -> None:
    found = validated(written(tmp_path, document))
    assert (found["valid"], found["passes"], found["signed_by"]) == (True, 12, None)
    (unchecked,) = found["unchecked"]
    assert "machine-id, which is not stored" in unchecked


OTHERS = [{"level": level, "size_bytes": size, "shared_cpus": [cpus]}
          for level, size, cpus in ((2, 32 << 20, "0-1"), (3, 96 << 20, "0-1"), (3, 32 << 20, "2-3"))]  # fmt: skip
FACTS: dict[str, tuple[Doc, str, str]] = {
    "another host": ({"id": "other"}, "host", "host.id"),
    "a host without an id": ({"id": None}, "host", "host.id"),
    "another cache": ({"llc_bytes": 1 << 20}, "host", "host.llc_bytes"),
    "a cache that is not the last": ({"llc_bytes": 96 << 20, "cache_instances": OTHERS}, "host", "host.llc_bytes"),
    "no such CPU": ({"cpus_allowed": "0"}, "host", "host.cpus_allowed"),
    "no list of CPUs": ({"cpus_allowed": "all"}, "host", "host.cpus_allowed"),
    "bare metal": ({"virtual": None}, "divisor", "plan.divisor"),
    "a quota": ({"quota_cpus": 0.5}, "divisor", "plan.divisor"),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_that_are_not_those_of_the_plan_are_refused(tmp_path: Path, document: Doc, name: str) -> None:
    facts, code, place = FACTS[name]
    document["host"] |= facts
    found = fault(tmp_path, document)
    assert (found.code, found.where.rpartition(": ")[2]) == (code, place)


@pytest.mark.parametrize("facts", [
    {"cores": None}, {"cores": 7}, {"cores": [[]]}, {"cores": [["0"], [None]]}, {"cpus_allowed": None},
    {"cpus_allowed": 7}, {"quota_cpus": "2"}, {"quota_cpus": True}, {"quota_cpus": [2]},
], ids=str)  # fmt: skip
def test_a_host_that_does_not_tell_is_not_held_to_it(tmp_path: Path, document: Doc, facts: Doc) -> None:
    document["host"] |= facts
    assert validated(written(tmp_path, sealed(document)))["valid"]


def test_one_copy_may_run_behind_another_cache_than_the_first_cpu(tmp_path: Path, document: Doc) -> None:
    rows: list[Any] = [7, {"level": "3"}, {"level": 3, "size_bytes": 1, "shared_cpus": [7, "x"]}]
    rows += [{"level": level, "size_bytes": size, "shared_cpus": [cpus]}
             for level, size, cpus in ((2, 1 << 20, "0-1"), (3, 96 << 20, "0"), (3, 32 << 20, "1"))]  # fmt: skip
    document["host"] |= {"llc_bytes": 96 << 20, "cache_instances": rows}
    assert validated(written(tmp_path, sealed(document)))["valid"]


Change = Callable[[Doc], object]
STOPS: dict[str, tuple[Change, str, str]] = {
    "narrower": (lambda d: d["stopped"].update(half_width_ppm=100), "half_width", "stopped.half_width_ppm"),
    "not known": (lambda d: d["stopped"].update(half_width_ppm=None), "half_width", "stopped.half_width_ppm"),
    "most passes": (lambda d: d["stopped"].update(by="max"), "stop", "stopped.by"),
    "no budget": (lambda d: d["stopped"].update(by="budget"), "stop", "stopped.by"),
    "an easier target": (lambda d: d["plan"].update(target_ppm=50_000), "profile", "plan.target_ppm"),
    "fewer passes wanted": (lambda d: d["plan"].update(min_passes=3), "profile", "plan.min_passes"),
    "another profile": (lambda d: d["plan"].update(profile="strict"), "profile", "plan.samples"),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_stop_that_does_not_follow_is_refused(tmp_path: Path, document: Doc, name: str) -> None:
    change, code, place = STOPS[name]
    change(document)
    found = fault(tmp_path, document)
    assert (found.code, found.where.rpartition(": ")[2]) == (code, place)


def test_a_run_that_went_on_after_its_target_is_refused(tmp_path: Path) -> None:
    document = truthful(made_run(14, noise=0.005))
    assert fault(tmp_path, document).text == "the run had reached its target a pass before, and went on"


def test_a_target_that_was_not_reached_is_refused(tmp_path: Path) -> None:
    document = truthful(made_run(12, noise=0.2), by="target")
    assert document["stopped"]["half_width_ppm"] > 20_000
    assert fault(tmp_path, document).where.endswith("stopped.by")


def test_the_last_digit_is_not_asked_for(tmp_path: Path, document: Doc) -> None:
    document["stopped"]["half_width_ppm"] += 1
    assert validated(written(tmp_path, sealed(document)))["valid"]


def test_another_version_may_have_had_other_rules(tmp_path: Path, document: Doc) -> None:
    document["plan"]["cpubench"] = "0.0.1"
    document["stopped"] |= {"half_width_ppm": 7, "by": "max"}
    found = validated(written(tmp_path, sealed(document)))
    why = f"this is cpubench {cpubench.__version__}, and the run was made by 0.0.1"
    assert [text for text in found["unchecked"] if why in text] == found["unchecked"][1:]
    assert len(found["unchecked"]) == 3


def logged(folder: Path, *events: Doc | str) -> Path:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    (folder / "log.jsonl").write_text("\n".join(lines))
    return folder


PLANNED = {"utc": "2026", "event": "planned", "id": "made-0", "passes": 0}
STOPPED = {"utc": "2026", "event": "stopped", "by": "target", "passes": 12}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([PLANNED | {"id": "\x1b[2J"}], r"is of the plan \x1b[2J"),
        ([PLANNED, {"event": "pass", "index": 12}], "pass 12 was measured, and run.json holds 12"),
        ([PLANNED, {"event": "pass", "index": None}], "pass None was measured"),
        ([STOPPED | {"passes": 13}], "the run stopped by target after 13; run.json says target, 12"),
        ([STOPPED, STOPPED | {"by": "max"}], "the run stopped by max after 12"),
    ],
    ids=["plan", "pass", "odd pass", "passes", "reason"],
)
def test_a_log_that_says_something_else_is_refused(tmp_path: Path, document: Doc, events: list[Doc], text: str) -> None:
    logged(written(tmp_path, document), *events)
    with pytest.raises(UsageError, match=r"log\.jsonl: line \d") as caught:
        validated(tmp_path)
    assert text in caught.value.text
    assert validated(tmp_path / "run.json")["valid"]  # a file alone has no log


def test_a_log_with_holes_proves_nothing(tmp_path: Path, document: Doc) -> None:
    interrupted = STOPPED | {"by": "interrupted", "passes": 4}
    broken = ['{"event": "pa', "[1]", "7", "[" * 9999, '{"event": 1}', ""]
    events = [PLANNED, {"event": "pass", "index": 11}, {"event": "again", "index": 99}, STOPPED]
    logged(written(tmp_path, document), PLANNED, *broken, interrupted, *events)
    assert validated(tmp_path)["valid"]


def test_each_run_of_a_folder_is_validated(tmp_path: Path, document: Doc) -> None:
    for name in ("one", "two"):
        written(tmp_path / name, document)
    found = validated(tmp_path)
    assert [Path(one["file"]).parent.name for one in found["runs"]] == ["one", "two"]
    (tmp_path / "two" / "block-003-as-is.json").unlink()
    with pytest.raises(UsageError, match=r"two: in run\.json without a file: pass 3"):
        validated(tmp_path)


def sides(folder: Path, change: Change = lambda d: None) -> Path:
    """Two sides that took turns, with the width of their ratio; ``change`` changes side b."""
    from cpubench.analysis.widths import headline_half_width
    from cpubench.results.load import load_run

    made = {}
    for number, label in enumerate("ab"):
        side = {"pair": "p", "label": label, "settings": {}}
        document = made_run(12, noise=0.005, seed=number)
        document["plan"]["side"] = side
        made[label] = written(folder / label, sealed(document))
    runs = {label: load_run(one) for label, one in made.items()}
    blocks = {label: [one.blocks[0] for one in run.passes] for label, run in runs.items()}
    width = headline_half_width(runs["a"].plan, blocks["a"], blocks["b"])
    assert width is not None
    for label, one in made.items():
        document = json.loads((one / "run.json").read_bytes())
        document["stopped"] = {"by": "target", "passes": 12, "half_width_ppm": round(width * 1e6)}
        if label == "b":
            change(document)
        written(one, sealed(document))
    return folder


def test_the_width_of_two_sides_is_that_of_their_ratio(tmp_path: Path) -> None:
    folder = sides(tmp_path)
    assert [one["valid"] for one in validated(folder)["runs"]] == [True, True]
    (tmp_path / "elsewhere").mkdir()
    alone = (folder / "a").rename(tmp_path / "elsewhere" / "a")
    unchecked = validated(alone)["unchecked"]
    assert unchecked[-1] == "the half-width and the stop: they are of two sides, and the other is not beside it"


def test_a_side_of_another_pair_is_refused(tmp_path: Path) -> None:
    sides(tmp_path, lambda d: d["plan"]["side"].update(pair="q"))
    with pytest.raises(UsageError, match=r"plan\.side: the run beside it did not take turns with this one"):
        validated(tmp_path / "a")
