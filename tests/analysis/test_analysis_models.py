"""Models of GPUs, money and racks: the published example, limits, intervals, break-evens, and what inputs may be."""

import json
import math
import re
from importlib import resources

import pytest

from cpubench.analysis.draws import EXACT, UNKNOWN
from cpubench.analysis.model_inputs import model
from cpubench.entry import main
from cpubench.errors import UsageError
from cpubench.results.inputs import Given, Inputs, load_inputs

EXAMPLE = resources.files("cpubench.data") / "model-inputs.toml"
# CPU speed-up, task s, stall, attempts per hour of 72 GPUs, gain, GPU $, sandbox $, $ per completed task
WORKED = [(1.0, 347, 0.424, 47_806, 1.00, 0.00753, 0.00972, 0.0383),
          (1.5, 298, 0.329, 55_667, 1.16, 0.00647, 0.00834, 0.0329),
          (2.0, 273.5, 0.269, 60_654, 1.27, 0.00594, 0.00766, 0.0302),
          (3.0, 249, 0.197, 66_622, 1.39, 0.00540, 0.00697, 0.0275)]  # fmt: skip


@pytest.fixture
def example(tmp_path):
    file = tmp_path / "inputs.toml"
    file.write_text(EXAMPLE.read_text())
    return load_inputs(file)


def changed(tmp_path, *given, drop=()):
    """The example with "agent: held = 0.5" put in for what its table holds, and without the keys of ``drop``."""
    lines = [one.partition("#")[0].strip() for one in EXAMPLE.read_text().splitlines()]
    gone = {*drop, *(one.partition(": ")[2].partition(" =")[0] for one in given)}
    lines = [one for one in lines if one.partition(" =")[0] not in gone or one.startswith("[")]
    for one in given:
        table, _, line = one.partition(": ")
        if f"[{table}]" not in lines:
            lines.append(f"[{table}]")
        lines.insert(lines.index(f"[{table}]") + 1, line)
    file = tmp_path / "changed.toml"
    file.write_text("\n".join(lines))
    return load_inputs(file)


def test_the_worked_example_of_stall_and_cost(example):
    stalled, paid = model("stall", example, []), model("cost", example, [])
    for row, money, expected in zip(stalled["rows"], paid["rows"], WORKED, strict=True):
        speedup, task_s, share, attempts, gain, gpu, sandbox, completed = expected
        assert row["speedup"] == money["speedup"] == speedup
        assert row["task_s"]["value"] == pytest.approx(task_s)
        assert row["stall"]["value"] == pytest.approx(share, abs=0.0005)
        assert row["attempts_per_hour"]["value"] == pytest.approx(attempts, abs=1)
        assert row["gain"]["value"] == pytest.approx(gain, abs=0.005)
        assert money["gpu"]["value"] == pytest.approx(gpu, abs=5e-6)
        assert money["vcpu"]["value"] == pytest.approx(sandbox, abs=5e-6)
        assert money["per_completed"]["value"] == pytest.approx(completed, abs=5e-5)
        assert row["stall"]["low"] is None
        assert row["stall"]["reason"] == "nothing that it is made of is uncertain"
    assert stalled["break_even"]["cores"]["value"] == pytest.approx(664, abs=0.5)
    assert stalled["gain_limit"]["value"] == pytest.approx(347 / 200)
    assert paid["rows"][0]["waste"]["value"] == pytest.approx(13.9, abs=0.05)
    assert paid["rows"][0]["break_even_vcpu_price"]["value"] == pytest.approx(0.0504)


def test_the_worked_example_of_racks_and_freed_gpus(example):
    made = model("rack", example, [])
    first, second = made["rows"]
    assert (first["nodes"]["value"], second["nodes"]["value"]) == (83, 58)
    assert (first["tasks_per_hour"]["value"], second["tasks_per_hour"]["value"]) == (74_700, 81_200)
    assert first["tasks_per_hour_per_kw"]["value"] == pytest.approx(750)
    assert second["tasks_per_hour_per_kw"]["value"] == pytest.approx(824, abs=0.5)
    assert second["rack_ratio"]["value"] == pytest.approx(1.087, abs=0.0005)
    assert second["amplification"]["value"] == pytest.approx(1.098, abs=0.0005)
    assert second["break_even_watts"]["value"] == pytest.approx(1200 * 14 / 9)
    assert [one["speedup"] for one in made["gpus_freed"]] == [1, 1.5, 2, 3]
    assert made["gpus_freed"][1]["gpus"]["value"] == pytest.approx(10.2, abs=0.05)


