"""``cpubench run``: measures this host, and shows what it measured."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpubench.cli import FOLDER, LEVELS, as_json, native
from cpubench.errors import Unfinished, UsageError


@click.command()
@click.option("--profile", metavar="NAME", help="quick, standard or strict.  [default: standard]")
@click.option("--families", metavar="F,..", help="Measure these families only.")
@click.option("--copies", metavar="C,..", help="Of 1, cores and cpus.")
@click.option("--cpus", metavar="LIST", help="Measure on these logical CPUs only, such as 0-3,8.")
@click.option("--workdir", type=FOLDER, help="Folder for scratch files.  [default: the run folder]")
@click.option("--out", type=FOLDER, help="Run folder.  [default: results/HOST-TIME]")
@click.option("--resume", type=FOLDER, help="Go on with the run in this folder.")
@click.option("--budget", metavar="TIME", help="Stop after this time: 90s, 10m.  [default: the profile's]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of all orders.  [default: drawn]")
@click.option("--cap", "caps", multiple=True, metavar="LEVEL", help=f"Measure under this too: {LEVELS}.")
@click.option("--cap-external", metavar="W[:SCOPE]", help="A cap that somebody else has set: 600W, 250W:package.")
@click.option(
    "--meter", metavar="NAME", help="Read watts: auto, powercap, redfish:URL, cmd:COMMAND, none, ..; csv: later."
)
@click.option("--allow-estimated", is_flag=True, help="Take watts that a hypervisor estimates.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default="/", hidden=True)
@click.option("--times", hidden=True, help="Seconds that are not the profile's, for tests: settle=0.1,idle=0.5.")
@click.option("--ab", type=FOLDER, metavar="PREFIX", help="Take turns with the cpubench installed there, and compare.")
@click.option("--ab-set", multiple=True, metavar="NAME=VALUE", help="Environment variable of the other side alone.")
@click.option("--sign", type=FOLDER, metavar="KEY", help="Sign run.json with this key of SSH.")
@click.option("--strict", is_flag=True, help="Exit with 3 where the result is not publishable.")
@as_json
def command(
    profile: str | None, families: str | None, copies: str | None, cpus: str | None, workdir: Path | None,
    out: Path | None, resume: Path | None, budget: str | None, seed: int | None, caps: tuple[str, ...],
    cap_external: str | None, meter: str | None, allow_estimated: bool, root: Path, times: str | None, ab: Path | None,
    ab_set: tuple[str, ...], sign: Path | None, strict: bool, json_: bool,
) -> int:  # fmt: skip
    """Measure this host: one folder with the run file and all evidence."""
    native()
    from cpubench.finish import naming, show, signed, unfinished
    from cpubench.measure import runner
    from cpubench.measure.asked import asked_of
    from cpubench.measure.draft import Options, cpus_of, names_of
    from cpubench.measure.profiles import nanoseconds
    from cpubench.measure.sides import settings_of
    from cpubench.report.progress import progress
    from cpubench.results.signature import check_key

    power = asked_of(caps, cap_external, meter, allow_estimated, root, times)
    fixed = (profile, families, copies, cpus, out, budget, seed, caps or None, cap_external, times, ab, ab_set or None)
    if resume is not None and any(value is not None for value in fixed):
        raise UsageError(
            "usage",
            "the plan of the run stays as it is: only --workdir, --meter and --sign may be given too",
            "--resume",
        )
    if (ab is not None or ab_set) and power.anything:
        raise UsageError("usage", "two sides are compared without caps and meters so far", "--ab")
    if sign is not None:
        check_key(sign)  # before anything is measured
    try:
        if resume is not None:
            folder = runner.resume(resume, progress(sys.stderr), workdir, power)
        else:
            options = Options(
                profile or "standard", names_of(families), names_of(copies), None, cpus_of(cpus), workdir, out,
                None if budget is None else nanoseconds(budget), seed, ab, settings_of(ab_set),
                power=power,
            )  # fmt: skip
            folder = runner.run(options, progress(sys.stderr))
    except Unfinished as error:
        unfinished(error, sign)
        raise
    with naming(folder):
        signed(folder, sign)
        publishable = show(folder, json_)
    return 3 if strict and not publishable else 0
