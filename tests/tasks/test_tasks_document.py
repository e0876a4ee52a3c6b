"""From spans to measures: rates and intervals, what does not count, percentiles, paths, density, tables and traces."""

import io
import json
import math
from itertools import pairwise

import pytest
from tasks_run import SOLO, STEPS, fleet, loaded, made_repeat, made_row, made_run, made_span, row_of

from cpubench.analysis.task_spans import percentiles
from cpubench.analysis.tasks import tasks_document
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.report.tasks import show_tasks
from cpubench.report.terminal import spread
from cpubench.report.traces import trace
from cpubench.results.files import sealed
from cpubench.results.load_tasks import load_tasks
from cpubench.results.task_records import TaskRun
from cpubench.tasks.catalogue import Task


def test_rates_are_means_over_repeats_with_the_interval_of_kernels(tmp_path):
    row = row_of(tasks_document(loaded(made_run(factors=(1.0, 1.1, 0.9)), tmp_path)), SOLO.name)
    rate = row["tasks_per_hour"]
    walls = [0.4 * f + 1e-6 for f in (1.0, 1.1, 0.9)]
    assert rate["value"] == pytest.approx(3600 / math.prod(walls) ** (1 / 3))
    assert rate["low"] < rate["value"] < rate["high"]
    assert rate["passes"] == 3
    assert row["tasks_per_hour_per_core"]["reason"] == "one agent does not fill the cores"
    assert row["joules_per_task"] == {"value": None, "low": None, "high": None, "passes": 0, "reason": "no_meter"}
    assert row["core_seconds_per_task"]["value"] == pytest.approx(0.2802, rel=0.01)
    assert row["phases"]["test"]["share"] == pytest.approx(0.75, rel=0.01)
    assert row["phases"]["explore"]["cpu_s"]["passes"] == 3


def test_a_failed_task_is_never_a_fast_one(tmp_path):
    whole = made_run()
    row = whole["tasks"][1]
    quick = made_repeat([made_span(0, 0, 10**6, 10)], 3, failures=["search.1: ended with 1, not 0"])
    left = made_repeat(
        [made_span(0, 0, 10**6, 10), made_span(1, 10**6, 10**6, 10)], 4, leftovers=["mount left behind: /x"]
    )
    row["repeats"] += [quick, left]
    after = row_of(tasks_document(loaded(sealed(whole), tmp_path)), SOLO.name)
    assert (after["failures"], after["repeats"]) == (2, 5)
    assert after["tasks_per_hour"]["reason"] == "2 of 5 repeats failed: search.1: ended with 1, not 0"
    row["repeats"] = [quick]
    only = row_of(tasks_document(loaded(sealed(whole), tmp_path)), SOLO.name)
    assert only["tasks_per_hour"]["value"] is None
    assert only["tasks_per_hour"]["reason"] == "1 of 1 repeats failed: search.1: ended with 1, not 0"


def values(found):
    """Every value and share of a row, wherever it is."""
    if isinstance(found, dict):
        own = [found[name] for name in ("value", "share", "p50_s", "p95_s", "p99_s", "p50") if name in found]
        return own + [one for key, part in found.items() if key != "reasons" for one in values(part)]
    return []


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("fault", [{"failures": ["test.1: not done after 120 s"]}, {"leftovers": ["a mount: /x"]}])
@pytest.mark.parametrize("made", [made_run(factors=(1.0, 1.0, 3.0))["tasks"][1], fleet(8, 1.0)])
def test_the_repeats_that_a_timeout_spared_tell_nothing_of_a_task(tmp_path, at, fault, made):
    made = json.loads(json.dumps(made))
    made["repeats"] = [{**made["repeats"][n % len(made["repeats"])], "index": n} for n in range(3)]
    alone = made_run()["tasks"][1] | {"name": "T1[read-heavy,light]"}  # that the windows are told by
    rows = [made_run()["tasks"][0], alone, made]
    before = row_of(tasks_document(loaded(made_run(rows), tmp_path)), made["name"])
    made["repeats"][at] = made["repeats"][at] | fault
    document = tasks_document(loaded(made_run(rows), tmp_path))
    after = row_of(document, made["name"])
    assert any(one is not None for one in values(before))
    assert set(values(after)) == {None}
    why = f"1 of 3 repeats failed: {next(iter(fault.values()))[0]}"
    for name in ("tasks_per_hour", "core_seconds_per_task"):
        assert after[name]["reason"] == why
    assert set(after["steps"]["reasons"].values()) == {why}
    out = io.StringIO()
    show_tasks(document, out)
    assert why in " ".join(out.getvalue().split())
    assert max(map(len, out.getvalue().splitlines())) <= 80


