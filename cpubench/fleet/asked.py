"""What the commands of a fleet do, from their options: a plan, a round over the hosts, the state."""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cpubench.errors import UsageError
from cpubench.fleet import job, plan
from cpubench.fleet.drive import Round, Times, drive
from cpubench.fleet.inventory import levels, load_inventory
from cpubench.fleet.layout import ASIDE, GOING, PLAN, Cell, cell_name, check_name
from cpubench.fleet.lock import controller
from cpubench.fleet.receive import salvage, taken
from cpubench.fleet.state import is_done, not_tried, status, write, write_failure
from cpubench.fleet.suite import kernels
from cpubench.fleet.template import check_folder
from cpubench.results.files import canonical
from cpubench.results.parse import shown

Json = dict[str, Any]
POWERED_S = 300.0  # what a cap or a meter adds to a run, about: rest, loads that show the cap, windows
SLACK_S = 600.0


def place(folder: Path, results: Path) -> Path:
    """RESULTS/<fleet>, where the fleet is called as its folder is."""
    return results / check_name(folder.resolve().name, str(folder))


def planned(
    folder: Path, results: Path, caps: Sequence[str], repeats: int, group: str, run: Mapping[str, str | None],
    deadline: str | None, seed: int | None,
) -> tuple[Json, Path]:  # fmt: skip
    """The new plan and its file; an older one is replaced, and results that it shares with the new one count."""
    from cpubench.measure.plan import profile_of
    from cpubench.measure.profiles import nanoseconds

    names = [level.name for level in levels(list(caps), "--cap")]
    budget, profile = run["--budget"], profile_of(run["--profile"] or "standard")
    expected_s = (nanoseconds(budget) if budget else profile.budget_ns) / 1e9
    given_s = nanoseconds(deadline, "--deadline") / 1e9 if deadline else None
    hosts = load_inventory(check_folder(folder) / "inventory.yml", group)
    if run["--meter"] or any(cap != "as-is" for host in hosts for cap in host.caps or names):
        expected_s += POWERED_S
    deadline_s = 3 * expected_s + SLACK_S if given_s is None else given_s
    arguments = [part for name, value in run.items() if value is not None for part in (name, value)]
    fleet = place(folder, results)
    made = plan.make(
        fleet.name, hosts, names, repeats, arguments, group=group, versions=kernels(),
        expected_s=expected_s, deadline_s=deadline_s,
        seed=random.SystemRandom().randrange(2**32) if seed is None else seed,
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )  # fmt: skip
    with controller(fleet):
        write(fleet / PLAN, canonical(made))
    return made, fleet / PLAN


def run(folder: Path, results: Path, forks: int, times: str | None, say: Callable[[str], None]) -> Json:
    """The state after a round over the hosts of all that is missing."""
    from cpubench.fleet.engine import SETTLE_S, Plays
    from cpubench.fleet.wheelhouse import load

    fleet = place(check_folder(folder), results)
    made = plan.load(fleet / PLAN)
    _check_inventory(folder, made)
    own = _times(times)
    settle_s = own.pop("settle_s", SETTLE_S)
    waits = replace(Times(made["expected_s"] + settle_s, made["deadline_s"] + settle_s + job.GRACE_S), **own)
    with controller(fleet):
        salvage(plan.cells_of(made), made, fleet)
        left = left_going(fleet)
        missing = going_first(left, [cell for cell in plan.cells_of(made) if not is_done(fleet, cell)])
        say(f"{len(missing)} of {len(made['cells'])} runs are missing")
        engine = Plays(folder, fleet, made, load(folder), forks, settle_s)
        groups = {name: host["power_group"] or f"host {name}" for name, host in made["hosts"].items()}

        def note(cells: Sequence[Cell]) -> None:
            write(fleet / GOING, canonical([list(cell) for cell in cells]))

        hosts = {cell.host for cell in left}
        round_ = Round(made, fleet, groups, missing, engine, waits, time.monotonic, say, note, hosts)
        try:
            drive(round_)
        except KeyboardInterrupt:
            text = f"interrupted; {len(round_.going)} runs go on at their hosts, and the same command takes them up"
            raise UsageError("interrupted", text) from None
        finally:
            engine.stop()
    return status(fleet, made)


