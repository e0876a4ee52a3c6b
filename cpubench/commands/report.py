"""``cpubench report``: the file that a buyer reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cpubench.cli import FOLDER, WEIGHTS, as_json, emit
from cpubench.errors import UsageError


@click.command()
@click.argument("runs", metavar="RUN..", type=FOLDER, nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=FOLDER, help="File to write; - for stdout, without its data.")
@click.option("--prices", type=FOLDER, help="TOML file of what candidates cost, for points per money and per month.")
@click.option("--under", metavar="LEVEL", help="Cap level, such as 250W, that page one answers for.  [default: all]")
@click.option("--tasks", metavar="[LABEL=]RUN", multiple=True, help="A run of tasks that is not in a RUN's folder.")
@click.option("--scenario", metavar="S", help=f"{WEIGHTS}  [default: equal]")
@click.option("--reference", type=FOLDER, help="Another reference file.")
@click.option("--allow", metavar="RULE", multiple=True, help="Show what a rule refuses, under a banner: R13.")
@click.option("--signers", type=FOLDER, help="Refuse runs that nobody in this file of allowed signers signed.")
@click.option("--paper", type=click.Choice(["a4", "letter"]), default="a4", show_default=True, help="Size in print.")
@as_json
def command(
    runs: Sequence[Path], output: Path, prices: Path | None, under: str | None, tasks: Sequence[str],
    scenario: str | None, reference: Path | None, allow: Sequence[str], signers: Path | None, paper: str, json_: bool,
) -> None:  # fmt: skip
    """Make one HTML file of one to eight candidates: each RUN is a run folder, or a folder of one candidate's runs.

    Its data are in a folder beside it; given that folder, the same file is made again. A fleet's folder of results
    makes the page of its units.
    """
    from cpubench import vendor_fleet
    from cpubench.results.parse import shown
    from cpubench.vendor import make_report

    if len(runs) == 1 and vendor_fleet.is_fleet(runs[0]):
        if prices or allow or signers or under or tasks:
            text = "a fleet's page knows no --prices, --allow, --signers, --under and --tasks"
            raise UsageError("usage", text, str(runs[0]))
        page = vendor_fleet.make_fleet_report(runs[0], output, scenario or "equal", reference, paper, json_)
        vendor_fleet.tell(page, json_)
        return
    made = make_report(runs, output, scenario, reference, prices, allow, signers, paper, json_, under, tasks)
    if json_:
        emit(made)
    elif str(output) != "-":
        file, data = (shown(made[name], 4096) for name in ("file", "data"))
        click.echo(f"{file}: {made['status']}, {made['bytes'] / 1e6:.2f} MB; data in {data}")