@pytest.mark.parametrize("factors", [(0.8, 1.0, 1.25), (1.0, 1.02, 0.99), (1.0,)])
def test_an_interval_is_as_wide_here_as_in_the_report(tmp_path, factors):
    document = tasks_document(loaded(made_run(factors=factors), tmp_path))
    out = io.StringIO()
    show_tasks(document, out)
    line = next(one for one in out.getvalue().splitlines() if one.startswith(SOLO.name))
    width = spread(row_of(document, SOLO.name)["tasks_per_hour"]).strip()
    assert f" {width or '-'} " in line


def test_percentiles_need_enough_steps():
    assert percentiles([])["p50_s"] is None
    few = percentiles([float(n) for n in range(1, 20)])
    assert (few["p50_s"], few["p95_s"], few["reasons"]["p95"]) == (10.0, None, "19 steps; 20 are needed")
    many = percentiles([float(n) for n in range(1, 101)])
    assert (many["p50_s"], many["p95_s"], many["p99_s"], many["reasons"]) == (50.0, 95.0, 99.0, {})


def test_paths_share_out_the_time_and_starts_cost_what_empty_ones_do(tmp_path):
    paths = row_of(tasks_document(loaded(made_run(), tmp_path)), SOLO.name)["paths"]
    # each step starts one interpreter at 9 ms of user and 0.1 ms of system time
    assert paths["process"]["s"]["value"] == pytest.approx(2 * 0.0091, rel=0.01)
    assert paths["user"]["s"]["value"] == pytest.approx(0.28 - 0.018, rel=0.01)
    assert sum(one["share"] for one in paths.values()) == pytest.approx(1)
    # nothing runs for longer than the wall: off the CPU is what is left of it
    assert paths["off_cpu"]["s"]["value"] == pytest.approx(0.4 - 0.2802, rel=0.01)


def test_a_failed_start_prices_no_path(tmp_path):
    before = row_of(tasks_document(loaded(made_run(), tmp_path)), SOLO.name)["paths"]
    whole = made_run()
    (first,) = whole["tasks"][0]["repeats"]
    steps = [made_span(0, 0, 10**9, 900_000), made_span(1, 10**9, 10**9, 900_000)]
    slow = made_repeat(steps, 1, failures=["timed out"])
    whole["tasks"][0]["repeats"] = [first, slow]
    assert row_of(tasks_document(loaded(sealed(whole), tmp_path)), SOLO.name)["paths"] == before


def test_paths_are_null_without_the_price_of_a_start(tmp_path):
    whole = made_run()
    whole["tasks"] = whole["tasks"][1:]
    paths = row_of(tasks_document(loaded(sealed(whole), tmp_path)), SOLO.name)["paths"]
    assert {one["s"]["reason"] for one in paths.values()} == {"T0 was not done"}


@pytest.mark.parametrize(
    ("factors", "agents", "text"),
    [({1: 1.0, 2: 1.5, 8: 3.0}, 2, "8 agents are beyond twice solo"),
     ({1: 1.0, 2: 1.9}, 2, "more agents were not tried"), ({1: 2.5, 2: 1.0}, None, "1 agents are beyond twice solo")],
)  # fmt: skip
def test_density_is_the_most_agents_within_twice_solo(tmp_path, factors, agents, text):
    rows = [*made_run()["tasks"], *(fleet(n, factor) for n, factor in factors.items())]
    found = tasks_document(loaded(made_run(rows), tmp_path))["density"]
    assert (found["agents"], found["reason"]) == (agents, text)


