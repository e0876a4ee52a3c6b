"""The report in a real browser: quiet, of one file, as wide as the screen, accessible, and whole in print.

Needs Chromium (Debian's package) and Playwright; without either, skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made_reports import EVIL, EVIL_NAME, capped, reference_of, tasks_of, watt_variants

from cpubench.vendor import make_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed (apt-get install chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

WIDTHS = (1280, 390)
SECONDS = 30


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three candidates with watts, caps and tasks, of whom one drew more than a cap, and one full of hostile text."""
    root = tmp_path_factory.mktemp("browser")
    runs = [capped(root / f"run{at}", at + 1, 1 + at / 10, states={"150W": "over_cap"} if at == 2 else {})
            for at in range(3)]  # fmt: skip
    for at, run in enumerate(runs, 1):
        tasks_of(run, f"host{at}", 1 + at / 10)
    evil = {"hostname": EVIL, "cpu_model": EVIL, "virtual": True}
    power = {"scope": EVIL_NAME[:60], "meter": EVIL_NAME[:60], "problem": EVIL, "cap_scope": "package"}
    runs.append(
        capped(
            root / "evil",
            9,
            host=evil,
            power=power,
            caps={"as-is": (1, 1), "200W": (1.3, 0.6), EVIL_NAME[:40]: (1.2, 0.7)},
        )
    )
    tasks_of(runs[-1], "host9", fields={"notes": [EVIL], "missing": {EVIL: EVIL}})
    make_report(runs, root / "report.html", reference=reference_of(root, watt_variants()))
    return root / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's own refuses to run as root
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox, timeout=1000 * SECONDS)
        yield opened
        opened.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_says_nothing_asks_for_nothing_and_does_not_scroll_sideways(
    browser: Any, report: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert (said, asked) == ([], [report.as_uri()])
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.close()


def test_headings_tables_and_figures_are_reachable(browser: Any, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    assert page.get_by_role("heading", level=1).count() == 1
    levels = [int(name[1]) for name in page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(e => e.tagName)")]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.get_by_role("img", name="Per core, relative to the reference").count() == 1
    assert page.get_by_role("table", name="Pairs: ratio of rates, and its word").count() == 1
    assert page.get_by_role("table", name="Which candidate does most").count() == 1
    assert page.get_by_role("img", name="Per core against per watt (watts of package").count() == 1
    assert page.get_by_role("img", name="Where the time of a task goes, T1").count() == 1
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    # Text of figures is text: it can be searched.
    assert page.locator("svg text", has_text="times the reference made").count() == 1
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_serious(browser: Any, report: Path, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": 900})  # axe is a script
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = axe.Axe().run(page).response["violations"]
    grave = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in ("serious", "critical")]
    assert grave == []
    context.close()


def test_in_print_everything_is_there_and_the_summary_is_one_page(browser: Any, report: Path) -> None:
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (apt-get install poppler-utils)")
    page = browser.new_page()
    page.goto(report.as_uri())
    file = report.with_suffix(".pdf")
    page.pdf(path=str(file), prefer_css_page_size=True)
    page.close()
    done = subprocess.run(
        ["pdftotext", "-layout", file, "-"], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    sheets = done.stdout.removesuffix("\f").split("\f")
    assert "Not claimed" in sheets[0]
    assert "Candidates side by side" in sheets[1]
    assert all(f"{at} / {len(sheets)}" in sheet for at, sheet in enumerate(sheets, 1))
    assert all("cpubench report " in sheet for sheet in sheets)
    whole = " ".join(done.stdout.split())
    assert "Cap levels: work, watts, and work per watt" in whole
    assert "tests at cap levels, time and energy of one operation" in whole
    assert "Points of the passes, as numbers" in whole  # what is folded on the screen
    assert "shown tests" in whole
    # No heading is torn from what it heads: none is the last line of a page.
    titles = page_titles(report)
    for sheet in sheets:
        lines = [line.strip() for line in sheet.splitlines() if line.strip() and " / " not in line]
        assert lines[-1] not in titles


def test_a_buyer_finds_the_answers_on_the_first_printed_page(browser: Any, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 1000})  # an A4 page inside its margins, in CSS pixels
    cells = page.locator("#summary .answers tbody tr").all_inner_texts()
    assert [text.split("\t")[0].strip() for text in cells][:5] == [
        "per core", "speed of one copy", "per watt", "per core under 200W", "per watt under 200W"
    ]  # fmt: skip
    assert page.evaluate(
        "document.querySelector('.answers').scrollWidth <= document.querySelector('.answers').clientWidth"
    )
    page.close()


def test_a_grey_print_tells_candidates_and_phases_apart(report: Path) -> None:
    """Lines have dashes of their own and bars hatches of their own: no two are told apart by colour alone."""
    figures = report.with_suffix(".data") / "figures"
    for name, least in (("power-curve", 2), ("drift", 3)):
        dashes = re.findall(r"stroke-dasharray: ([\d., ]+)", (figures / f"{name}.svg").read_text())
        assert len(set(dashes)) >= least
    for name, least in (("bars", 3), ("phases-T1", 7)):
        assert len(set(re.findall(r"fill: url\(#([^)]+)\)", (figures / f"{name}.svg").read_text()))) >= least


def page_titles(report: Path) -> set[str]:
    """The headings of the sections, as they are in the file."""
    return set(re.findall(r'<h2 id="h-[^"]*">([^<]*)</h2>', report.read_text()))
