"""The data beside a report: its document, tables as CSV that no spreadsheet runs, and figures as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.report.html.blocks import Section, Table, plain
from cpubench.report.html.figures.draw import Drawing
from cpubench.results.files import write_atomic
from cpubench.results.parse import located, shown
from cpubench.results.states import under_cap

Json = Mapping[str, Any]
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes a cell for a formula that begins so
DATA = "report.json"


def guarded(cell: object) -> str:
    """A cell as text on one line that no spreadsheet takes for a formula; numbers and a lone dash stay as they are."""
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return repr(cell)
    text = "" if cell is None else shown(str(cell), 2000)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) and text != "-" else text


def as_csv(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([guarded(head) for head in heads])
    writer.writerows([[guarded(cell) for cell in row] for row in rows])
    return out.getvalue()


def figures_csv(doc: Json, tests: bool = True) -> str:
    """Every figure of every candidate with all its digits, one a line; without ``tests`` none of single rows."""
    heads = ["candidate", "kind", "name", "copies", "measure", "value", "low", "high", "passes", "reason", "flags"]
    rows: list[list[object]] = []

    def add(*place: object, made: Json, flags: str = "") -> None:
        rows.append([*place, *(made[key] for key in ("value", "low", "high", "passes", "reason")), flags])

    for one in doc["candidates"]:
        score = one["score"]
        for measure, made in score["headline"].items():
            add(one["label"], "headline", "", "", measure, made=made)
        for family, measures in score["families"].items():
            for measure, made in measures.items():
                add(one["label"], "family", family, "", measure, made=made)
        _add_tests(add, one["label"], score["variants"] if tests else [], "test", "")
        for row in one["power"]["levels"] if one["power"] is not None else ():
            level = row["level"]
            for measure in ("watts", "per_core", "per_watt", "per_watt_net"):
                add(one["label"], "level", level, "", measure, made=row[measure])
            for family, measures in row["families"].items():
                for measure in ("per_core", "per_watt"):
                    add(one["label"], "family at level", f"{family} at {level}", "", measure, made=measures[measure])
            _add_tests(add, one["label"], row["variants"] if tests else [], "test at level", f" at {level}")
        for whole, row in ((newest, row) for newest in one["tasks"][-1:] for row in newest["tasks"]):
            under = f" at {whole['cap']['level']}" if under_cap(whole) else ""
            for measure in ("tasks_per_hour", "core_seconds_per_task"):
                add(one["label"], "task", row["task"] + under, row["agents"], measure, made=row[measure])
            for phase, made in row["phases"].items():
                name = f"{row['task']}{under}: {phase}"
                add(one["label"], "phase", name, row["agents"], "wall_s", made=made["wall_s"])
    return as_csv(heads, rows)


def _add_tests(add: Callable[..., None], label: str, rows: Sequence[Json], kind: str, where: str) -> None:
    for row in rows:
        for measure in ("ns_per_op", "ops_per_s", "joules_per_op"):
            if measure in row:
                add(label, kind, f"{row['name']}{where}", row["copies"], measure, made=row[measure],
                    flags=" ".join(row["flags"]))  # fmt: skip


def json_bytes(doc: Json) -> bytes:
    return json.dumps(doc, indent=1, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def write_data(folder: Path, doc: Json, sections: Sequence[Section]) -> None:
    """Nothing; the folder holds the data of a report, and nothing that an older one left there."""
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / DATA).is_file():
            raise located(folder, UsageError("write", f"is there and no data of a report: it holds no {DATA}"))
        for kind, ending in (("tables", "csv"), ("figures", "svg")):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            for old in (folder / kind).glob(f"*.{ending}"):
                old.unlink()
        for block in (block for section in sections for block in section.blocks):
            if isinstance(block, Table):
                text = as_csv(
                    [head.removeprefix(">") for head in block.heads], [list(map(plain, r)) for r in block.rows]
                )
                write_atomic(folder / "tables" / f"{block.name}.csv", text.encode())
            elif isinstance(block, Drawing) and block.svg:
                write_atomic(folder / "figures" / f"{block.name}.svg", block.svg.encode())
                text = as_csv([head.removeprefix(">") for head in block.heads], block.rows)
                write_atomic(folder / "figures" / f"{block.name}.csv", text.encode())
        write_atomic(folder / "figures.csv", figures_csv(doc).encode())
        write_atomic(folder / DATA, json_bytes(doc))
    except OSError as error:
        raise located(folder, UsageError("write", f"cannot be written: {error.strerror}")) from None