@pytest.mark.parametrize(
    ("counts", "text"),
    [({1: 4, 2: 30}, "more agents were not tried"),
     ({2: 30, 8: 19, 64: 4}, "8 agents: 19 steps; 20 are needed for a 95th percentile")],
)  # fmt: skip
def test_levels_that_told_nothing_are_no_untried_ones(tmp_path, counts, text):
    rows = [*made_run()["tasks"], *(fleet(n, 1.0, count=count) for n, count in counts.items())]
    found = tasks_document(loaded(made_run(rows), tmp_path))["density"]
    assert (found["agents"], found["reason"]) == (2, text)


def test_a_failed_step_or_too_few_steps_are_no_density(tmp_path):
    rows = [*made_run()["tasks"], fleet(1, 1.0, count=4), fleet(2, 1.0, failures=["test.1: ended with 1, not 0"])]
    found = tasks_document(loaded(made_run(rows), tmp_path))["density"]
    assert found["agents"] is None
    assert found["levels"][0]["reason"] == "4 steps; 20 are needed for a 95th percentile"
    assert found["levels"][1]["within"] is False


def test_the_first_limit_is_what_tasks_waited_for(tmp_path):
    waits = {"cpu_us": 100_000, "memory_us": 0, "io_us": 6_000_000}
    rows = [*made_run()["tasks"], fleet(8, 3.0, pressure=waits)]
    assert tasks_document(loaded(made_run(rows), tmp_path))["density"]["first_limit"] == "io"
    calm = fleet(8, 3.0, pressure=dict.fromkeys(waits, 1000))
    rows[-1] = calm
    assert tasks_document(loaded(made_run(rows), tmp_path))["density"]["first_limit"] is None


