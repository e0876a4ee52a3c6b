"""The page of a report document: a pure function of it, without a clock, so that the same data make the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.report.html import candidates, evidence, power, tasks
from cpubench.report.html.blocks import Cell, Section, Table, Text
from cpubench.report.html.figures.draw import Drawing
from cpubench.report.html.sidecar import figures_csv
from cpubench.report.html.summary import summary
from cpubench.results.check import check_seal
from cpubench.results.parse import located, parse, read, shown

Json = Mapping[str, Any]
TEMPLATES = Path(__file__).with_name("templates")
SCHEMA = "cpubench.report/1"
LONGEST = 2000  # characters of one text on the page
PAPERS = {"a4": "A4", "letter": "letter"}
MARKS = {"VALID": "✓", "VALID WITH NOTES": "✓", "NOT PUBLISHABLE": "!", "NOT COMPARABLE": "✕"}


@dataclass(frozen=True)
class Page:
    html: str
    sections: list[Section]


def can_report() -> bool:
    """Whether the libraries of the extra are installed."""
    return not _missing()


def _missing() -> list[str]:
    return [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]


def need_extra() -> None:
    """UsageError with the way out where the libraries of the extra are not installed."""
    missing = _missing()
    if missing:
        raise UsageError("extra", f"a report needs {' and '.join(missing)}: pip install 'cpubench[report]'")


def load_report(path: Path) -> dict[str, Any]:
    """The document of a ``report.json``, which must be as it was sealed."""
    try:
        document = parse(read(path))
        if document.get("schema") != SCHEMA:
            raise UsageError("schema", f"is no data of a report: its schema is not {SCHEMA}")
        check_seal(document)
    except UsageError as fault:
        raise located(path, fault) from None
    return document


def sections_of(doc: Json) -> list[Section]:
    """The sections after the summary; of a fleet those that a unit has a line in."""
    if doc["fleet"]:
        made = [candidates.units, evidence.quality, evidence.price, evidence.method, evidence.sources]
    else:
        made = [candidates.hosts, candidates.scores, candidates.tests, power.power, evidence.scaling,
                evidence.memory, tasks.tasks, evidence.quality, evidence.price, evidence.method,
                evidence.sources]  # fmt: skip
    return [section(doc) for section in made]


def page_of(doc: Json, paper: str = "a4") -> Page:
    """The page; UsageError where a document that was sealed by somebody else has not the shape of ours."""
    need_extra()
    try:
        sections = sections_of(doc)
        return Page(_html(doc, sections, paper), sections)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration) as error:
        text = f"does not have the shape of a report's data: {shown(repr(error), 120)}"
        raise UsageError("report", text) from error


def _html(doc: Json, sections: list[Section], paper: str) -> str:
    from markupsafe import Markup

    short = str(doc["sha256"])[:12]
    banner = f"shown on request: {', '.join(doc['allowed'])}" if doc["allowed"] else ""
    html: str = environment().get_template("report.html").render(
        doc=doc, summary=summary(doc), sections=sections, short=short, banner=banner, mark=MARKS[doc["status"]],
        css=style_sheet(), svg=Markup, paper=PAPERS[paper], thin={">n": "n x", "badges": "b x"},
        raw=figures_csv(doc, tests=not doc["fleet"]).splitlines(),
    )  # fmt: skip
    return html


def style_sheet() -> Any:
    """The style sheet of all pages, as it may stand in them."""
    from markupsafe import Markup

    return Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))


def environment() -> Any:
    """What fills the templates in: every text on a page is foreign but what is made of our own files, so it is escaped,
    and nothing of control or bidi characters is left in it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def safe(value: Any) -> Any:
        return shown(value, LONGEST) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=safe, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.tests |= {
        "table": lambda block: isinstance(block, Table),
        "text": lambda block: isinstance(block, Text),
        "drawing": lambda block: isinstance(block, Drawing),
        "marked": lambda cell: isinstance(cell, Cell),
    }
    return made