@pytest.mark.parametrize(("sequences", "cores"), [(32, 2.8), (64, 5.6), (256, 22.3), (380, 33.0)])
def test_cores_that_never_starve_a_gpu_grow_with_its_sequences(tmp_path, sequences, cores):
    given = changed(tmp_path, "agent: model_s = 11.5", "agent: core_s = 1", f"gpu: sequences = {sequences}")
    assert model("stall", given, [])["rows"][0]["cores_per_gpu"]["value"] == pytest.approx(cores, abs=0.05)


def test_a_place_that_is_not_held_costs_nothing_while_tools_work(tmp_path):
    given = changed(tmp_path, "agent: held = 0")
    paid, stalled = model("cost", given, [])["rows"], model("stall", given, [])["rows"]
    assert {round(row["gpu"]["value"], 5) for row in paid} == {0.00434}
    assert [row["stall"]["value"] for row in stalled] == [0, 0, 0, 0]
    assert stalled[1]["gain"]["value"] == pytest.approx(347 / 298)


def test_few_cores_limit_until_the_break_even(tmp_path):
    given = changed(tmp_path, "host: cores = 500")
    found = model("stall", given, [])
    assert [row["limit"] for row in found["rows"]] == ["cores", "cores", "GPU", "GPU"]
    assert found["rows"][0]["attempts_per_hour"]["value"] == pytest.approx(3600 * 500 / 50)
    even = found["break_even"]["speedup"]["value"]
    assert 1.5 < even < 1.6
    places, cores = 72 * 64, 500
    assert places / (200 + 147 / even) == pytest.approx(cores / (50 / even))
    idle = 1 - 10 * 200 / places
    assert found["rows"][0]["gpu_idle"]["value"] == pytest.approx(idle)


def test_few_agents_limit_too(tmp_path):
    row = model("stall", changed(tmp_path, "host: agents = 10"), [])["rows"][0]
    assert row["limit"] == "agents"
    assert row["attempts_per_hour"]["value"] == pytest.approx(3600 * 10 / 347)


def test_a_range_becomes_an_interval_and_exact_results_have_none(tmp_path):
    given = changed(tmp_path, "agent: success = [0.2, 0.44]")
    row = model("cost", given, [])["rows"][0]
    whole = row["per_attempt"]["value"]
    assert row["per_attempt"]["low"] is None
    done = row["per_completed"]
    assert done["value"] == pytest.approx(whole / 0.32)
    assert done["low"] == pytest.approx(whole / 0.434, rel=0.01)  # 95 % of a uniform: 2.5 % off either end
    assert done["high"] == pytest.approx(whole / 0.206, rel=0.01)
    assert model("cost", given, [])["rows"] == model("cost", given, [])["rows"]


def test_the_rack_without_room_for_the_first_node_says_so(tmp_path):
    given = changed(tmp_path, "rack: fixed_watts = 99000")
    rows = model("rack", given, [])["rows"]
    assert rows[0]["nodes"]["value"] == 0
    assert rows[1]["rack_ratio"] == {"value": None, "low": None, "high": None, "reason": "none of the first fits"}
    with pytest.raises(UsageError, match="leaves no watts"):
        model("rack", changed(tmp_path, "rack: fixed_watts = 100000"), [])


def test_what_is_said_of_speed_up_1_is_of_it(tmp_path, capsys):
    file = tmp_path / "inputs.toml"
    file.write_text(EXAMPLE.read_text().replace("speedups = [1.0, 1.5, 2.0, 3.0]", "speedups = [0.5, 2.0]"))
    assert main(["model", "cost", "--inputs", str(file)]) == 0
    page = capsys.readouterr().out
    assert "0.0383 at speed-up 1; 0.0302 at 2" in page
    assert "13.9 vCPU-seconds" in page


def test_draws_in_which_none_fits_leave_no_interval_and_say_so(tmp_path):
    text = (
        EXAMPLE.read_text().replace("watts = 100_000", "watts = 2000").replace("watts = 1200", "watts = [1500, 2400]")
    )
    file = tmp_path / "few.toml"
    file.write_text(text)
    ratio = model("rack", load_inputs(file), [])["rows"][1]["rack_ratio"]
    assert (ratio["value"], ratio["low"]) == (pytest.approx(1400 / 900), None)
    assert ratio["reason"] == "no interval: in some draws none of the first fits"
    file.write_text(
        text.replace("watts = 2000", "watts = [1000, 10000]").replace("fixed_watts = 0", "fixed_watts = [500, 5400]")
    )
    assert model("rack", load_inputs(file), [])["rows"][1]["nodes"]["low"] == 0


