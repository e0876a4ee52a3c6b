"""The report of a fleet: its folder collected, as one page and its data beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.fleet.collect import rules_of
from cpubench.fleet.results import collect
from cpubench.report.html.fleet import fleet_page
from cpubench.report.html.page import need_extra
from cpubench.report.output import as_text, check_output, write_output
from cpubench.results.load import check_no_fleet
from cpubench.results.parse import shown

Json = dict[str, Any]


def is_fleet(path: Path) -> bool:
    """Whether a path is the folder of a fleet's results."""
    try:
        check_no_fleet(path)
    except (OSError, ValueError):  # other commands tell what is wrong with it
        return False
    except UsageError:
        return True
    return False


def make_fleet_report(
    fleet: Path, output: Path, scenario: str = "equal", reference: Path | None = None, paper: str = "a4",
    json_: bool = False,
) -> Json:  # fmt: skip
    """What was made, after writing the page, and its document beside it as ``.data.json``."""
    need_extra()
    check_output(output, json_)
    document = collect(fleet, rules_of(reference, scenario))
    del document["collected"]
    page = fleet_page(document, paper)
    write_output(output, page)
    data = None if str(output) == "-" else output.with_name(f"{output.stem}.data.json")
    if data is not None:
        write_output(data, as_text(document) + "\n")
    return {"file": str(output), "data": None if data is None else str(data), "sha256": document["sha256"],
            "bytes": len(page.encode()), "counts": document["counts"]}  # fmt: skip


def tell(made: Json, json_: bool) -> None:
    """Prints what was made."""
    if json_:
        print(as_text(made))
    elif made["file"] != "-":
        counts = made["counts"]
        told = f"{counts['results']} results, {counts['bad']} bad, {counts['failed']} failed"
        data = shown(str(made["data"]), 4096)
        print(f"{shown(made['file'], 4096)}: {told}, {made['bytes'] / 1e6:.2f} MB; data in {data}")
