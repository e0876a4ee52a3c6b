"""Watts, caps and tasks in the report: who does most under a cap, what is never mixed, and what did not hold."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from broken import reseal
from made_reports import EVIL, EVIL_NAME, candidate, capped, put, reference_of, tasks_of, watt_variants
from made_watts import made_capped_run

from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.report.html import page as pages
from cpubench.report.html.summary import summary
from cpubench.report.html.words import MISSING
from cpubench.vendor import make_report, report_document

pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

Doc = dict[str, Any]
WALL = {"scope": "wall", "provenance": "external", "meter": "redfish"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A; B, a tenth slower on 0.8 times the watts; C, as A, whose 150 W do not hold; D, whose watts are the wall's."""
    root = tmp_path_factory.mktemp("power")
    reference_of(root, watt_variants())
    capped(root / "a", 1)
    capped(root / "b", 2, 1.1, watts=0.8)
    capped(root / "c", 3, states={"150W": "over_cap"})
    capped(root / "d", 4, 1.3, watts=0.7, power=WALL)
    return root


@pytest.fixture(scope="module")
def document(folder: Path) -> Doc:
    return report_document([folder / name for name in "abcd"], reference=folder / "reference.json")


def answer(doc: Doc, measure: str, level: str | None = None) -> Doc:
    return next(one for one in doc["answers"] if (one["measure"], one["level"]) == (measure, level))


def rules(doc: Doc, name: str) -> list[Doc]:
    return [one for one in doc["refusals"] if one["id"] == name]


def tables(doc: Doc, section: str) -> dict[str, Any]:
    made = next(one for one in pages.sections_of(doc) if one.name == section)
    return {block.name: block for block in made.blocks if hasattr(block, "name")}


def test_who_does_most_is_answered_per_core_per_watt_and_under_each_cap(document: Doc) -> None:
    assert answer(document, "per_core")["tiers"][-1] == ["D"]
    assert set(answer(document, "per_core")["tiers"][0]) == {"A", "C"}
    watts = answer(document, "per_watt")
    assert watts["tiers"] == [["B"], watts["tiers"][1]]
    assert watts["left_out"] == [["D", "R4: watts of wall, external"]]
    assert answer(document, "per_watt", "150W")["tiers"] == [["B"], ["A"]]
    assert answer(document, "per_watt", "150W")["left_out"] == [
        ["C", "R7: over_cap"],
        ["D", "R4: watts of wall, external"],
    ]
    assert answer(document, "per_core", "200W")["tiers"][1:] == [["B"], ["D"]]
    html = pages.page_of(document).html
    first = html[html.index('id="summary"') : html.index('<nav aria-label="Contents"')]
    assert "per watt under 150W</th><td><b>B</b></td><td>1: B; 2: A</td><td>B / A 1.13" in first
    assert "left out: C (R7: over_cap); D (R4: watts of wall, external)" in first
    assert "No power caps" not in first


def test_one_cap_can_be_asked_for_and_one_that_is_not_there_is_named(folder: Path) -> None:
    pair = [folder / "a", folder / "b"]
    made = report_document(pair, reference=folder / "reference.json", under="200W")
    html = pages.page_of(made).html
    first = html[html.index('id="summary"') : html.index('<nav aria-label="Contents"')]
    assert "points/watt under 200W" in first
    assert "under 150W" not in first
    with pytest.raises(UsageError, match="no candidate has the cap level 250W: those of these runs are 200W, 150W"):
        report_document(pair, reference=folder / "reference.json", under="250W")


def test_what_is_of_other_watts_or_did_not_hold_is_refused_by_its_rule(document: Doc) -> None:
    assert [one["who"] for one in rules(document, "R4")] == [["A", "D"], ["B", "D"], ["C", "D"]]
    assert rules(document, "R4")[0]["text"] == "watts of package, measured, and of wall, external: not compared"
    assert rules(document, "R5") == []
    assert [(one["who"], one["text"]) for one in rules(document, "R7")] == [(["C"], "no claim under 150W: over_cap")]