def test_at_once_without_a_run_is_refused_and_times_is_noted(tmp_path):
    with pytest.raises(UsageError, match="needs a run of tasks"):
        model("rack", changed(tmp_path, "agent: at_once = 8"), [])
    assert model("stall", changed(tmp_path, "agent: times = 8"), [])["notes"] == [
        "agent.times was not used: tools_s and core_s are given"
    ]


def quantity(value, low=None, high=None, reason=None):
    return {"value": value, "low": low, "high": high, "passes": 3, "reason": reason}


def measured(agents=8, density=8, rate=144.0):
    """A document of tasks, as far as models read it."""
    solo = {"task": "T1[verify-heavy,light]", "agents": 1, "wall_s": quantity(4.0, 3.6, 4.4),
            "core_seconds_per_task": quantity(3.95, 3.9, 4.0), "tasks_per_hour": quantity(900.0)}  # fmt: skip
    fleet = {"task": f"T4[agents={agents}]", "agents": agents, "wall_s": quantity(None, reason="no task is whole"),
             "core_seconds_per_task": quantity(3.4), "tasks_per_hour": quantity(rate, rate * 0.9, rate * 1.1),
             "stretch": {"p50": 1.2, "p95": 1.4}}  # fmt: skip
    whole = {"skipped": None, "repeats": 3, "failures": 0}
    return {"estimate": True, "cap": None, "tasks": [solo | whole, fleet | whole],
            "density": {"agents": density, "reason": "beyond"}}  # fmt: skip


def test_what_the_inputs_leave_out_is_taken_from_the_run_and_says_so(tmp_path):
    given = changed(tmp_path, "agent: times = 30", drop=("tools_s", "core_s"))
    found = model("stall", given, [("run-a", measured())])
    told = {one["name"]: one for one in found["inputs"]["measured"]}
    assert told["agent.tools_s"]["value"] == pytest.approx(120)
    assert (told["agent.tools_s"]["low"], told["agent.tools_s"]["high"]) == pytest.approx((108, 132))
    assert told["agent.tools_s"]["source"] == "run-a, T1[verify-heavy,light], 30 times"
    assert {one["name"] for one in found["inputs"]["user"]} >= {"agent.model_s", "gpu.count"}
    assert not {one["name"] for one in found["inputs"]["user"]} & set(told)
    row = found["rows"][0]
    assert row["task_s"]["value"] == pytest.approx(200 + 120)
    assert row["task_s"]["low"] == pytest.approx(200 + 108, rel=0.01)
    assert row["task_s"]["high"] == pytest.approx(200 + 132, rel=0.01)
    assert any("estimate" in note for note in found["notes"])
    # The median step of windows has no interval, and so has nothing that it goes into.
    given = changed(tmp_path, "agent: times = 30", "agent: at_once = 8", drop=("tools_s", "core_s"))
    found = model("stall", given, [("run-a", measured())])
    told = {one["name"]: one for one in found["inputs"]["measured"]}
    assert (told["agent.stretch"]["value"], told["agent.stretch"]["kind"]) == (1.2, "unknown")
    task = found["rows"][0]["task_s"]
    assert task["value"] == pytest.approx(200 + 1.2 * 120)
    assert (task["low"], task["reason"]) == (None, UNKNOWN)
    assert found["rows"][0]["cores_per_gpu"]["low"] is not None


@pytest.mark.parametrize("given", ["[3, 9.8]", "[1, 8.9]", "[8, 9]", "8.9", "0.5"])
@pytest.mark.parametrize("other", [(), ("agent: stretch = 1.5",)])
def test_at_once_is_one_whole_number(tmp_path, given, other, capsys):
    inputs = changed(tmp_path, f"agent: at_once = {given}", *other)
    for runs in ([], [("run-a", measured())]):
        with pytest.raises(UsageError, match=r"^agent\.at_once: is one whole number"):
            model("stall", inputs, runs)
    assert main(["model", "stall", "--inputs", str(tmp_path / "changed.toml")]) == 2
    assert "changed.toml: agent.at_once: is one whole number" in capsys.readouterr().err
    whole = model("stall", changed(tmp_path, "agent: at_once = 8.0"), [("run-a", measured())])
    assert [one["value"] for one in whole["inputs"]["measured"] if one["name"] == "agent.stretch"] == [1.2]


