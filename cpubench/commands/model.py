"""``cpubench model``: what a faster CPU is worth, from a run of tasks and from what its user knows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from cpubench.cli import FOLDER, as_json, emit
from cpubench.errors import UsageError

with_runs = click.argument("runs", metavar="[RUN]..", type=FOLDER, nargs=-1)
with_inputs = click.option("--inputs", required=True, type=FOLDER, metavar="FILE",
                           help="TOML file of what a run cannot know; `model inputs` prints one.")  # fmt: skip


@click.group()
def command() -> None:
    """What a faster CPU is worth: GPU time, cost of a finished task, tasks per rack.

    RUN is a folder of `cpubench tasks run`; what the inputs do not give is taken from there.
    """


@command.command()
@with_runs
@with_inputs
@as_json
def stall(runs: Sequence[Path], inputs: Path, json_: bool) -> None:
    """How long GPUs wait for tools, how many cores feed one, and what more speed gains."""
    _tell("stall", runs, inputs, json_)


@command.command()
@with_runs
@with_inputs
@as_json
def cost(runs: Sequence[Path], inputs: Path, json_: bool) -> None:
    """Money per completed task, and the price that a faster CPU may have."""
    _tell("cost", runs, inputs, json_)


@command.command()
@with_runs
@with_inputs
@as_json
def rack(runs: Sequence[Path], inputs: Path, json_: bool) -> None:
    """Tasks per hour of a rack under its power limit, node against node."""
    _tell("rack", runs, inputs, json_)


@command.command()
@as_json
def inputs(json_: bool) -> None:
    """Print a file of inputs with all keys, to be changed."""
    text = (Path(__file__).parent.parent / "data" / "model-inputs.toml").read_text()
    if json_:
        emit({"toml": text})
    else:
        click.echo(text, nl=False)


def _tell(name: str, runs: Sequence[Path], inputs: Path, json_: bool) -> None:
    from cpubench.analysis.model_inputs import model
    from cpubench.analysis.task_levels import run_name
    from cpubench.analysis.tasks import tasks_document
    from cpubench.report.models import show_model
    from cpubench.results.inputs import load_inputs
    from cpubench.results.load_tasks import load_tasks
    from cpubench.results.parse import located

    given = load_inputs(inputs)
    documents = [(path, tasks_document(load_tasks(path))) for path in runs]
    measured = [(run_name(path, document), document) for path, document in documents]
    try:
        document = model(name, given, measured)
    except UsageError as fault:
        raise located(inputs, fault) if fault.code == "inputs" else fault from None
    if json_:
        emit(document)
    else:
        show_model(document, sys.stdout)
