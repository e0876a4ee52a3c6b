"""Scores as Markdown for pasting: the headline, families, cap levels, notes and the order of several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpubench.report.markdown import plain, table
from cpubench.report.ranking import MANY, RULE, by_pair, in_order
from cpubench.report.terminal import MEASURES, REASONS, floor_line, notes_of, points, spread
from cpubench.report.watts import level_cells, meter_line, said_of
from cpubench.results.parse import shown

Json = Mapping[str, Any]


def score_as_markdown(doc: Json, names: Sequence[str]) -> str:
    """The score document of a run, or those of several runs by their names, as GitHub's Markdown."""
    runs = doc.get("runs", [doc])
    parts: list[str] = []
    for at, one in enumerate(runs):
        parts += _one(one, names[at] if len(runs) > 1 else "") if "headline" in one else []  # tasks without a run
        parts += _of_tasks(one["task_score"]) if "task_score" in one else []
    if len(runs) > 1:
        order = by_pair(doc["ranks"]) if len(runs) <= MANY else in_order(doc)
        parts += ["**Order per core**", _list([f"{name.strip()}: {text}" for name, text in order]), plain(RULE)]
    if "task_ranks" in doc:
        order = by_pair(doc["task_ranks"])
        parts += ["**Order of the task scores**", _list([f"{name.strip()}: {text}" for name, text in order])]
    return "\n\n".join(filter(None, parts)) + "\n"


def _one(doc: Json, name: str) -> list[str]:
    kind, cores = doc["divisor"]["kind"], doc["divisor"]["n"]
    known = (doc["host"].get(key) for key in ("hostname", "cpu_model"))
    host = ", ".join(shown(text, 40) for text in known if isinstance(text, str))
    facts = [f"{host or 'unknown host'}: suite {doc['suite']}, {cores:g} x {kind}, scenario {doc['scenario']}",
             f"1000 points = reference {doc['reference']}; intervals are of 95 %", floor_line(doc)]  # fmt: skip
    facts += [] if doc["publishable"] else ["NOT PUBLISHABLE: see the notes"]
    keys = [key for key in MEASURES if key in doc["headline"]]
    head = [[MEASURES[key], *_figure(doc["headline"][key])] for key in keys]
    within = [key for key in MEASURES if key != "equal_weights"]
    families = [[family, *(f"{points(row[key]['value'])}{spread(row[key])}" for key in within)]
                for family, row in doc["families"].items()]  # fmt: skip
    missing = {
        f"{MEASURES[key]}: {REASONS.get(doc['headline'][key]['reason'], doc['headline'][key]['reason'])}"
        for key in keys
        if doc["headline"][key]["value"] is None
    }
    made = [f"**{plain(name)}**" if name else "", _list(facts)]
    made += [table(["", ">points", ">95 % interval", ">passes"], head), _list(sorted(missing))]
    made.append(table(["family", *(f">{MEASURES[key]}" for key in within)], families))
    if doc["power"] is not None:
        heads, rows = level_cells(doc["power"])
        said = [f"{name}: {text}" for name, text in said_of(doc["power"])]
        made += [f"**Watts and cap levels**: {plain(meter_line(doc['power']))}", table(heads, rows), _list(said)]
    notes = [f"{code.strip()}: {text}" for code, text in notes_of(doc["notes"])]
    return [*made, "**Notes**" if notes else "", _list(notes)]


def _of_tasks(doc: Json) -> list[str]:
    """The task score, and each task's; or why there is none."""
    made = doc["score"]
    if not doc["tasks"]:
        return [_list([f"task score: - ({made['reason']})"])]
    rows = [[row["task"], "-" if row["weight"] is None else f"{row['weight']:.3g}", *_figure(row["score"])[:2]]
            for row in doc["tasks"]]  # fmt: skip
    told = (
        f"scenario {doc['scenario']}, 1000 points = tasks of {doc['reference']}: {points(made['value'])}{spread(made)}"
    )
    missing = [f"{row['task']}: {row['score']['reason']}" for row in doc["tasks"] if row["score"]["value"] is None]
    missing += [f"task score: {made['reason']}"] if made["value"] is None else []
    return [f"**Task score**: {plain(told)}", table(["task", ">weight", ">points", ">95 % interval"], rows),
            _list([*missing, *doc["notes"]])]  # fmt: skip


def _figure(made: Json) -> list[str]:
    ends = "-" if made["low"] is None else f"{points(made['low'])} .. {points(made['high'])}"
    return [points(made["value"]), ends, "-" if made["value"] is None else str(made["passes"])]


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {plain(text)}" for text in texts)
