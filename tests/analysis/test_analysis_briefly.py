"""The figures that an index takes are those of the score, to the last digit; what the score refuses it refuses."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from broken import reseal
from made import made_environment, made_run
from made_watts import made_capped_run

from cpubench.analysis.briefly import brief_score
from cpubench.analysis.reference import as_reference, make_reference
from cpubench.analysis.scenarios import load_scenarios
from cpubench.analysis.score import score
from cpubench.errors import UsageError
from cpubench.results.brief import brief_run
from cpubench.results.files import canonical
from cpubench.results.load import run_of
from cpubench.results.records import Run

Doc = dict[str, Any]


def reference() -> Doc:
    return make_reference(msgspec.convert(made_run(8, noise=0), Run), "made")


def lacking(kernel: str, passes: int) -> Doc:
    """A run of which some passes lack the cells of a kernel."""
    document = made_run(12)
    for one in document["passes"][:passes]:
        for cell in one["blocks"][0]["cells"]:
            if cell["kernel"] == kernel:
                cell |= {"copy_ops": [], "copy_elapsed_ns": [], "error": "it broke"}
                cell["samples"] = {name: [] for name in cell["samples"]}
    return reseal(document)


def busy(index: int) -> Doc:
    return made_environment(others_ns=10**9)


RUNS: dict[str, Callable[[], Doc]] = {
    "plain": lambda: made_run(12, noise=0.05),
    "few passes": lambda: made_run(5),
    "two passes lack a row": lambda: lacking("file_create", 2),
    "no pass has a row": lambda: lacking("file_create", 12),
    "half of the passes lack a row": lambda: lacking("mem_chase", 6),
    "noisy": lambda: made_run(12, environment=busy),
    "watts": lambda: made_capped_run(),
    "three levels": lambda: made_capped_run(caps={"150W": (1.5, 0.4), "as-is": (1.0, 1.0), "200W": (1.25, 0.6)}),
    "an unverified cap": lambda: made_capped_run(states={"200W": "written"}),
    "no meter": lambda: made_capped_run(power={"meter": "", "problem": "none is here"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_figures_are_those_of_the_score(name: str) -> None:
    raw, scale, weights = canonical(RUNS[name]()), reference(), load_scenarios()
    for scenario in ("equal", "coding"):
        made = brief_score(brief_run(raw), as_reference(scale), weights[scenario])
        whole = score(run_of(raw), scale, scenario)
        levels = {} if whole["power"] is None else {one["level"]: one for one in whole["power"]["levels"]}
        for one in made.figures:
            if one.cap == "as-is":
                wanted = whole["headline"] if not one.family else whole["families"][one.family]
            else:
                wanted = levels[one.cap] if not one.family else levels[one.cap]["families"][one.family]
            assert one.made == wanted[one.measure], one
        assert made.passes == whole["passes"]
        assert {one.cap for one in made.figures} == {"as-is", *levels}
        if name not in {"three levels", "watts", "an unverified cap", "no meter"}:
            assert (not made.faults["as-is"]) == whole["publishable"]


def test_a_level_that_was_not_verified_counts_against_itself_alone() -> None:
    run = brief_run(canonical(RUNS["an unverified cap"]()))
    faults = brief_score(run, as_reference(reference()), load_scenarios()["equal"]).faults
    assert faults["as-is"] == []
    assert "the cap is written" in " ".join(faults["200W"])


def test_most_of_a_file_is_read_over() -> None:
    run = brief_run(canonical(made_run(2)))
    with pytest.raises(AttributeError):
        _ = run.passes[0].blocks[0].cells[0].samples.nvcsw


def test_a_run_in_another_spelling_is_read_in_full() -> None:
    document = made_run(8)
    run = brief_run(json.dumps(document, indent=1).encode())
    assert run == run_of(canonical(document))


def more_copies(document: Doc) -> None:
    document["passes"][0]["blocks"][0]["cells"][0]["copy_ops"].append(1)


def twice(document: Doc) -> None:
    cells = document["passes"][1]["blocks"][0]["cells"]
    cells.append(copy.deepcopy(cells[0]))


def no_time(document: Doc) -> None:
    document["passes"][0]["blocks"][0]["cells"][0]["copy_elapsed_ns"][0] = 0


def another_plan(document: Doc) -> None:
    document["passes"][0]["blocks"][0]["plan_id"] = "other"


def another_cap(document: Doc) -> None:
    document["passes"][0]["blocks"][0]["cap"] = "1W"


def same_pass(document: Doc) -> None:
    document["passes"][1]["index"] = document["passes"][1]["blocks"][0]["index"] = 0


def fewer_passes(document: Doc) -> None:
    document["stopped"]["passes"] = 7


def unplanned(document: Doc) -> None:
    document["passes"][0]["blocks"][0]["cells"][0]["params"] = "rss=1M"


def text_for_number(document: Doc) -> None:
    document["passes"][0]["blocks"][0]["cells"][0]["copy_ops"][0] = "1"


def divisor(document: Doc) -> None:
    document["plan"]["divisor"]["n"] = 3.0


def deep(document: Doc) -> None:
    document["host"]["later"] = json.loads("[" * 40 + "]" * 40)


BREAKS = (more_copies, twice, no_time, another_plan, another_cap, same_pass, fewer_passes, unplanned, text_for_number,
          divisor, deep)  # fmt: skip


@pytest.mark.parametrize("broken", BREAKS)
def test_what_a_reader_refuses_is_refused_in_the_same_words(broken: Callable[[Doc], None]) -> None:
    document = made_run(8)
    broken(document)
    raw = canonical(reseal(document))
    told = []
    for read in (run_of, brief_run):
        with pytest.raises(UsageError) as caught:
            read(raw)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_a_number_that_was_changed_breaks_the_seal() -> None:
    document = made_run(8)
    document["passes"][0]["blocks"][0]["cells"][0]["copy_ops"][0] += 1
    document["passes"][0]["blocks"][0]["cells"][0]["samples"]["ops"][0] += 1
    with pytest.raises(UsageError, match="does not match its sha256"):
        brief_run(canonical(document))
    for cut in (10, 1000):
        with pytest.raises(UsageError, match="was cut"):
            brief_run(canonical(made_run(8))[:-cut])


def test_a_seal_inside_of_a_text_is_no_seal() -> None:
    """Who hides the end of a run in one of its strings does not make it another run."""
    document = made_run(8)
    document["notes"] = [f',"sha256":"{"0" * 64}","stopped":{{}}}}']
    with pytest.raises(UsageError, match="does not match its sha256"):
        brief_run(canonical(document))
    sealed = reseal(document)
    assert brief_run(canonical(sealed)).sha256 == sealed["sha256"]