def test_many_agents_have_a_rate_by_their_steps_and_per_core(tmp_path):
    document = tasks_document(loaded(made_run([*made_run()["tasks"], fleet(8, 1.0)]), tmp_path))
    row = row_of(document, "T4[agents=8]")
    assert row["tasks_per_hour"]["value"] == pytest.approx(30 / 2 * 360)  # 15 tasks of two steps in 10 s
    assert row["tasks_per_hour_per_core"]["value"] == pytest.approx(15 * 360 / 2)
    assert row["stretch"]["p95"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [(fleet(8, 1.0, count=19), "19 steps; 20 are needed"), (fleet(64, 4.0), "not steady: steps of 1.2 s")],
)
def test_a_window_that_is_too_short_tells_no_rate(tmp_path, row, reason):
    """Its long steps were cut: what ended would be the short ones."""
    found = row_of(tasks_document(loaded(made_run([*made_run()["tasks"], row]), tmp_path)), row["name"])
    for name in ("tasks_per_hour", "tasks_per_hour_per_core", "core_seconds_per_task"):
        assert found[name]["value"] is None
        assert found[name]["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d["tasks"][1]["repeats"][0]["spans"]["wall_ns"].pop(), "not of one length"),
        (lambda d: d["tasks"][1]["repeats"][0]["spans"]["user_us"].__setitem__(0, 10**9), "more than its CPUs had"),
        (lambda d: d["tasks"][1]["repeats"][0]["spans"]["step"].__setitem__(0, 5), "the task has not"),
        (lambda d: d["tasks"][1]["repeats"][0]["spans"]["step"].__setitem__(0, 1), "each once and in order"),
        (lambda d: d["tasks"][1]["repeats"][0].__setitem__("wall_ns", 5), "less than the steps took"),
        (lambda d: d["tasks"][1]["repeats"][0].__setitem__("index", 1), "one is there twice"),
        (lambda d: d["tasks"][1].__setitem__("skipped", "no cc"), "is skipped and has repeats"),
        (lambda d: d["tasks"].append(d["tasks"][1]), "a task is there twice"),
        (lambda d: d["tasks"][1]["repeats"][0]["spans"]["wall_ns"].__setitem__(0, -1), "Expected `int` >= 0"),
        (lambda d: d.__setitem__("schema", "cpubench.tasks/2"), "schema cpubench.tasks/2 is unknown"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, text):
    whole = made_run()
    change(whole)
    with pytest.raises(UsageError, match=r"tasks\.json") as told:
        loaded(sealed(whole), tmp_path)
    assert text in str(told.value)


def test_a_changed_or_cut_file_is_refused(tmp_path):
    whole = made_run()
    whole["tasks"][1]["repeats"][0]["spans"]["user_us"][0] -= 1
    with pytest.raises(UsageError, match="does not match its sha256"):
        loaded(whole, tmp_path)
    (tmp_path / "tasks.json").write_text(json.dumps(made_run())[:-200])
    with pytest.raises(UsageError, match="was cut"):
        load_tasks(tmp_path)


def test_the_page_fits_80_columns_and_escapes_foreign_text(tmp_path):
    whole = made_run([*made_run()["tasks"], fleet(64, 3.0, pressure={"cpu_us": 9_000_000, "memory_us": 0, "io_us": 0}),
                      made_row(Task("T2", ("server",)), [], [], skipped="python3 has no module sqlite3")])  # fmt: skip
    whole["tasks"].append(made_row(Task("T1", ("read-heavy", "light")), STEPS,
                                   [made_repeat([], 0, wall_ns=1, failures=["x\x1b[31m: " + "y" * 200])]))  # fmt: skip
    out = io.StringIO()
    show_tasks(tasks_document(loaded(sealed(whole), tmp_path)), out)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    for wanted in (
        "T1[verify-heavy,light]",
        "python3 has no module sqlite3",
        "an estimate",
        "beyond twice solo",
        "####",
    ):
        assert wanted in text


def test_traces_have_every_step_in_its_place(tmp_path):
    run = loaded(made_run(), tmp_path)
    events = [event for event in trace(run, "chrome")["traceEvents"] if event["ph"] == "X"]
    assert len(events) == 2 + 3 * 2
    first, second = [event for event in events if event["pid"] == 1][:2]
    assert second["ts"] - first["ts"] == pytest.approx(100_000)
    assert (first["cat"], first["dur"]) == ("explore", 100_000)
    lanes = [(event["pid"], event["ts"], event["ts"] + event["dur"]) for event in events]
    assert all(end <= begin for (a, _, end), (b, begin, _) in pairwise(lanes) if a == b)
    spans = trace(run, "otel")["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len({span["spanId"] for span in spans}) == len(spans) == 8 + 4
    parents = {span["spanId"]: span for span in spans if not span["parentSpanId"]}
    for span in spans:
        assert len(span["traceId"]) == 32
        if span["parentSpanId"]:
            above = parents[span["parentSpanId"]]
            assert int(above["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(above["endTimeUnixNano"])


def test_a_run_is_shown_anew_from_its_file(tmp_path, capsys):
    run = loaded(made_run(), tmp_path)
    assert isinstance(run, TaskRun)
    assert (
        main(["tasks", "show", str(tmp_path), "--json", "--trace", str(tmp_path / "t"), "--trace-format", "otel"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["tasks"] == tasks_document(run)["tasks"]
    assert json.loads((tmp_path / "t").read_text())["resourceSpans"]
    assert main(["tasks", "show", str(tmp_path / "none"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "missing"


def test_windows_that_failed_are_in_no_stretch(tmp_path):
    whole = made_run([*made_run()["tasks"], fleet(8, 5.0, failures=["test.1: ended with 1"])])
    document = tasks_document(loaded(sealed(whole), tmp_path))
    assert row_of(document, "T4[agents=8]")["stretch"]["p50"] is None
    (level,) = document["density"]["levels"]
    assert (level["within"], level["stretch_p95"]) == (False, None)


def test_a_level_without_its_task_alone_has_no_stretch_and_says_so(tmp_path):
    whole = made_run([*made_run()["tasks"], fleet(8, 5.0)])
    assert tasks_document(loaded(sealed(whole), tmp_path))["density"]["levels"][0]["stretch_p95"] is not None
    alone = next(row for row in whole["tasks"] if row["task"] == "T1")
    alone["repeats"][-1]["failures"] = ["test.1: not done after 120 s"]
    (level,) = tasks_document(loaded(sealed(whole), tmp_path))["density"]["levels"]
    assert (level["within"], level["stretch_p95"]) == (None, None)
    assert level["reason"] == "the same task alone was not done, or a repeat of it failed"
