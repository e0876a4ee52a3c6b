"""Comparing files: which runs are meant, each loaded and reduced in turn, and what ``--fail-on`` asks."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpubench.analysis.compare import compare
from cpubench.analysis.members import Member, member
from cpubench.analysis.reference import load_reference
from cpubench.analysis.scenarios import Scenario, load_scenarios, pick
from cpubench.errors import UsageError
from cpubench.report.output import as_text
from cpubench.results.gather import run_files
from cpubench.results.load import load_run
from cpubench.results.parse import located, shown

Json = dict[str, Any]


def compared(paths: Sequence[Path], fail_on: str | None, scenario: str, reference: Path | None) -> Json:
    """The comparison of two runs or folders of runs, of the sides of one ``run --ab``, or of the runs of two hosts."""
    band = None if fail_on is None else fail_band(fail_on)
    scale, weights = load_reference(reference), pick(load_scenarios(), scenario)
    groups = [[_member(file, scale, weights) for file in run_files(path)] for path in paths]
    return compare(groups, scale, weights, band)


def tell(document: Json, json_: bool, markdown: bool) -> int:
    """The exit code, after printing the document in one form: 1 where ``--fail-on`` found B slower."""
    if json_ and markdown:
        raise UsageError("usage", "stdout holds one document: --json or --markdown", "--markdown")
    if json_:
        print(as_text(document))
    elif markdown:
        from cpubench.report.markdown import as_markdown

        print(as_markdown(document), end="")
    else:
        from cpubench.report.comparison import show_comparison

        show_comparison(document, sys.stdout)
    slower = document.get("slower", [])
    every = [*document["rows"], *(row for level in document["levels"] for row in level["rows"])]
    absent = sum(row["scored"] and row["verdict"] == "not compared" for row in every)
    if "slower" in document and any(one["code"] == "cap" for one in document["refused"]):
        print("cpubench: not every cap level is compared, whether B is slower there is not known", file=sys.stderr)
    if "slower" in document and absent:  # a gate must not pass in silence because a row is missing
        print(
            f"cpubench: {absent} scored rows are not compared, whether B is slower there is not known", file=sys.stderr
        )
    floor = document["floor_percent"]
    if "slower" in document and floor is not None and floor >= document["fail_band_percent"]:
        text = f"the A/A floor of these runs is {floor:.2g} %: what B is slower in by less cannot be told"
        print(f"cpubench: {text}", file=sys.stderr)
    if slower:
        more = f" and {len(slower) - 4} more" if len(slower) > 4 else ""
        print(f"cpubench: B is slower: {', '.join(slower[:4])}{more}", file=sys.stderr)
        if document["scope"] != "runs" and not document["pairing"]:  # by simulation: docs/coverage.md
            text = "with fewer than three runs a side, identical hosts fail this in up to 15 % of comparisons"
            print(f"cpubench: {text}", file=sys.stderr)
    return 1 if slower else 0


def fail_band(text: str) -> float:
    """0.03 of ``slower:3%``; 0 of ``slower``, which is then any difference that is called one."""
    match = re.fullmatch(r"slower(?::(\d{1,3}(?:\.\d{1,6})?) ?%)?", text)
    if match is None:
        raise UsageError("usage", f"'{shown(text, 40)}' is neither 'slower' nor like 'slower:3%'", "--fail-on")
    return float(match[1] or 0) / 100


def _member(file: Path, reference: Json, scenario: Scenario) -> Member:
    run = load_run(file)
    try:
        return member(run, shown(str(file.parent), 120), reference, scenario)
    except UsageError as fault:
        raise located(file, fault) from None