def test_the_section_on_power_has_the_state_watts_clock_and_throttling_of_every_level(document: Doc) -> None:
    found = tables(document, "power")
    assert [row[:6] for row in found["meters"].rows[2:]] == [
        ["C", "powercap:package", "package", "measured", "package", "50.0"],
        ["D", "redfish", "wall", "external", "package", "50.0"],
    ]
    levels = {(row[0], row[1]): row for row in found["levels"].rows}
    assert len(levels) == 12
    assert levels["C", "150W"][2] == "over_cap"
    assert float(levels["B", "as-is"][4]) / float(levels["A", "as-is"][4]) == pytest.approx(0.8, rel=0.02)
    ratios = {(row[0], row[1]): row for row in found["level-ratios"].rows}
    assert ratios["A", "200W"][2].startswith(("0.80", "0.79"))
    assert ratios["A", "200W"][4:7] == ["2900 (2800 .. 3000)", "0", "84"]
    assert {"pareto", "power-curve", "pareto-2", "power-curve-2", "level-pairs", "level-tests-A"} <= found.keys()
    assert {row[0] for row in found["pareto-2"].rows} == {"D"}
    assert found["level-tests-A"].heads[1:3] == [">as-is: time", ">energy"]
    assert found["level-tests-A"].rows[0][2].endswith("J")


def test_several_runs_of_a_host_are_one_curve_and_never_of_two_scopes(tmp_path: Path) -> None:
    reference, values = reference_of(tmp_path, watt_variants()), []
    for at in range(3):
        run = made_capped_run(12, seed=at, noise=0.01, variants=watt_variants(), host_id="h", id=f"run-{at}",
                              watts=1 + at / 100, caps={"as-is": (1.0, 1.0), "200W": (1.25, 0.6)})  # fmt: skip
        put(tmp_path / "same" / f"run{at}", run, id="h")
        alone = report_document([tmp_path / "same" / f"run{at}"], reference=reference)
        values.append(alone["candidates"][0]["power"]["levels"][1]["per_watt"]["value"])
    power = report_document([tmp_path / "same"], reference=reference)["candidates"][0]["power"]
    level = power["levels"][1]
    assert level["per_watt"]["value"] == pytest.approx((values[0] * values[1] * values[2]) ** (1 / 3))
    assert level["per_watt"]["low"] < min(values)
    assert (level["passes"], level["throttles"]["power_limit"], len(level["variants"])) == (36, 252, 8)
    assert (power["most_efficient"]["level"], power["most_efficient"]["separable"]) == ("200W", True)
    other = made_capped_run(12, seed=9, variants=watt_variants(), host_id="h", id="run-9", power=WALL)
    put(tmp_path / "same" / "run9", other, id="h")
    mixed = report_document([tmp_path / "same"], reference=reference)
    assert mixed["candidates"][0]["score"]["headline"]["per_watt"]["value"] is None
    assert mixed["candidates"][0]["score"]["headline"]["per_core"]["value"] > 0
    assert rules(mixed, "R4")[0]["text"].startswith("watts of package and wall are other quantities")
    assert {row["per_watt"]["value"] for row in mixed["candidates"][0]["power"]["levels"]} == {None}


def test_what_a_figure_over_runs_is_the_mean_of_are_runs_everywhere(folder: Path, tmp_path: Path) -> None:
    caps = {"as-is": (1.0, 1.0), "200W": (1.25, 0.6)}
    for host in range(2):
        for at in range(3):
            run = made_capped_run(12, seed=3 * host + at, noise=0.01, variants=watt_variants(), host_id=f"h{host}",
                                  id=f"run-{host}-{at}", caps=caps)  # fmt: skip
            put(tmp_path / f"h{host}" / f"run{at}", run, id=f"h{host}")
    runs = [tmp_path / "h0", tmp_path / "h1", capped(tmp_path / "alone", 9, caps=caps)]
    made = report_document(runs, reference=folder / "reference.json", under="200W")
    for card, ending in zip(summary(made).cards, (", 3 runs", ", 3 runs", ", 12 passes"), strict=True):
        told = [(name, note) for name, _, note in card.figures]
        assert [name for name, _ in told][-2:] == ["points/core under 200W", "points/watt under 200W"]
        assert [note[-len(ending) :] for _, note in told] == [ending] * len(told)
    found, scores = tables(made, "power"), tables(made, "scores")
    assert [row[-1] for row in found["levels"].rows] == ["3 runs"] * 4 + ["12 passes"] * 2
    for table in (found["level-pairs"], scores["pairs"]):
        at = table.heads.index("of")
        assert {row[0]: row[at] for row in table.rows} == {
            "B / A": "3 + 3 runs", "C / A": "36 + 12 passes", "C / B": "36 + 12 passes"}  # fmt: skip
    rows = [table for name, table in tables(made, "tests").items() if name.startswith("tests-scored")]
    for table in rows:
        for head, count in (("A", "3"), ("C", "12")):
            at = table.heads.index(f">{head}")
            assert {row[at + 1] for row in table.rows} <= {count, "-"}


