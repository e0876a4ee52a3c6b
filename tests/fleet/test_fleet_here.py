"""``fleet here``: one machine measures what a plan lacks of it, for schedulers that look at its exit code alone."""

import hashlib
import json

import pytest

from cpubench.entry import main
from cpubench.fleet import plan, state
from cpubench.fleet.inventory import Host
from cpubench.fleet.layout import PLAN, RUN, SUM, cell_folder
from cpubench.fleet.suite import kernels
from cpubench.measure.folder import host_lock
from cpubench.results.files import canonical


@pytest.fixture
def here(tmp_path, capsys):
    """A function that makes the plan of these hosts and groups, and one that measures a host of it."""

    def make(groups, versions=None, repeats=2):
        document = plan.make(
            "demo", [Host(name, group, None, None, name) for name, group in groups.items()], ["as-is"], repeats, [],
            group="candidates", versions=versions or kernels(), expected_s=1, deadline_s=9, seed=1,
            created_utc="2026-01-01T00:00:00Z",
        )  # fmt: skip
        state.write(tmp_path / "r" / "demo" / PLAN, canonical(document))
        return tmp_path / "r" / "demo", plan.cells_of(document)

    def measure(host):
        code = main(
            ["fleet", "here", str(tmp_path / "demo"), "--results", str(tmp_path / "r"), "--host", host, "--json"]
        )
        return code, json.loads(capsys.readouterr().out)

    return make, measure


def done(fleet, cell):
    folder = cell_folder(fleet, cell)
    folder.mkdir(parents=True)
    (folder / RUN).write_bytes(b"x")
    (folder / SUM).write_text(f"{hashlib.sha256(b'x').hexdigest()}  {RUN}\n")


def test_a_host_is_done_whatever_others_lack(here):
    make, measure = here
    fleet, cells = make({"a": None, "b": None})
    for cell in cells:
        if cell.host == "a":
            done(fleet, cell)
        else:
            state.write_failure(fleet, cell, "cap not given back", "x")
    code, told = measure("a")
    assert (code, told["host"], told["planned"], told["done"]) == (0, "a", 2, 2)
    assert {row["host"] for row in told["rows"]} == {"a"}


def test_a_host_that_shares_its_power_group_is_refused(here):
    make, measure = here
    make({"a": "chassis", "b": "chassis", "c": "own"})
    code, told = measure("b")
    assert (code, told["error"]["code"]) == (2, "power_group")
    assert "chassis with a" in told["error"]["text"]


def test_another_suite_than_the_plan_is_told_before_anything_is_measured(here):
    make, measure = here
    make({"a": None}, versions={"mem_chase": 1})
    code, told = measure("a")
    assert (code, told["failures"]) == (1, {"preflight refused": 2})
    assert all("install its version" in row["text"] for row in told["rows"])


def test_a_busy_host_is_asked_once(here):
    make, measure = here
    make({"a": "own"})
    with host_lock():
        code, told = measure("a")
    assert (code, told["failures"]) == (1, {"busy": 2})
    assert [row["text"].startswith("not tried after as-is repeat 1") for row in told["rows"]] == [False, True]