def two_nodes(tmp_path):
    """A rack of two nodes, the first of which lacks its tasks per hour."""
    text = (
        EXAMPLE.read_text().partition("[rack]")[0] + '[rack]\nwatts = 100000\n[[rack.node]]\nname = "A"\nwatts = 1200\n'
    )
    file = tmp_path / "nodes.toml"
    file.write_text(text + '[[rack.node]]\nname = "B"\nwatts = 1700\ntasks_per_hour = 1400\n')
    return load_inputs(file)


def test_nodes_without_tasks_per_hour_take_the_runs_in_order(tmp_path):
    given = two_nodes(tmp_path)
    found = model("rack", given, [("run-a", measured(rate=900.0))])
    assert found["rows"][0]["tasks_per_hour"]["value"] == 74_700
    assert found["rows"][0]["tasks_per_hour"]["low"] == pytest.approx(0.9 * 74_700, rel=0.01)
    assert [one["name"] for one in found["inputs"]["measured"]] == ["A.tasks_per_hour"]
    for runs, text in (([], "is missing"), ([("a", measured()), ("b", measured())], "more than there are nodes"),
                       ([("a", measured(density=None))], "tells no tasks per hour")):  # fmt: skip
        with pytest.raises(UsageError, match=text):
            model("rack", given, runs)


def test_a_run_that_does_not_tell_is_named(tmp_path):
    given = changed(tmp_path, "agent: at_once = 64", drop=("tools_s", "core_s"))
    with pytest.raises(UsageError, match="no T4 of 64 agents"):
        model("stall", given, [("run-a", measured())])
    given = changed(tmp_path, 'agent: task = "T9"', drop=("tools_s", "core_s"))
    with pytest.raises(UsageError, match="'T9' is not in the run"):
        model("stall", given, [("run-a", measured())])
    without = measured()
    without["tasks"][0]["wall_s"] = quantity(None, reason="ended with 1, not 0")
    given = changed(tmp_path, drop=("tools_s", "core_s"))
    with pytest.raises(UsageError, match="ended with 1, not 0"):
        model("stall", given, [("run-a", without)])
    with pytest.raises(UsageError, match="of tasks that measured it"):
        model("cost", given, [])


@pytest.mark.parametrize(("line", "said"), [
    ("agent: success = 0", "agent.success: is a number above 0 to 1"),
    ("agent: success = nan", "agent.success: is a number"),
    ("agent: held = 1.5", "agent.held: is a number from 0 to 1"),
    ("agent: model_s = -1", "agent.model_s"),
    ("agent: model_s = inf", "agent.model_s"),
    ("agent: model_s = true", "agent.model_s"),
    ("agent: model_s = '200'", "agent.model_s"),
    ("agent: model_s = [300, 200]", "a range is .low, high."),
    ("agent: model_s = [1, 2, 3]", "a range is .low, high."),
    ("agent: model_s = []", "a range is .low, high."),
    ("agent: speed = 1", "unknown key speed"),
    ("gpus: count = 1", "unknown table gpus"),
    ("agent: task = 1", "agent.task"),
])  # fmt: skip
def test_inputs_that_cannot_be_are_refused_by_their_key(tmp_path, line, said):
    with pytest.raises(UsageError) as error:
        changed(tmp_path, line)
    assert re.search(said, f"{error.value.where}: {error.value.text}")


@pytest.mark.parametrize("text", [b"\xff", b"[agent", b"agent = 1", b"speedups = []", b"speedups = [0]",
                                  b"[rack]\nnode = 1", b"[[rack.node]]\nwatts = 1",
                                  b'[[rack.node]]\nname = "A"\n[[rack.node]]\nname = "A"'])  # fmt: skip