def test_no_word_is_made_under_a_cap_that_did_not_hold(document: Doc, folder: Path, tmp_path: Path) -> None:
    found = tables(document, "power")["level-pairs"].rows
    assert {row[0] for row in found if row[1] == "150W"} == {"B / A", "D / A", "D / B"}
    assert {row[0] for row in found if row[1] == "200W"} == {"B / A", "C / A", "D / A", "C / B", "D / B", "D / C"}
    html = pages.page_of(document).html
    assert "C / A 150W, C / B 150W, D / C 150W: not compared: R7: C over_cap." in html
    hungry = capped(tmp_path / "e", 5, watts=2.5)  # before the passes both caps were shown to hold
    made = report_document([folder / "a", hungry], reference=folder / "reference.json")
    assert "level-pairs" not in tables(made, "power")
    assert "B / A 200W, B / A 150W: not compared: R7: B over_cap." in pages.page_of(made).html


def pooled(folder: Path, tmp_path: Path, *runs: Doc) -> Doc:
    """The report on one host's runs with these differences."""
    for at, fields in enumerate(runs):
        run = made_capped_run(12, seed=at, variants=watt_variants(), host_id="h", id=f"run-{at}", **fields)
        put(tmp_path / "same" / f"run{at}", run, id="h")
    return report_document([tmp_path / "same"], reference=folder / "reference.json")


@pytest.mark.parametrize(
    ("states", "state", "told"),
    [
        (("not_binding", "over_cap", "verified"), "over_cap", "in 1 of 3 runs: made"),
        (("verified", "not_binding"), "not_binding", "in 1 of 2 runs: made"),
        (("verified", "verified"), "verified", "made"),
    ],
)
def test_the_state_over_runs_is_the_worst(
    folder: Path, tmp_path: Path, states: tuple[str, ...], state: str, told: str
) -> None:
    made = pooled(folder, tmp_path, *({"states": {"200W": one}} for one in states))
    level = made["candidates"][0]["power"]["levels"][1]
    assert (level["state"], level["text"]) == (state, told)
    assert bool(rules(made, "R7")) == (state == "over_cap")


def test_caps_of_packages_and_of_a_board_are_not_put_together(folder: Path, tmp_path: Path) -> None:
    made = pooled(folder, tmp_path, {}, {"power": {"cap_scope": "board"}})
    base, level = made["candidates"][0]["power"]["levels"]
    why = "the caps limit package and board: other caps are not put together"
    assert base["per_core"]["value"] > 0
    assert base["per_watt"]["value"] > 0
    assert {level[name]["reason"] for name in ("per_core", "per_watt", "watts")} == {why}
    assert {row["per_core"]["value"] for row in level["families"].values()} == {None}
    assert (level["cap_watts"], level["variants"]) == (None, [])
    assert made["candidates"][0]["power"]["most_efficient"]["reason"] == why
    assert f"no points per core: {why}" in pages.page_of(made).html


def test_candidates_whose_caps_limit_other_things_are_not_ordered_and_why_is_said(folder: Path, tmp_path: Path) -> None:
    other = capped(tmp_path / "b", 2, power={"cap_scope": "board"})
    made = report_document([folder / "a", other], reference=folder / "reference.json")
    start = "not every pair of candidates could be compared: A and B: "
    assert answer(made, "per_core", "200W")["reason"] == f"{start}the caps limit board and package"
    assert answer(made, "per_core")["reason"] is None


def test_a_run_without_watts_beside_one_with_them_is_blank_and_says_why(folder: Path, tmp_path: Path) -> None:
    plain = candidate(tmp_path / "plain", 7, variants=watt_variants(), passes=12, noise=0.01)
    made = report_document([folder / "a", plain], reference=folder / "reference.json")
    assert answer(made, "per_watt")["reason"] == "only A has a figure"
    assert answer(made, "per_core", "200W")["left_out"] == [["B", "was not measured under it"]]
    assert rules(made, "R5")[0]["who"] == ["B"]
    assert tables(made, "power")["meters"].rows[1][-1] == "the run read no meter and has no caps"
    assert "No power caps on B" in pages.page_of(made).html


