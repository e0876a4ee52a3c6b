"""``cpubench fleet``: many hosts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpubench.cli import FOLDER, LEVELS, as_json, emit, native
from cpubench.fleet_commands import collect, report

UNRETURNED = 70  # a limit was not given back, as after `cpubench run`
folder_of = click.argument("folder", metavar="DIR", type=FOLDER)
results_of = click.option("--results", type=FOLDER, default="results", show_default=True, metavar="RESULTS",
                          help="Results of DIR are in RESULTS/<name of DIR>.")  # fmt: skip


@click.group()
def command() -> None:
    """Many hosts: Ansible drives them, their results make one table."""


command.add_command(collect)
command.add_command(report)


@command.command()
@folder_of
@as_json
def init(folder: Path, json_: bool) -> None:
    """Make DIR, with an inventory to edit and the playbook."""
    from cpubench.fleet.template import init as write

    files = write(folder)
    if json_:
        emit({"folder": str(folder), "files": files})
    else:
        click.echo(
            f"{len(files)} files written; edit {folder}/inventory.yml, then `cpubench fleet wheelhouse {folder}`"
        )


@command.command()
@folder_of
@click.option("--python", "pythons", multiple=True, metavar="3.N", help="Of the hosts.  [default: this one's]")
@click.option("--arch", "archs", multiple=True, type=click.Choice(["x86_64", "aarch64"]), help="Of the hosts.")
@click.option("--source", metavar="PATH", help="Checkout, sdist or requirement.  [default: what is installed here]")
@click.option("--sdist", is_flag=True, help="Build cpubench on the hosts, which then need a compiler.")
@as_json
def wheelhouse(
    folder: Path, pythons: tuple[str, ...], archs: tuple[str, ...], source: str | None, sdist: bool, json_: bool
) -> None:
    """Gather all that is installed on hosts, which need no network."""
    from cpubench.fleet.template import check_folder
    from cpubench.fleet.wheelhouse import make
    from cpubench.report.progress import writer

    made = make(check_folder(folder), pythons, archs, source, sdist, writer(sys.stderr))
    if json_:
        emit({"wheels": made})
    else:
        for tag, one in made.items():
            click.echo(f"{tag}: {one['files']} files, {one['bytes'] / 1e6:.0f} MB, cpubench as {one['kind']}")


@command.command()
@folder_of
@results_of
@click.option("--cap", "caps", multiple=True, metavar="LEVEL", help=f"A level of each host: {LEVELS}.")
@click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True, help="Runs of each level.")
@click.option("--group", default="candidates", show_default=True, help="Group of the inventory.")
@click.option("--profile", default="standard", show_default=True, metavar="NAME", help="quick, standard or strict.")
@click.option("--families", metavar="F,..", help="Measure these families only.")
@click.option("--copies", metavar="C,..", help="Of 1, cores and cpus.")
@click.option("--meter", metavar="NAME", help="Read watts: auto, powercap, ..")
@click.option("--budget", metavar="TIME", help="Of a run: 90s, 10m.  [default: the profile's]")
@click.option("--deadline", metavar="TIME",
              help="A run is ended then.  [default: 10m and thrice its budget, with a meter or cap + 5m]")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of the order.  [default: drawn]")
@as_json
def plan(
    folder: Path, results: Path, caps: tuple[str, ...], repeats: int, group: str, profile: str, families: str | None,
    copies: str | None, meter: str | None, budget: str | None, deadline: str | None, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Plan which host is measured at which level, in an order drawn from a seed."""
    native()
    from cpubench.fleet.asked import planned

    run = {"--profile": profile, "--families": families, "--copies": copies, "--meter": meter, "--budget": budget}
    made, file = planned(folder, results, caps or ("as-is",), repeats, group, run, deadline, seed)
    if json_:
        kept = ("fleet", "seed", "suite_hash", "arguments", "expected_s")
        numbers = {"hosts": len(made["hosts"]), "runs": len(made["cells"])}
        emit({"file": str(file), **{key: made[key] for key in kept}, **numbers})
    else:
        click.echo(f"{len(made['cells'])} runs of {len(made['hosts'])} hosts, seed {made['seed']}, at most about "
                   f"{made['expected_s'] / 60:.1f} min each: {file}")  # fmt: skip


@command.command()
@folder_of
@results_of
@click.option("--forks", type=click.IntRange(1, 1000), default=50, show_default=True, help="Logins at once of a play.")
@click.option("--times", hidden=True, help="Seconds, for tests: expected=3,poll=1,gather=0.5,settle=0.")
@as_json
def run(folder: Path, results: Path, forks: int, times: str | None, json_: bool) -> int:
    """Measure what the plan lacks; again, it goes on. Exit 1 where something is still missing."""
    from cpubench.fleet.asked import run as measure
    from cpubench.report.progress import writer

    document = measure(folder, results, forks, times, writer(sys.stderr))
    return _tell(document, json_)


@command.command()
@folder_of
@results_of
@as_json
def status(folder: Path, results: Path, json_: bool) -> None:
    """What is done, failed and missing, and why."""
    from cpubench.fleet.asked import told

    _tell(told(folder, results), json_)


@command.command()
@folder_of
@results_of
@click.option("--host", required=True, metavar="NAME", help="Of the plan: the machine that this is.")
@as_json
def here(folder: Path, results: Path, host: str, json_: bool) -> int:
    """Measure on this machine what the plan lacks of it; for Slurm and Kubernetes. Exit 1 where it still lacks some."""
    native()
    from cpubench.fleet.asked import measured_here
    from cpubench.report.progress import writer

    return _tell(measured_here(folder, results, host, writer(sys.stderr)), json_)


def _tell(document: dict[str, object], json_: bool) -> int:
    """The exit code that the document means, after printing it."""
    if json_:
        emit(document)
    else:
        from cpubench.report.fleet_status import show_status

        show_status(document, sys.stdout)
    failures = document["failures"]
    if isinstance(failures, dict) and failures.get("cap not given back"):
        return UNRETURNED
    return 0 if document["done"] == document["planned"] else 1
