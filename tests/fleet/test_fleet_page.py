"""The page of a fleet: units, odd ones, failures; foreign text stays text; the same data make the same bytes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_fleet import GIB, cell, document_of, fail, put_run, unit
from made_reports import EVIL, reference_of
from made_watts import made_capped_run

from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.fleet.collect import rules_of
from cpubench.fleet.results import collect
from cpubench.report.html.blocks import Text
from cpubench.report.html.figures.draw import Drawing
from cpubench.report.html.fleet import fleet_page, models, odd
from cpubench.results.records import Divisor

pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleets")
    reference_of(root)
    made = root / "lab"
    for seed in range(8):
        unit(made, f"a{seed}", seed, "CPU A", noise=0.01)
    facts = {"memory_total_bytes": 256 * GIB, "microcode": EVIL}
    put_run(made, cell("slow"), document_of("slow", 50, "CPU A", slower=1.5, facts=facts))
    for seed in range(3):
        unit(made, f"b{seed}", 20 + seed, f"CPU B {EVIL}", slower=1.2)
    fail(made, cell("dead"), **{"class": EVIL, "text": EVIL, "at": EVIL})
    return made


def page(fleet: Path) -> str:
    return fleet_page(collect(fleet, rules_of(fleet.parent / "reference.json", "equal")))


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.names: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.ids += [value or "" for key, value in attrs if key == "id"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_units_under_caps_that_limit_other_things_are_in_figures_of_their_own(tmp_path: Path) -> None:
    reference_of(tmp_path)
    for at, scope in enumerate(("package", "package", "board")):
        run = made_capped_run(caps={"200W": (1.25, 0.6)}, seed=at, host_id=f"h{at}", power={"cap_scope": scope})
        put_run(tmp_path / "lab", cell(f"h{at}", cap="200W"), run)
    document = collect(tmp_path / "lab", rules_of(tmp_path / "reference.json", "equal"))
    figures = {block.name: len(block.rows) for block in models(document).blocks if isinstance(block, Drawing)}
    assert figures == {"units-200W-of-package": 2, "against-200W-of-package": 2, "units-200W-of-board": 1,
                       "against-200W-of-board": 1}  # fmt: skip


def test_what_units_of_a_model_are_counted_per_is_in_every_label(tmp_path: Path) -> None:
    reference_of(tmp_path)
    model = "a name of a CPU that is longer than a figure has room for, and goes on"
    for at, kind in enumerate(("vcpu", "physical_core")):
        for seed in range(2):
            unit(tmp_path / "lab", f"{kind[0]}{seed}", 2 * at + seed, model, divisor=Divisor(kind=kind, n=2))
    document = collect(tmp_path / "lab", rules_of(tmp_path / "reference.json", "equal"))
    figures = [block for block in models(document).blocks if isinstance(block, Drawing)]
    assert len(figures) == 2
    for figure in figures:
        for kind in ("vcpu", "physical_core"):
            ticks = {element.text for element in ElementTree.fromstring(figure.svg).iter() if element.text}
            assert len([text for text in ticks if text.endswith(f"(per {kind})")]) == 1
            assert sum(row[0].endswith(f"(per {kind})") for row in figure.rows) == 2
    per = " or ".join(dict.fromkeys(one["kind"] for one in sorted(document["models"], key=lambda one: -one["median"])))
    assert f"points per {per}." in figures[0].finding
    reasons = " ".join(text for block in odd(document).blocks if isinstance(block, Text) for text in block.sentences)
    assert "(per vcpu), as-is: 6 units are needed" in reasons
    assert "(per physical_core), as-is: 6 units are needed" in reasons


def test_the_page_names_the_odd_unit_and_what_differs(fleet: Path) -> None:
    html = page(fleet)
    text = " ".join(Tags(html).text.split())
    assert re.search(r"Odd for their model: slow\.", text)
    assert "memory 256 GiB, 8 of 8 others 512 GiB" in text
    assert "tier 1: CPU A; tier 2: CPU B" in text
    assert "1 failed" in text
    assert page(fleet) == html


def test_foreign_text_is_text_and_nothing_is_loaded(fleet: Path) -> None:
    html = page(fleet)
    seen = Tags(html)
    assert "script" not in seen.names
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert not re.search(r'(src|href)="(?!#|data:,)', html.replace("xlink:", ""))
    assert len(seen.ids) == len(set(seen.ids))
    assert seen.names.count("h1") == 1
    assert html.count("<desc") == html.count("<svg") == 2


def test_report_of_a_fleet_folder_makes_the_page_of_its_units(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = ["--reference", str(fleet.parent / "reference.json")]
    for name in (["report"], ["fleet", "report"]):
        assert main([*name, str(fleet), "-o", str(tmp_path / "r.html"), *reference, "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["counts"]["results"] == 12
        data = json.loads((tmp_path / "r.data.json").read_text())
        assert fleet_page(data) == (tmp_path / "r.html").read_text()
    assert main(["report", str(fleet), "-o", str(tmp_path / "x.html"), "--allow", "R13", *reference]) == 2
    assert not (tmp_path / "x.html").exists()
    assert main(["fleet", "report", str(fleet), "-o", str(tmp_path / "no" / "x.html"), *reference]) == 2


def test_a_document_of_another_shape_is_refused_in_one_line(fleet: Path) -> None:
    document = collect(fleet, rules_of(fleet.parent / "reference.json", "equal"))
    for name in ("models", "units", "odd", "hosts", "counts"):
        with pytest.raises(UsageError, match="shape"):
            fleet_page({**document, name: [{"x": 1}]})


def test_a_fleet_without_any_result_still_has_a_page(tmp_path: Path) -> None:
    reference_of(tmp_path)
    fail(tmp_path / "lab", cell("dead"), **{"class": "unreachable", "text": "x", "at": "y"})
    text = Tags(page(tmp_path / "lab")).text
    assert "There is nothing to say of models" in text