def left_going(fleet: Path) -> set[Cell]:
    """The cells that an earlier controller left under way."""
    try:
        return {Cell(*cell) for cell in json.loads((fleet / GOING).read_bytes())}
    except (OSError, ValueError, TypeError):
        return set()


def going_first(left: Collection[Cell], cells: Sequence[Cell]) -> list[Cell]:
    """The cells, those first that were left under way, which hold their power groups, or the next of such a host."""
    hosts = {cell.host for cell in left}
    first = {cell.host: cell for cell in reversed(cells) if cell.host in hosts}
    first |= {cell.host: cell for cell in cells if cell in left}
    return sorted(cells, key=lambda cell: cell != first.get(cell.host))


def _check_inventory(folder: Path, made: Json) -> None:
    """UsageError where the inventory lacks hosts of the plan, or has them in another power group."""
    groups = {host.name: host.group for host in load_inventory(folder / "inventory.yml", made["group"])}
    gone = [name for name in made["hosts"] if name not in groups]
    moved = [name for name, host in made["hosts"].items() if name in groups and groups[name] != host["power_group"]]
    if gone or moved:
        what = (
            f"{gone[0]} is of the plan and not there"
            if gone
            else f"{moved[0]} has another power_group than in the plan"
        )
        raise UsageError("inventory", f"{what}: plan again with `cpubench fleet plan`", str(folder / "inventory.yml"))


def _times(text: str | None) -> dict[str, float]:
    found = {}
    for part in filter(None, (text or "").split(",")):
        match = re.fullmatch(r"(expected|deadline|poll|gather|settle)=(\d{1,5}(?:\.\d{1,3})?)", part)
        if not match:
            raise UsageError("times", f"{part[:40]!r} is not like poll=1", "--times")
        found[f"{match[1]}_s"] = float(match[2])
    return found


def told(folder: Path, results: Path) -> Json:
    """The state of a fleet."""
    fleet = place(folder, results)
    return status(fleet, plan.load(fleet / PLAN))


def measured_here(folder: Path, results: Path, host: str, say: Callable[[str], None]) -> Json:
    """The state of ``host`` after this machine has measured what is missing of it, in the order of the plan."""
    fleet = place(folder, results)
    made = plan.load(fleet / PLAN)
    if host not in made["hosts"]:
        raise UsageError("host", f"{host!r} is no host of the plan", "--host")
    _check_alone(made, host)
    with controller(fleet / host):
        lacking = [cell for cell in plan.cells_of(made) if cell.host == host and not is_done(fleet, cell)]
        while lacking:
            cell = lacking.pop(0)
            failed = _tried(cell, made, fleet)
            say(f"{cell_name(cell)}: {f'{failed[0]}: {shown(failed[1])}' if failed else 'done'}")
            if failed:
                write_failure(fleet, cell, *failed)
            if failed and failed[0] in ASIDE:
                for other in lacking:
                    write_failure(fleet, other, failed[0], not_tried(cell, failed[1]))
                break
    return status(fleet, made, host)


def _check_alone(made: Json, host: str) -> None:
    """UsageError for a host that shares a power group: nobody here sees to it that one is measured at a time."""
    group = made["hosts"][host]["power_group"]
    others = [name for name, one in made["hosts"].items() if name != host and one["power_group"] == group]
    if group is not None and others:
        shared = f"{host} shares the power_group {shown(group, 60)} with {others[0]}"
        text = f"{shared}: measure these with `cpubench fleet run`, one at a time, or plan without power_group"
        raise UsageError("power_group", text, "--host")


def _tried(cell: Cell, made: Json, fleet: Path) -> tuple[str, str] | None:
    """How the run of a cell failed on this machine; None where its result is there now."""
    asked = {"arguments": made["arguments"], "suite": cell.suite, "cap": cell.cap, "deadline_s": made["deadline_s"],
             "settle_s": 0}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="cpubench-") as scratch:
        ready = job.check(Path(scratch), asked)
        if ready["state"] != "ready":
            return "busy" if ready["state"] == "busy" else "preflight refused", ready["text"]
        return taken(job.work(Path(scratch), asked), Path(scratch, "run.json.gz"), cell, made, fleet)