def test_files_that_are_none_are_one_line(tmp_path, text, capsys):
    file = tmp_path / "x.toml"
    file.write_bytes(text)
    assert main(["model", "rack", "--inputs", str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "x.toml" in told.err


def test_the_page_and_the_document_of_the_template(tmp_path, capsys):
    assert main(["model", "inputs"]) == 0
    file = tmp_path / "inputs.toml"
    file.write_text(capsys.readouterr().out)
    for name, part in (("stall", "47806"), ("cost", "0.0329"), ("rack", "81200")):
        assert main(["model", name, "--inputs", str(file)]) == 0
        page = capsys.readouterr().out
        assert part in page
        assert max(map(len, page.splitlines())) <= 80
        assert main(["model", name, "--inputs", str(file), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["model"] == name
        assert document["inputs"]["user"]


def test_draws_of_an_interval_have_its_ends():
    import numpy as np

    from cpubench.analysis.draws import drawn

    made = drawn({"agent": {"core_s": Given(10.0, 8.0, 12.5, "interval")}})["agent"]["core_s"]
    assert made[0] == 10.0
    assert np.percentile(made[1:], 2.5) == pytest.approx(8.0, rel=0.02)
    assert np.percentile(made[1:], 97.5) == pytest.approx(12.5, rel=0.02)
    assert math.log(made[1:].mean()) == pytest.approx(math.log(10), abs=0.02)


def test_without_nodes_a_rack_is_refused():
    with pytest.raises(UsageError, match="has no"):
        model("rack", Inputs({"rack": {"watts": Given(1e5)}}, None, [1.0], []), [])


def test_what_was_measured_once_leaves_no_interval_and_says_so(tmp_path, capsys):
    run = measured()
    run["tasks"][1]["tasks_per_hour"] = quantity(144.0, reason="an interval needs two passes")
    document = model("rack", two_nodes(tmp_path), [("run", run)])
    first, second = document["rows"]
    assert (first["tasks_per_hour"]["low"], first["tasks_per_hour"]["reason"]) == (None, UNKNOWN)
    assert (second["tasks_per_hour"]["reason"], second["amplification"]["reason"]) == (EXACT, UNKNOWN)
    assert "run is an estimate: too few repeats for verdicts" in document["notes"]


def test_a_run_under_a_cap_is_named(tmp_path):
    cap = {"level": "250W", "state": "over_cap"}
    document = model("rack", two_nodes(tmp_path), [("run", measured() | {"cap": cap})])
    assert "run was done under 250W: over_cap" in document["notes"]


def test_a_row_with_a_failed_repeat_goes_into_no_model(tmp_path):
    run = measured()
    for row in run["tasks"]:
        row["failures"] = 2
    for name, given in (("stall", changed(tmp_path, drop=("tools_s",))), ("rack", two_nodes(tmp_path))):
        with pytest.raises(UsageError, match="failed in 2 of 3 repeats"):
            model(name, given, [("run", run)])
    run["tasks"][1]["stretch"] = {"p50": None, "p95": None}
    with pytest.raises(UsageError, match="failed in 2 of 3 repeats"):
        model("stall", changed(tmp_path, "agent: at_once = 8"), [("run", run)])


def test_no_figure_of_a_page_is_0_that_is_not(tmp_path, capsys):
    """A rate of one GPU, a busy part of a core, and a price of next to nothing are told with the digits that count."""
    small = [f"gpu: {name}" for name in ("count = 1", "sequences = 1", "price_per_hour = 0.00001")]
    file = tmp_path / "changed.toml"
    changed(tmp_path, *small, "agent: model_s = 20000", "agent: core_s = [0.004, 0.006]")
    for name in ("stall", "cost", "rack"):
        assert main(["model", name, "--inputs", str(file), "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert main(["model", name, "--inputs", str(file)]) == 0
        table = re.split(r"\n\s*\n", capsys.readouterr().out)[1].splitlines()
        for row, line in zip(rows, [one for one in table if re.match(r"\s*[\dA-Z][\w.]*\s+\d", one)], strict=True):
            shown = [float(cell) for cell in line.split()[1:] if re.fullmatch(r"[\d.e+-]*\d", cell)]
            known = [one["value"] if isinstance(one, dict) else one for one in row.values()]
            assert len(shown) > 5
            assert shown.count(0) <= known.count(0), line


@pytest.mark.parametrize(("value", "form", "shown"), [
    (0.31, ".0f", "0.31"), (0, ".0f", "0"), (99.4, ".0f", "99.4"), (99.96, ".0f", "100"), (664.2, ".0f", "664"),
    (47806.4, ".0f", "47806"), (0.04, ".1f", "0.04"), (42.44, ".1f", "42.4"), (1, ".2f", "1.00"), (1.5, "g", "1.5"),
    (2e-6, ".5f", "2e-06"), (0.00753, ".5f", "0.00753"), (0.0383, ".4f", "0.0383"), (-0.2, ".0f", "-0.2"),
])  # fmt: skip
def test_figures_keep_three_digits_that_count(value, form, shown):
    from cpubench.report.models import _figure

    assert _figure(value, form) == shown
