"""Watts of tasks: from a meter's log to tasks per hour and watt, and what there is without one."""

import io
import json

import pytest
from tasks_run import SOLO, made_repeat, made_row, made_run, made_span

from cpubench.analysis.tasks import tasks_document
from cpubench.report.tasks import show_tasks
from cpubench.results.files import sealed
from cpubench.results.load_tasks import load_tasks
from cpubench.tasks.catalogue import Task
from cpubench.tasks.watts import metered


def document_of(whole, tmp_path):
    (tmp_path / "tasks.json").write_text(json.dumps(sealed(whole)))
    return tasks_document(load_tasks(tmp_path))


def row_of(document, name):
    return next(row for row in document["tasks"] if row["task"] == name)


def test_tasks_per_watt_are_the_rate_by_the_mean_power(tmp_path):
    whole = made_run(factors=(1.0, 1.0)) | {"meter": "powercap", "meter_scope": "package"}
    for one in whole["tasks"][1]["repeats"]:
        one["mean_w"] = 50.0
    document = document_of(whole, tmp_path)
    row = row_of(document, SOLO.name)
    assert row["watts"]["value"] == pytest.approx(50)
    assert row["tasks_per_hour_per_watt"]["value"] == pytest.approx(row["tasks_per_hour"]["value"] / 50)
    assert row["joules_per_task"]["value"] == pytest.approx(50 * row["wall_s"]["value"])
    assert document["power"]["meter"] == "powercap"
    assert row_of(document, "T0")["watts"]["reason"] == "the meter told nothing"


def test_a_repeat_without_watts_leaves_none_with_its_reason(tmp_path):
    whole = made_run() | {"meter": "powercap"}
    whole["tasks"][1]["repeats"][0] |= {"mean_w": 50.0}
    whole["tasks"][1]["repeats"][1] |= {"mean_w": None, "power_reason": "vanished: gone"}
    row = row_of(document_of(whole, tmp_path), SOLO.name)
    assert row["joules_per_task"]["reason"] == "vanished: gone"
    assert row["tasks_per_hour"]["value"] is not None


def test_a_meter_in_a_process_of_its_own_reads_from_begin_to_end():
    import time

    loop = "cmd:sh -c 'while :; do echo 40; sleep 0.05; done'"
    with metered({"power": {"meter": loop, "allow_estimated": True, "root": "/", "limits": None}}) as meter:
        meter.begin()
        time.sleep(0.6)
        meter.end()
    assert meter.found["mean_w"] == pytest.approx(40) or meter.found["power_reason"]
    with metered({"power": {}}) as meter:
        meter.begin()
        meter.end()
    assert meter.found == {"mean_w": None, "power_reason": None}


def test_a_burst_is_told_by_what_neighbours_felt(tmp_path):
    names = [("burst", "burst", "sandbox.create"), ("outside", "outside", "snippet"), ("during", "during", "snippet")]
    spans = [made_span(0, 0, 10**9, 100, agent=0)]
    spans += [made_span(1 + n % 2, n * 10**7, (1 + n % 2) * 10**7, 50, agent=1) for n in range(60)]
    row = made_row(Task("T6", ("185MB", "512MB"), agents=2), names,
                   [made_repeat(spans, wall_ns=6 * 10**9, window_ns=6 * 10**9)])  # fmt: skip
    ladder = made_row(Task("T3", ("bare",)), [("create.0", "create", "sandbox.create"), ("run.0", "run", "snippet"),
                                              ("destroy.0", "destroy", "teardown")],
                      [made_repeat([made_span(n, n * 10**6, 10**6, 10) for n in range(3)])])  # fmt: skip
    document = document_of(made_run([*made_run()["tasks"], ladder, row]), tmp_path)
    found = row_of(document, "T6[185MB,512MB,agents=2]")
    assert found["burst"]["stretch"] == pytest.approx(2)
    assert found["tasks_per_hour"]["value"] == pytest.approx(60 / 50 * 600)
    out = io.StringIO()
    show_tasks(document, out)
    assert "p95 10 ms, in bursts 20 ms (2 times)" in out.getvalue()
    assert "create" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_too_few_steps_beside_a_burst_tell_nothing(tmp_path):
    names = [("burst", "burst", "sandbox.create"), ("outside", "outside", "snippet"), ("during", "during", "snippet")]
    row = made_row(Task("T6", ("185MB", "512MB"), agents=2), names,
                   [made_repeat([made_span(1, 0, 10**7, 50)], wall_ns=10**9, window_ns=10**9)])  # fmt: skip
    found = row_of(document_of(made_run([*made_run()["tasks"], row]), tmp_path), "T6[185MB,512MB,agents=2]")
    assert found["burst"]["stretch"] is None
    assert found["burst"]["reason"].startswith("20 steps outside")
