"""Prints, for runs of one host one after the other, the tables of docs/validation.md and docs/coverage.md: the scores
with their coefficient of variation, and each run compared with the one before it.

``python tests/in_a_row.py RUN RUN ..``
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cpubench.analysis.compare import compare
from cpubench.analysis.members import member
from cpubench.analysis.reference import load_reference
from cpubench.analysis.scenarios import load_scenarios, pick
from cpubench.analysis.score import score
from cpubench.results.load import load_run

CALLED = ("faster", "slower")


def main(folders: list[Path]) -> None:
    reference, equal = load_reference(), pick(load_scenarios(), "equal")
    documents, members = [], []
    for folder in folders:
        run = load_run(folder)
        documents.append(score(run, reference))
        members.append(member(run, folder.name, reference, equal))
    print(f"| | {' | '.join(map(str, range(1, len(folders) + 1)))} | CV |\n|---|{'--:|' * (len(folders) + 1)}")
    for name in ("headline", *documents[0]["families"]):
        for measure in ("per_core", "speed"):
            parts = [d["headline"] if name == "headline" else d["families"][name] for d in documents]
            row(name, measure, [part[measure] for part in parts])
    print("\n| B, A | ratio of headlines | CI | verdict | speed | families called different | rows called different |")
    print("|---|--:|---|---|---|---|---|")
    wrong = 0
    for before, after in pairwise(members):
        found = compare([[before], [after]], reference, equal)
        head = found["headline"]["per_core"]
        wrong += head["verdict"] in CALLED
        ends = f"{head['ratio']['low']:.3f} to {head['ratio']['high']:.3f}"
        families = [f for f, one in found["families"].items() if one["per_core"]["verdict"] in CALLED]
        rows = sum(one["verdict"] in CALLED for one in found["rows"])
        words = f"{head['verdict']} | {found['headline']['speed']['verdict']}"
        which = f"{', '.join(families) or '-'} | {rows} of {len(found['rows'])}"
        print(f"| {after.where}, {before.where} | {head['ratio']['value']:.3f} | {ends} | {words} | {which} |")
    print(f"\n{wrong} of {len(members) - 1} headlines called different")


def row(name: str, measure: str, made: list[dict[str, Any]]) -> None:
    values = [one["value"] for one in made]
    if None not in values and len(values) > 1:
        shown = " | ".join(f"{value:.0f}" for value in values)
        what = name if measure == "per_core" else f"{name}, speed"
        print(f"| {what} | {shown} | {100 * stdev(values) / fmean(values):.1f} % |")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
