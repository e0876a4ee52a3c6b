"""What forbids to compare: whole runs that did other work or are counted otherwise, and rows that had other memory."""

from __future__ import annotations

from collections.abc import Sequence

from cpubench.analysis.composite import present
from cpubench.analysis.members import Member
from cpubench.analysis.pairing import is_pair
from cpubench.errors import UsageError
from cpubench.results.parse import shown
from cpubench.results.records import Variant

# A tenth of a per cent of a set on other pages moves a chase by as much at most: 350 ns beside 180 were measured
# between base and huge pages, and the band in which no difference is claimed is 1 %.
PAGES_PPM = 1000

Sides = tuple[list[Member], list[Member]]


def as_sides(groups: Sequence[Sequence[Member]]) -> Sides:
    """Side A and side B: two groups as they were given, or the two runs of ``run --ab``, as they are labelled there;
    else all runs by their host, A being the host of the first."""
    sides = _sides(groups)
    for name, side in zip("AB", sides, strict=True):
        if len({one.plan.side.label for one in side if one.plan.side is not None}) > 1:
            text = f"side {name} holds both sides of run --ab: compare one such folder at a time"
            raise UsageError("sides", text, side[0].where)
    return sides


def _sides(groups: Sequence[Sequence[Member]]) -> Sides:
    if len(groups) == 2:
        sides = (list(groups[0]), list(groups[1]))
        for name, side in zip("AB", sides, strict=True):
            if len({one.plan.host_id for one in side}) > 1:
                text = f"side {name} has runs of several hosts ({_some(side)}); a side is one host"
                raise UsageError("hosts", text)
        return sides
    runs = [one for group in groups for one in group]
    if len(groups) == 1 and is_pair(runs):
        one, other = sorted(runs, key=_label)
        return [one], [other]
    if len(runs) < 2:
        raise UsageError("usage", "two runs, or two folders that hold runs, are compared", "RUN")
    hosts: dict[str, list[Member]] = {}
    for one in runs:
        hosts.setdefault(one.plan.host_id, []).append(one)
    by_folder = "give the runs of each side as a folder"
    if "unknown" in hosts:
        text = f"does not know its host, so runs cannot be put together by it: {by_folder}"
        raise UsageError("hosts", text, hosts["unknown"][0].where)
    if len(hosts) == 1:
        raise UsageError("hosts", f"all {len(runs)} runs are of one host: {by_folder}")
    if len(hosts) > 2:
        raise UsageError("hosts", f"the runs are of {len(hosts)} hosts: compare two at a time ({_some(runs)})")
    a, b = hosts.values()
    return a, b


def _label(one: Member) -> str:
    return "" if one.plan.side is None else one.plan.side.label


def check_runs(sides: Sides) -> None:
    """None if all runs did the same work and are counted alike; UsageError with the first that is not."""
    first, *_ = runs = [one for side in sides for one in side]
    seen: dict[object, Member] = {}
    for one in runs:
        # Equal to the last digit in every pass: a copy under another name would pass for a repetition. Sides of a
        # pair say which is which, and have the same clock and batches.
        figures = tuple((key, logs.tobytes()) for key, logs in sorted(one.logs.items()) if present(logs) > 1)
        marks = {one.sha256, one.plan.id, one.sha256 if is_pair(runs) else figures or one.sha256}
        known = next((seen[mark] for mark in marks if mark in seen), None)
        if known is not None:
            raise UsageError("twice", f"is the same run as {known.where}", one.where)
        seen |= dict.fromkeys(marks, one)
        _check_pair(first, one)


def _check_pair(one: Member, other: Member) -> None:
    if one.plan.suite != other.plan.suite:
        text = f"is of suite {other.plan.suite}, {one.where} of suite {one.plan.suite}: their points mean other work"
        raise UsageError("suite", text, other.where)
    kinds = (one.plan.divisor.kind, other.plan.divisor.kind)
    if kinds[0] != kinds[1]:
        text = f"counts per {kinds[1]}, {one.where} per {kinds[0]}: the two are not compared"
        raise UsageError("divisor", text, other.where)
    # All of them, not one of each kernel: a file may have a kernel that is not the same in all its rows.
    known: dict[str, tuple[Member, Variant]] = {}
    for where, variant in [(run, variant) for run in (one, other) for variant in run.plan.variants]:
        first, same = known.setdefault(variant.kernel, (where, variant))
        name = shown(variant.kernel, 60)
        if variant.version != same.version:
            text = f"{name} is version {variant.version}, in {first.where} version {same.version}: that is other work"
            raise UsageError("version", text, where.where)
        if variant.unit != same.unit:
            text = f"an operation of {name} is a {shown(variant.unit, 40)}, in {first.where} a {shown(same.unit, 40)}"
            raise UsageError("unit", text, where.where)


def row_obstacle(key: str, sides: Sides) -> tuple[str, str] | None:
    """Code and sentence why the figures of a row, which all runs have, are not compared; None where they are."""
    for code, what, name in (("file_system", "file systems", "file_system"), ("page_size", "page sizes", "huge_ppm")):
        told = [[one.obtained.get(key, {}).get(name) for one in side] for side in sides]
        flat = [value for side in told for value in side]
        if code == "page_size":
            there = [value for value in flat if value is not None]
            differs = 0 < len(there) < len(flat) or (bool(there) and max(there) - min(there) > PAGES_PPM)
        else:
            differs = any(value != flat[0] for value in flat)
        if differs:
            a, b = (_told(side, code) for side in told)
            return code, f"different {what}: {a} in A, {b} in B"
    values = [{v.value for one in side for v in one.plan.variants if v.key == key} for side in sides]
    if len(values[0] | values[1]) > 1:
        a, b = (", ".join(map(str, sorted(side))) for side in values)
        return "parameter", f"the parameter is {a} in A and {b} in B: it follows the host"
    return None


def _told(values: Sequence[object], code: str) -> str:
    if code == "page_size":
        shares = ["no huge pages asked for" if not isinstance(v, int | float) else f"{v / 1e4:.3g} % huge"
                  for v in values]  # fmt: skip
        return " or ".join(dict.fromkeys(shares))
    return " or ".join(dict.fromkeys(", ".join(v) if isinstance(v, list) and v else "unknown" for v in values))


def _some(runs: Sequence[Member]) -> str:
    names = list(dict.fromkeys(shown(str(one.host.get("hostname") or one.plan.host_id[:12]), 40) for one in runs))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
