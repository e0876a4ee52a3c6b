"""``cpubench fleet collect`` and ``report``: what reads the results of many hosts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from cpubench.cli import FOLDER, WEIGHTS, as_json, emit

scored_by = (
    click.option("--scenario", default="equal", show_default=True, metavar="S", help=WEIGHTS),
    click.option("--reference", type=FOLDER, help="Another reference file."),
)


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--full", is_flag=True, help="Validate each run in full, as `cpubench validate` does; known ones too.")
@scored_by[0]
@scored_by[1]
@as_json
def collect(folder: Path, full: bool, scenario: str, reference: Path | None, json_: bool) -> int:
    """Check and index the results in RESULTS/<fleet>: what is there, missing, failed or changed; exit 1 if any is bad.

    Every packed file is held to its sum, and a new one to its seal. DIR/index.sqlite may be deleted at any time.
    """
    from cpubench.fleet.collect import rules_of
    from cpubench.fleet.results import collect as collected

    validate: Callable[[Path], object] | None = None
    if full:
        from cpubench.recheck import validated  # it needs the rooms that measure

        validate = validated
    document = collected(folder, rules_of(reference, scenario, validate))
    if json_:
        emit(document)
    else:
        from cpubench.report.fleet import show_fleet

        show_fleet(document, sys.stdout)
    return 1 if document["bad"] else 0


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-o", "--output", required=True, type=FOLDER, help="File to write; - for stdout, without its data.")
@scored_by[0]
@scored_by[1]
@click.option("--paper", type=click.Choice(["a4", "letter"]), default="a4", show_default=True, help="Size in print.")
@as_json
def report(folder: Path, output: Path, scenario: str, reference: Path | None, paper: str, json_: bool) -> None:
    """Make one HTML file of RESULTS/<fleet>: units against their models, odd ones, tiers, and what failed."""
    from cpubench.vendor_fleet import make_fleet_report, tell

    tell(make_fleet_report(folder, output, scenario, reference, paper, json_), json_)
