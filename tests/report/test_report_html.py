"""The vendor report: what it refuses, that foreign text stays text, and that the same data make the same bytes."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from made import made_environment, made_run, made_variants
from made_reports import EVIL, FORMULA, candidate, put, reference_of, shown_variants

from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.report.html import page as pages
from cpubench.report.html.blocks import Table
from cpubench.report.html.figures.draw import Drawing
from cpubench.report.html.figures.fleet import fleet
from cpubench.report.html.sidecar import guarded
from cpubench.results.files import sealed
from cpubench.results.records import Divisor, Missing
from cpubench.results.signature import sign
from cpubench.vendor import make_report, report_document

pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")


DELTA = "delta<b>=1"


def neighbour(index: int) -> dict[str, Any]:
    """A pass in which a process of an odd name was busy."""
    return made_environment() | {"busiest": [{"name": EVIL, "took_ns": 10**8}]}


class Seen(HTMLParser):
    """Tags, ids, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, key: str) -> list[str]:
        return [value for _, name, value in self.attributes if name == key]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four candidates: A has three runs, B is slower, C is as fast as A, D is full of hostile text."""
    root = tmp_path_factory.mktemp("report")
    reference_of(root)
    for at in range(3):
        run = made_run(16, seed=10 + at, noise=0.005, host_id="alpha", id=f"alpha-{at}", variants=shown_variants())
        put(root / "alpha" / f"run{at}", run, hostname="alpha", id="alpha", virtual=False, governor="performance")
    candidate(root / "beta", 20, 1.2, {"governor": "powersave"}, noise=0.005, variants=shown_variants())
    candidate(root / "gamma", 30, noise=0.005, variants=shown_variants())
    hostile = {
        "hostname": EVIL, "cpu_model": FORMULA, "kernel_cmdline": EVIL, "mitigations": {EVIL: EVIL}, "cores": EVIL,
        "caches": [{"level": EVIL, "size_bytes": 65536}], "reasons": {"turbo": EVIL}, "virtual": True,
    }  # fmt: skip
    variants = shown_variants()
    candidate(
        root / DELTA, 40, host=hostile, noise=0.05, variants=variants, created_utc=EVIL, cpubench=EVIL,
        build={"compiler": EVIL, EVIL: EVIL}, skipped=[Missing("io_read@1", FORMULA)], environment=neighbour,
    )  # fmt: skip
    return root


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, Any]:
    runs = [folder / name for name in ("alpha", "beta", "gamma", DELTA)]
    return report_document(runs, reference=folder / "reference.json")


@pytest.fixture(scope="module")
def html(document: dict[str, Any]) -> str:
    return pages.page_of(document).html


def rules(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [one for one in document["refusals"] if one["id"] == name]


def test_candidates_are_in_tiers_by_what_was_shown_and_never_ranked(document: dict[str, Any]) -> None:
    assert [one["label"] for one in document["candidates"]] == ["A", "B", "C", "D"]
    assert document["answers"][0]["tiers"][-1] == ["B"]
    assert {"A", "C"} <= set(document["answers"][0]["tiers"][0])
    assert len(document["candidates"][0]["runs"]) == 3
    assert document["candidates"][0]["score"]["headline"]["per_core"]["passes"] == 48


def test_rules_are_found_in_what_the_runs_hold(document: dict[str, Any]) -> None:
    assert rules(document, "R2")[0]["who"] == ["B", "C", "D"]
    assert [one["who"] for one in rules(document, "R6")] == [["A", "B", "C", "D"]]
    assert ["A", "B"] in [one["who"] for one in rules(document, "R8")]
    assert rules(document, "R5")[0]["who"] == ["A", "B", "C", "D"]
    assert document["status"] == "VALID WITH NOTES"


def test_the_words_of_a_page_share_its_five_per_cent(folder: Path, document: dict[str, Any]) -> None:
    two = report_document([folder / "alpha", folder / "beta"], reference=folder / "reference.json")
    alone = two["pairs"][0]["headline"]["per_core"]
    among_six = next(one for one in document["pairs"] if one["b"] == "B")["headline"]["per_core"]
    assert alone["ratio"] == among_six["ratio"]
    assert among_six["adjusted"]["confidence"] > alone["adjusted"]["confidence"]
    assert among_six["verdict"] == "slower"


def test_the_page_has_no_script_no_request_and_no_id_twice(html: str) -> None:
    seen = Seen(html)
    assert "script" not in seen.tags
    assert not [key for _, key, _ in seen.attributes if key.startswith("on")]
    links = seen.values("href") + seen.values("src") + seen.values("xlink:href")
    assert all(link.startswith(("#", "data:")) for link in links)
    assert all(f'id="{link[1:]}"' in html for link in links if link.startswith("#"))
    assert "@import" not in html
    assert all(url.startswith("#") for url in re.findall(r"url\(\s*[\"']?([^)\"']*)", html))
    ids = seen.values("id")
    assert len(ids) == len(set(ids))
    assert "default-src 'none'" in next(
        v for t, k, v in seen.attributes if t == "meta" and k == "content" and "src" in v
    )
    assert seen.tags.count("h1") == 1
    assert len(html.encode()) < 1_500_000


def test_every_figure_has_its_words_and_its_table(html: str, document: dict[str, Any]) -> None:
    figures = [block for section in pages.sections_of(document) for block in section.blocks if hasattr(block, "svg")]
    drawn = [figure for figure in figures if figure.svg]
    names = {figure.name for figure in drawn}
    assert {"bars", "passes", "drift", "efficiency", "threads", "ladder-huge", "lines-A"} <= names
    for figure in drawn:
        root = ElementTree.fromstring(figure.svg)
        texts = {child.tag.rpartition("}")[2]: child.text for child in root}
        assert texts["title"] == figure.title
        assert texts["desc"] == figure.finding != ""
        assert figure.rows
        assert {len(row) for row in figure.rows} == {len(figure.heads)}
        assert root.findall(".//{http://www.w3.org/2000/svg}text")  # words are text, not outlines
    assert html.count("<figure>") == len(drawn)


def test_foreign_text_is_text_everywhere(html: str, document: dict[str, Any]) -> None:
    seen = Seen(html)
    assert "<script>alert(1)</script>" in seen.text
    assert "<script" not in html
    assert not set("\x1b\x00\u202e") & set(html)
    assert "{{7*7}}" in seen.text
    assert "$x^{2$" in seen.text
    for section in pages.sections_of(document):
        for block in section.blocks:
            if hasattr(block, "svg") and block.svg:
                tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(block.svg).iter()}
                assert "script" not in tags
                assert "foreignObject" not in tags


def test_the_same_data_make_the_same_bytes_and_the_folder_beside_makes_them_again(folder: Path, tmp_path: Path) -> None:
    runs = [folder / name for name in ("alpha", DELTA)]
    first, second, again = tmp_path / "one.html", tmp_path / "two.html", tmp_path / "three.html"
    for output in (first, second):
        make_report(runs, output, reference=folder / "reference.json")
    made = make_report([tmp_path / "one.data"], again)
    assert first.read_bytes() == second.read_bytes() == again.read_bytes()
    assert made["bytes"] == len(again.read_bytes())
    with pytest.raises(UsageError, match="fixed"):
        make_report([tmp_path / "one.data"], again, scenario="coding")


def test_csv_beside_the_report_holds_no_formula(folder: Path, tmp_path: Path) -> None:
    make_report([folder / DELTA], tmp_path / "r.html", reference=folder / "reference.json")
    files = sorted((tmp_path / "r.data").rglob("*.csv"))
    assert {"figures.csv", "hosts-1.csv", "bars.csv", "inputs.csv"} <= {file.name for file in files}
    cells = [cell for file in files for row in csv.reader(file.read_text().splitlines()) for cell in row]
    for cell in cells:
        assert not cell.startswith(("=", "+", "@", "\t", "\r"))
        assert not cell.startswith("-") or cell == "-" or float(cell) < 0
    assert f"'{FORMULA}" in cells
    lines = (tmp_path / "r.data" / "figures.csv").read_text().splitlines()
    row = next(row for row in csv.DictReader(lines) if row["kind"] == "headline")
    assert float(row["low"]) < float(row["value"]) < float(row["high"])


@pytest.mark.parametrize(
    ("cell", "written"),
    [("=1+1", "'=1+1"), ("-2", "'-2"), (-2.5, "-2.5"), (None, ""), ("-", "-"), ("  @x", "'  @x"), ("a\nb", "a\\nb")],
)
def test_guarded_cells(cell: object, written: str) -> None:
    assert guarded(cell) == written


def test_one_host_alone_is_told_against_the_reference(folder: Path) -> None:
    document = report_document([folder / "beta"], reference=folder / "reference.json")
    text = Seen(pages.page_of(document).html).text
    assert re.search(r"A is 0\.8[0-9]+ times the reference \(95 % CI 0\.8", text)
    assert document["pairs"] == []
    assert (document["answers"][0]["tiers"], document["answers"][0]["reason"]) == (
        [],
        "one candidate alone: nothing to order",
    )


def test_a_missing_scored_row_blanks_its_composites_by_name(tmp_path: Path) -> None:
    kept = [variant for variant in made_variants() if variant.key != "file_create@cores"]
    put(tmp_path / "a", made_run(16, seed=1, variants=kept, skipped=[Missing("file_create@cores", "EROFS")]))
    document = report_document([tmp_path / "a"], reference=reference_of(tmp_path))
    assert document["candidates"][0]["score"]["headline"]["per_core"]["value"] is None
    assert document["status"] == "NOT PUBLISHABLE"
    assert "file_create@cores" in rules(document, "R10")[0]["text"]
    text = Seen(pages.page_of(document).html).text
    assert "EROFS" in text


def test_runs_that_did_other_work_are_refused(tmp_path: Path) -> None:
    reference = reference_of(tmp_path)
    a = candidate(tmp_path / "a", 1)
    with pytest.raises(UsageError, match="suite 2, the reference of suite 1"):
        report_document([a, candidate(tmp_path / "b", 2, suite=2)], reference=reference)
    cores = candidate(tmp_path / "c", 3, divisor=Divisor(kind="physical_core", n=2))
    document = report_document([a, cores], reference=reference)
    assert document["status"] == "NOT COMPARABLE"
    start = "not every pair of candidates could be compared: A and B: R3, "
    assert document["answers"][0]["reason"].startswith(start)
    assert "per vcpu: the two are not compared" in document["answers"][0]["reason"]
    text = Seen(pages.page_of(document).html).text
    assert "A and B are not compared: R3, " in text
    assert "does more work than" not in text
    with pytest.raises(UsageError, match="is the same run as"):
        report_document([a, a], reference=reference)


def test_a_folder_of_many_hosts_is_a_fleet(tmp_path: Path) -> None:
    for at in range(9):
        model = "made CPU" if at < 6 else "other CPU"
        candidate(tmp_path / "fleet" / f"u{at}", 100 + at, 1 + at / 50, {"cpu_model": model}, passes=8)
    document = report_document([tmp_path / "fleet"], reference=reference_of(tmp_path))
    assert document["fleet"]
    assert document["pairs"] == []
    page = pages.page_of(document)
    strip = page.sections[0].blocks[0]
    assert strip.finding.startswith("6 of made CPU (per vcpu): ")  # type: ignore[union-attr]
    assert "U9" in Seen(page.html).text


KINDS = ("vcpu", "physical_core", "granted_cpu")


def test_points_per_one_and_per_another_are_units_apart(tmp_path: Path) -> None:
    for at in range(9):
        kind = Divisor(kind=KINDS[at % 3], n=2)
        candidate(tmp_path / "fleet" / f"u{at}", 100 + at, 1 + at % 3, passes=8, noise=0.01, divisor=kind)
    document = report_document([tmp_path / "fleet"], reference=reference_of(tmp_path))
    (units,) = [section for section in pages.sections_of(document) if section.name == "candidates"]
    strip, table = units.blocks[0], units.blocks[-1]
    assert isinstance(strip, Drawing)
    assert isinstance(table, Table)
    found = re.findall(r"3 of made CPU \(per (\w+)\): ([\d.]+) to ([\d.]+\d)", strip.finding)
    assert sorted(kind for kind, _, _ in found) == sorted(KINDS)
    assert all(float(high) < 1.1 * float(low) for _, low, high in found)
    assert strip.finding.endswith(" points per " + " or ".join(kind for kind, _, _ in found) + ".")
    assert {row[1] for row in strip.rows} == set(KINDS)
    texts = {element.text for element in ElementTree.fromstring(strip.svg).iter()}
    assert {f"made CPU (per {kind})" for kind in KINDS} <= texts
    places = [table.heads.index(head) for head in ("unit", "counted per", "watts of")]
    assert {tuple(row[at] for at in places) for row in table.rows} == {
        (one["label"], one["score"]["divisor"]["kind"], "-") for one in document["candidates"]
    }
    two = [one for one in document["candidates"] if one["score"]["divisor"]["kind"] != "vcpu"][:2]
    assert len({one["score"]["divisor"]["kind"] for one in two}) == 2
    assert fleet(two).svg == ""  # one of each: no units of one model


def test_data_of_somebody_else_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    for document, told in (
        ({"schema": "cpubench.run/1"}, "is no data of a report"),
        ({"schema": "cpubench.report/1", "sha256": "0" * 64}, "sha256"),
        (sealed({"schema": "cpubench.report/1", "fleet": False, "candidates": []}), "does not have the shape"),
    ):
        file.write_text(json.dumps(document))
        assert main(["report", str(file), "-o", str(tmp_path / "x.html")]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "x.html")]) == 2
    assert "pip install 'cpubench[report]'" in capsys.readouterr().err


def test_the_command_writes_page_and_data(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "r.html"
    given = ["report", str(folder / "beta"), "-o", str(output), "--reference", str(folder / "reference.json")]
    assert main([*given, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["file"], made["data"], made["status"]) == (str(output), str(tmp_path / "r.data"), "VALID WITH NOTES")
    assert main([*given, "--allow", "R3"]) == 2
    assert "cannot be allowed" in capsys.readouterr().err
    (tmp_path / "q.data").mkdir()
    (tmp_path / "q.data" / "mine.txt").write_text("keep")
    assert main(["report", str(folder / "beta"), "-o", str(tmp_path / "q.html"), "--reference", given[-1]]) == 2
    assert "no data of a report" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "q.data").iterdir()] == ["mine.txt"]
    letter = pages.page_of(report_document([folder / "beta"], reference=folder / "reference.json"), "letter")
    assert "size: letter" in letter.html


def test_the_time_of_a_page_grows_with_its_candidates_and_not_faster(folder: Path, document: dict[str, Any]) -> None:
    one = report_document([folder / "gamma"], reference=folder / "reference.json")
    pages.page_of(one)  # imports

    def seconds(doc: dict[str, Any]) -> float:
        start = time.process_time()
        pages.page_of(doc)
        return time.process_time() - start

    assert min(seconds(document) for _ in range(3)) < 6 * min(seconds(one) for _ in range(3))


def test_physical_cores_make_a_claim_on_hardware_and_vcpus_do_not(tmp_path: Path) -> None:
    reference = reference_of(tmp_path)
    cores = report_document(
        [candidate(tmp_path / "a", 1, divisor=Divisor(kind="physical_core", n=2))], reference=reference
    )
    assert rules(cores, "R6") == []
    stolen = candidate(tmp_path / "b", 2, divisor=Divisor(kind="physical_core", n=2),
                       environment=lambda index: made_environment(steal_ns=10**8))  # fmt: skip
    (rule,) = rules(report_document([stolen], reference=reference), "R6")
    assert rule["text"].startswith("virtualised (stolen time): not a hardware claim")


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
def test_with_signers_every_run_must_be_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    reference, run, key = reference_of(tmp_path), candidate(tmp_path / "a", 1), tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"lab@example {key.with_name('key.pub').read_text()}")
    with pytest.raises(UsageError, match="is not signed"):
        report_document([run], reference=reference, signers=signers)
    sign(run / "run.json", key)
    document = report_document([run], reference=reference, signers=signers)
    assert document["candidates"][0]["runs"][0]["signer"] == "lab@example"
    assert rules(document, "R14") == []
    assert "lab@example" in Seen(pages.page_of(document).html).text