def test_why_there_are_no_watts_drawn_stands_on_the_page(folder: Path, tmp_path: Path) -> None:
    run = made_capped_run(12, seed=7, variants=watt_variants(), host_id="h", caps={"as-is": (1.0, 1.0)})
    for block in (one["blocks"][0] for one in run["passes"]):
        memory = next(window for window in block["windows"] if window["family"] == "memory")
        memory["log"]["readings"] = memory["log"]["readings"][:1]
    made = report_document([put(tmp_path / "run", reseal(run), id="h")], reference=folder / "reference.json")
    assert tables(made, "power")["levels"].rows[0][4] == MISSING
    assert "A as-is: no watts drawn: memory: gap: 0 % of " in pages.page_of(made).html


def test_units_of_a_fleet_have_a_strip_per_watt_for_each_scope(folder: Path, tmp_path: Path) -> None:
    for at in range(9):
        capped(tmp_path / "fleet" / f"u{at}", 100 + at, 1 + at / 50, passes=8, **({"power": WALL} if at > 5 else {}))
    made = report_document([tmp_path / "fleet"], reference=folder / "reference.json")
    found = tables(made, "candidates")
    assert [len(found[name].rows) for name in ("fleet", "fleet-watts", "fleet-watts-2")] == [9, 6, 3]
    at = found["units"].heads.index("watts of")
    assert [row[at] for row in found["units"].rows] == ["package, measured"] * 6 + ["wall, external"] * 3
    assert rules(made, "R4")[0]["text"].startswith("watts of package and wall")
    (said,) = [text for text in summary(made).open if text.startswith("R4")]
    assert said.startswith("R4: watts of package and wall")


def test_names_of_levels_meters_and_tasks_are_text_everywhere(tmp_path: Path) -> None:
    reference = reference_of(tmp_path, watt_variants())
    level = EVIL_NAME[:100]
    run = capped(tmp_path / "evil", 1, caps={"as-is": (1.0, 1.0), level: (1.25, 0.6), "9W": (1.5, 0.5)},
                 states={level: "verified", "9W": EVIL_NAME[:90]},
                 power={"scope": EVIL_NAME[:80], "provenance": EVIL_NAME[:80], "meter": EVIL_NAME[:80],
                        "cap_scope": EVIL_NAME[:80], "problem": EVIL})  # fmt: skip
    tasks_of(run, "host1", fields={"missing": {EVIL: EVIL}, "notes": [EVIL], "programs": {EVIL: {"version": EVIL}}})
    text = (run / "tasks.json").read_text()
    assert "fs.copy" in text
    output = tmp_path / "r.html"
    make_report(
        [run, capped(tmp_path / "b", 2, caps={"as-is": (1.0, 1.0), level: (1.2, 0.6)})], output, reference=reference
    )
    html = output.read_text()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert not set("\x1b\x00\u202e") & set(html)
    cells = [cell for file in (tmp_path / "r.data").rglob("*.csv") for row in csv.reader(file.read_text().splitlines())
             for cell in row]  # fmt: skip
    assert any("<script>" in cell for cell in cells)
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in cells)
    for file in (tmp_path / "r.data").rglob("*.svg"):
        assert "<script" not in file.read_text()
    assert main(["score", str(run), "--reference", str(reference)]) == 0


def test_data_beside_a_report_with_watts_and_tasks_make_it_again(folder: Path, tmp_path: Path) -> None:
    run = capped(tmp_path / "a", 1)
    tasks_of(run, "host1")
    first, again = tmp_path / "r.html", tmp_path / "again.html"
    make_report([run, folder / "b"], first, reference=folder / "reference.json", under="150W")
    make_report([tmp_path / "r.data"], again)
    assert first.read_bytes() == again.read_bytes()
    rows = list(csv.DictReader((tmp_path / "r.data" / "figures.csv").read_text().splitlines()))
    assert {"level", "family at level", "test at level", "task", "phase"} <= {row["kind"] for row in rows}
    drawn = next(row for row in rows if (row["candidate"], row["kind"], row["name"]) == ("A", "level", "200W"))
    assert (drawn["measure"], float(drawn["value"]) > 0) == ("watts", True)
    with pytest.raises(UsageError, match="fixed"):
        make_report([tmp_path / "r.data"], again, under="200W")
