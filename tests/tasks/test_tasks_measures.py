"""What counts as work of a row: servers are no steps, the burst of T6 is no neighbour, and none of it counts twice."""

import pytest
from tasks_run import SOLO, STEPS, fleet, loaded, made_repeat, made_row, made_run, made_span, row_of

from cpubench.analysis.tasks import tasks_document
from cpubench.results.files import sealed
from cpubench.tasks import verify
from cpubench.tasks.catalogue import Task

BURST = [("burst", "burst", "sandbox.create"), ("outside", "outside", "snippet"), ("during", "during", "snippet")]


def served(found, wall_ns, used_us):
    """A repeat whose first step is served by a process in the background."""
    return made_repeat([*found, made_span(0, 0, wall_ns, used_us, background=True)])


def solo_steps():
    return [made_span(0, 0, 10**8, 80_000), made_span(1, 10**8, 3 * 10**8, 200_000)]


def test_a_server_that_lived_long_is_no_slow_step(tmp_path):
    rows = [*made_run()["tasks"], fleet(8, 1.0)]
    plain = row_of(tasks_document(loaded(made_run(rows), tmp_path)), "T4[agents=8]")["stretch"]
    for column, value in (("step", 0), ("wall_ns", 10**10), ("background", True)):  # ten of them in the window
        rows[-1]["repeats"][0]["spans"][column] += [value] * 10
    for column, values in rows[-1]["repeats"][0]["spans"].items():
        values += [0] * (40 - len(values))
        assert len(values) == 40, column
    rows[1] = made_row(SOLO, STEPS, [served(solo_steps(), 4 * 10**8, 10)])  # and one beside the agent that was alone
    assert row_of(tasks_document(loaded(made_run(rows), tmp_path)), "T4[agents=8]")["stretch"] == plain


def test_what_a_server_used_is_not_off_the_cpu_too(tmp_path):
    made = []
    for used_us in (0, 60_000, 300_000):
        rows = [made_run()["tasks"][0], made_row(SOLO, STEPS, [served(solo_steps(), 4 * 10**8, used_us)])]
        paths = row_of(tasks_document(loaded(made_run(rows), tmp_path)), SOLO.name)["paths"]
        made.append(paths["off_cpu"]["share"])
    off_s, whole_s = 0.4 - 0.2802, 0.4
    wanted = ((off_s - 1e-4) / whole_s, (off_s - 0.0601) / whole_s, 0)  # with 0.1 ms of system time in each
    assert made == [pytest.approx(share, abs=1e-6) for share in wanted]


def burst_row(agents=8):
    """Two bursts of 1.5 s and 1 s of CPU time, and 100 steps of neighbours of 10 ms each."""
    found = [made_span(0, n * 10**9, 15 * 10**8, 999_900) for n in range(2)]
    found += [made_span(1, n * 10**8, 2 * 10**7, 9900, agent=1) for n in range(100)]
    task = Task("T6", ("46MB", "512MB"), agents=agents)
    return made_row(task, BURST, [made_repeat(found, wall_ns=2 * 10**10, window_ns=2 * 10**10)])


def test_the_burst_is_no_work_of_the_neighbours(tmp_path):
    row = tasks_document(loaded(made_run([burst_row()]), tmp_path))["tasks"][0]
    assert row["steps"]["n"] == 100
    assert row["steps"]["p99_s"] == pytest.approx(0.02)
    assert row["kinds"]["burst"]["p50_s"] == pytest.approx(1.5)
    assert row["tasks_per_hour"]["value"] == pytest.approx(2 * 180)
    assert row["core_seconds_per_task"]["value"] == pytest.approx(0.5)


@pytest.mark.parametrize("agents", [2, 8])
@pytest.mark.parametrize(("watts", "reason"), [(100.0, None), (None, "gone"), ("none", "no_meter")])
def test_a_row_with_a_burst_has_nothing_per_core_or_per_watt(tmp_path, agents, watts, reason):
    """The burst is in the watts and on the CPUs, and in no task."""
    made, meter = burst_row(agents), {"meter": "" if watts == "none" else "powercap"}
    if watts != "none":
        made["repeats"][0] |= {"mean_w": watts, "power_reason": reason}
    row = tasks_document(loaded(sealed(made_run([made]) | meter), tmp_path))["tasks"][0]
    assert row["tasks_per_hour"]["value"] == pytest.approx(2 * 180)
    per_core = row["tasks_per_hour_per_core"]
    assert (per_core["value"], "half of the CPUs" in per_core["reason"]) == (None, True)
    assert row["watts"]["value"] == (pytest.approx(100) if watts == 100.0 else None)
    why = reason or "the burst draws power too, and is no task"
    for name in ("tasks_per_hour_per_watt", "joules_per_task"):
        assert (row[name]["value"], row[name]["reason"]) == (None, why)


@pytest.mark.parametrize(
    ("cpus", "divisor", "words"),
    [(2, {"kind": "vcpu", "n": 2}, "paced to half of the CPUs"),
     (16, {"kind": "physical_core", "n": 8}, "without waits: 7 use no more than half of 16 CPUs"),
     (16, {"kind": "granted_cpu", "n": 1.5}, "paced to half of the CPUs")],
)  # fmt: skip
def test_the_basis_says_whether_neighbours_wait(tmp_path, cpus, divisor, words):
    document = made_run([burst_row()]) | {"cpus": list(range(cpus)), "divisor": divisor}
    row = tasks_document(loaded(sealed(document), tmp_path))["tasks"][0]
    assert row["basis"].endswith(words)


@pytest.mark.parametrize(
    ("point", "own"), [("sys/fs/cgroup", "/job"), ("sys/fs/cgroup/unified", "/job"), ("sys/fs/cgroup/unified", "/")]
)
def test_groups_are_looked_for_where_the_hierarchy_is(tmp_path, point, own):
    (tmp_path / "proc/self").mkdir(parents=True)
    hybrid = point.endswith("unified")
    (tmp_path / "proc/self/cgroup").write_text(f"{'4:memory:/job' if hybrid else ''}\n0::{own}\n".lstrip())
    mount = "30 20 0:26 / /{} rw,nosuid shared:5 - {} cgroup rw,{}\n"
    rows = [mount.format(point, "cgroup2", "nsdelegate"), mount.format("sys/fs/cgroup/memory", "cgroup", "memory")]
    (tmp_path / "proc/self/mountinfo").write_text("".join(rows[: 1 + hybrid]))
    wanted = [tmp_path / f"{point}{own}".rstrip("/") / "cpubench-box-7", tmp_path / "sys/fs/cgroup/memory/job/box"]
    for folder in wanted[: 1 + hybrid]:
        folder.mkdir(parents=True)
    (tmp_path / f"{point}{own}" / "other").mkdir()  # of the root's groups, others' are not ours
    mine = [*wanted[: 1 + hybrid], *([tmp_path / f"{point}{own}" / "other"] if own != "/" else [])]
    assert verify.groups(tmp_path) == sorted(map(str, mine))
