"""The controller over simulated hosts: who waits for whom, when a host is looked at, and what becomes of a result."""

import gzip
import hashlib
import json
import sys
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import made
import pytest
from made_watts import made_capped_run

from cpubench import SUITE_VERSION
from cpubench.errors import UsageError
from cpubench.fleet import asked, plan, state, wheelhouse
from cpubench.fleet import engine as engine_room
from cpubench.fleet.drive import Round, Times, drive
from cpubench.fleet.inventory import Host
from cpubench.fleet.layout import GOING, PLAN, Cell, cell_folder, incoming, outcome_file
from cpubench.fleet.receive import receive, salvage, taken, verdict
from cpubench.fleet.template import PLAYBOOK
from cpubench.fleet.told import Told, hear
from cpubench.results.files import canonical, sealed

VERSIONS = dict.fromkeys(made.KERNELS, 1) | {"test_work": 3}
EXPECTED_S, POLL_S = 100.0, 60.0


def packed(**more):
    data = gzip.compress(json.dumps(made.made_run(2, suite=SUITE_VERSION, **more)).encode())
    return data, hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def result():
    return packed()


class Simulated:
    """Hosts that take as long as they are told to, on a clock that only ``wait`` moves."""

    def __init__(self, folder, result, took_s=None, says=None, slots=4):
        self.folder, self.result, self.slots = folder, result, slots
        self.took_s, self.says = took_s or {}, says or {}
        self.now_s, self.events, self.began, self.log = 0.0, [], {}, []
        self.plays = 0

    def stop(self):
        pass

    def incoming(self, cell):
        return self.folder / f"{cell.host}.incoming"

    def free(self):
        return self.plays < self.slots

    def start(self, cells):
        self._later("start", dict.fromkeys(cells, False))

    def finish(self, cells):
        self._later("finish", cells)

    def _later(self, phase, cells):
        self.plays += 1
        waits = [15.0 if self.says.get(cell.host) == "unreachable" else 2.0 for cell in cells]
        for (cell, stop), wait_s in zip(cells.items(), waits, strict=True):
            self.log.append((self.now_s, phase, cell))
            self.events.append((self.now_s + wait_s, phase, cell, stop))
        self.events.append((self.now_s + max(waits), "end", None, None))

    def wait(self, seconds):
        until = self.now_s + seconds
        due = sorted((one for one in self.events if one[0] <= until), key=lambda one: one[0])[:1]
        self.now_s = max(due[0][0] if due else until, self.now_s)
        if not due:
            return []
        self.events.remove(due[0])
        _, phase, cell, stop = due[0]
        if phase == "end":
            self.plays -= 1
            return []
        return [self._told(phase, cell, stop)]

    def _told(self, phase, cell, stop):
        said = self.says.get(cell.host)
        if phase == "start":
            if said == "taken up":
                self.began[cell] = self.now_s - 40
                return Told(cell.host, phase, "running", outcome={"state": "running", "ran_s": 40.0})
            if said in ("unreachable", "busy", "refused", "failed"):
                return Told(cell.host, phase, said, "why")
            if said in ("unreachable as it began", "failed as it began"):
                return Told(cell.host, phase, said.split()[0], "why", begun=True)
            self.began[cell] = self.now_s
            return Told(cell.host, phase, "started")
        if said == "lost":
            return Told(cell.host, phase, "unreachable", "no answer")
        if self.now_s - self.began[cell] < self.took_s.get(cell.host, 90.0):
            return ended(cell.host) if stop else Told(cell.host, phase, "running", outcome={"state": "running"})
        outcome = {"state": "done", "exit": 0, "sha256": self.result[1], "took_s": 90.0, "restore": {"exit": 0}}
        if said == "met another":
            outcome = {"state": "done", "exit": 2, "error": {"code": "busy", "text": "x"}}
        if said == "capped":
            outcome["restore"] = {"exit": 70, "text": "still at 300 W"}
        outcome_file(self.incoming(cell)).write_text(json.dumps(outcome))
        self.incoming(cell).write_bytes(self.result[0] if said != "changed" else self.result[0] + b"x")
        return Told(cell.host, phase, "done", "", outcome, True)


def ended(host):
    """What is told of a run that still went on when it was to be ended: by the events of a play."""
    memory, said = {}, {"look": {"state": "running"}, "clean": {"state": "cleaned", "restore": {"exit": 0}}}
    for task, answer in said.items():
        data = {"host": host, "task": task, "res": {"stdout": json.dumps(answer)}}
        found = hear(memory, "finish", {"event": "runner_on_ok", "event_data": data})
    return found


def driven(tmp_path, result, names, groups=None, repeats=2, deadline_s=400.0, left=(), **simulated):
    hosts = [Host(name, (groups or {}).get(name), None, None, f"{name}:22") for name in names]
    document = plan.make(
        "f", hosts, ["as-is"], repeats, [], seed=1, group="candidates", versions=VERSIONS, expected_s=EXPECTED_S,
        deadline_s=deadline_s, created_utc="2026-01-01T00:00:00Z",
    )  # fmt: skip
    engine = Simulated(tmp_path, result, **simulated)
    of = {host.name: host.group or f"host {host.name}" for host in hosts}
    queue = [cell for cell in plan.cells_of(document) if not state.is_done(tmp_path, cell)]
    times = Times(EXPECTED_S, deadline_s, POLL_S, 2.0)
    noted = []
    drive(Round(document, tmp_path, of, queue, engine, times, lambda: engine.now_s, lambda text: None,
                lambda cells: noted.append((engine.now_s, cells)), set(left)))  # fmt: skip
    assert not list(tmp_path.glob("*.outcome"))
    assert not noted or noted[-1][1] == []  # nothing is under way any more
    engine.noted = noted
    return engine, state.status(tmp_path, document)


def test_all_hosts_measure_at_once_and_again_there_is_nothing_to_do(tmp_path, result):
    engine, found = driven(tmp_path, result, [f"h{n}" for n in range(30)])
    assert (found["done"], found["failures"]) == (60, {})
    assert engine.now_s < 2.5 * EXPECTED_S  # two runs one after the other, of 30 hosts beside each other
    assert Counter(phase for _, phase, _ in engine.log) == {"start": 60, "finish": 60}  # no look before its time
    again, _ = driven(tmp_path, result, [f"h{n}" for n in range(30)])
    assert again.log == []


def test_one_of_a_power_group_measures_at_a_time(tmp_path, result):
    groups = {"a": "g", "b": "g", "c": "g"}
    engine, found = driven(tmp_path, result, ["a", "b", "c", "d"], groups, repeats=1)
    assert found["done"] == 4
    begun = sorted(at for cell, at in engine.began.items() if cell.host in groups)
    assert all(later - earlier >= EXPECTED_S for earlier, later in pairwise(begun))


def test_dead_and_slow_hosts_delay_nobody(tmp_path, result):
    names = [f"h{n}" for n in range(10)]
    engine, found = driven(
        tmp_path, result, [*names, "dead", "slow", "lost"], repeats=1, took_s={"slow": 390.0},
        says={"dead": "unreachable", "lost": "lost"},
    )  # fmt: skip
    rows = {row["host"]: row for row in found["rows"]}
    assert all(rows[name]["state"] == "done" for name in [*names, "slow"])
    assert [rows[name]["class"] for name in ("dead", "lost")] == ["unreachable"] * 2
    ends = [at for at, phase, cell in engine.log if phase == "finish" and cell.host in names]
    assert max(ends) < EXPECTED_S + 10
    looks = [at for at, phase, cell in engine.log if phase == "finish" and cell.host == "slow"]
    assert looks[0] >= EXPECTED_S  # first at the expected time, then rarely
    assert all(POLL_S <= later - earlier < POLL_S + 10 for earlier, later in pairwise(looks))
    assert rows["slow"]["visits"] == len(looks) - 1  # the last found it done
    assert rows["h0"]["visits"] == 0


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("unreachable", "unreachable"),
        ("busy", "busy"),
        ("refused", "preflight refused"),
        ("capped", "cap not given back"),
    ],
)
def test_a_host_with_a_failure_is_set_aside_for_this_call(tmp_path, result, said, kind):
    engine, found = driven(tmp_path, result, ["a", "b"], repeats=3, says={"b": said})
    rows = [row for row in found["rows"] if row["host"] == "b"]
    assert {row["class"] for row in rows} == {kind}
    assert sum(phase == "start" and cell.host == "b" for _, phase, cell in engine.log) == 1
    assert sum(row["text"].startswith("not tried after as-is repeat 1") for row in rows) == 2
    assert [row["state"] for row in found["rows"] if row["host"] == "a"] == ["done"] * 3
    assert found["done"] == (4 if said == "capped" else 3)  # it was measured as asked; its limits are another matter


def test_a_run_beyond_its_deadline_is_ended(tmp_path, result):
    engine, found = driven(tmp_path, result, ["a"], repeats=1, took_s={"a": 9e9})
    assert found["failures"] == {"timed out": 1}
    assert engine.now_s < 400 + 2 * POLL_S


def test_a_run_that_is_taken_up_was_visited_then_and_is_due_as_ever(tmp_path, result):
    engine, found = driven(tmp_path, result, ["a"], repeats=1, says={"a": "taken up"})
    (row,) = found["rows"]
    assert (row["state"], row["visits"]) == ("done", 1)
    starts, looks = ([at for at, phase, _ in engine.log if phase == wanted] for wanted in ("start", "finish"))
    assert [round(look - starts[0]) for look in looks] == [2 + EXPECTED_S - 40]  # and no look before


def test_a_host_that_was_cut_off_keeps_its_power_group_until_the_deadline_of_its_run(tmp_path, result):
    groups = {"a": "g", "b": "g"}
    engine, found = driven(tmp_path, result, ["a", "b", "c"], groups, repeats=2, says={"a": "lost"})
    assert found["done"] == 4
    (lost,) = [at for cell, at in engine.began.items() if cell.host == "a"]
    after = [at for cell, at in engine.began.items() if cell.host == "b" and at > lost]
    assert after
    assert min(after) >= lost + 400  # it may measure all that time
    assert max(at for cell, at in engine.began.items() if cell.host == "c") < 400  # others do not wait
    given_up = max(at for at, phase, cell in engine.log if phase == "finish" and cell.host == "a")
    assert any(cell.host == "a" for at, cells in engine.noted if at > given_up for cell in cells)  # for the next call


@pytest.mark.parametrize(
    ("said", "left", "waits"),
    [
        ("busy", "", True),
        ("met another", "", True),  # which had begun while the login was over
        ("unreachable as it began", "", True),
        ("failed as it began", "", True),
        ("unreachable", "a", True),  # an earlier controller left a run there
        ("failed", "a", True),
        ("unreachable", "", False),
        ("failed", "", False),
        ("refused", "", False),
    ],
)
def test_a_power_group_waits_wherever_a_run_may_go_on_unseen(tmp_path, result, said, left, waits):
    groups = {"a": "g", "b": "g"}
    engine, found = driven(tmp_path, result, ["a", "b"], groups, repeats=2, says={"a": said}, left=left)
    assert found["done"] == 2
    (began,) = [at for at, phase, cell in engine.log if phase == "start" and cell.host == "a"]
    after = min(at for at, phase, cell in engine.log if phase == "start" and cell.host == "b" and at > began)
    assert (after >= began + 400) == waits
    assert after < began + 420


@pytest.mark.parametrize("when", ["log", "began"])
def test_after_an_interrupt_a_host_that_is_not_reached_keeps_its_group(tmp_path, result, monkeypatch, when):
    """The call is interrupted before the host told that it started, and after."""
    pytest.importorskip("yaml")
    for name in PLAYBOOK:
        state.write(tmp_path / "demo" / name, b"candidates: {vars: {power_group: g}, hosts: {a: {}, b: {}}}")
    document = planned("demo", [Host(name, "g", None, None, name) for name in "ab"])
    state.write(tmp_path / "r" / "demo" / PLAN, canonical(document))

    class Interrupted(Simulated):
        def wait(self, seconds):
            if getattr(self, when):
                raise KeyboardInterrupt
            return super().wait(seconds)

    def run(engine):
        monkeypatch.setattr(engine_room, "Plays", lambda *given: engine)
        monkeypatch.setattr(asked, "time", SimpleNamespace(monotonic=lambda: engine.now_s))
        return asked.run(tmp_path / "demo", tmp_path / "r", 5, None, lambda text: None)

    monkeypatch.setattr(wheelhouse, "load", lambda folder: {})
    first = Interrupted(tmp_path, result)
    with pytest.raises(UsageError, match="the same command takes them up"):
        run(first)
    ((_, _, cell),) = first.log
    second = Simulated(tmp_path, result, says={cell.host: "unreachable"})
    assert run(second)["failures"] == {"unreachable": 1}
    begun = [(at, one.host) for at, phase, one in second.log if phase == "start"]
    assert [host for _, host in begun] == [cell.host, *({"a", "b"} - {cell.host})]
    assert begun[1][0] - begun[0][0] >= 400


def planned(fleet, hosts, created_utc="2026-01-01T00:00:00Z"):
    return plan.make(
        fleet, hosts, ["as-is"], 1, [], seed=1, group="candidates", versions=VERSIONS, expected_s=EXPECTED_S,
        deadline_s=400.0, created_utc=created_utc,
    )  # fmt: skip


def test_a_run_on_a_host_is_of_one_plan_in_both_plays_and_reads_the_inventory_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_room, "check_ansible", lambda: tmp_path)
    given = []
    runner = SimpleNamespace(run=lambda **more: given.append(more) or SimpleNamespace(rc=0))
    monkeypatch.setitem(sys.modules, "ansible_runner", runner)
    names = []
    for fleet, at in (("before", "2026-01-01T00:00:00Z"), ("after", "2026-01-01T00:00:00Z"), ("before", "2026-01-02")):
        document = planned(fleet, [Host("a", None, None, None, "a")], at)
        (cell,) = plan.cells_of(document)
        for again in (document, json.loads(json.dumps(document))):  # the next controller goes on with the same plan
            plays = engine_room.Plays(tmp_path / "demo", tmp_path, again, {}, 5, 0.0)
            plays.start([cell])
            plays.finish({cell: False})
            plays.stop()
        names.append({one["extravars"]["cells"]["a"]["name"] for one in given})
        assert {one["inventory"] for one in given} == {str(tmp_path / "demo" / "inventory.yml")}
        given.clear()
    assert [len(one) for one in names] == [1, 1, 1]
    assert len(set.union(*names)) == 3


def test_a_limit_that_is_given_back_later_is_no_failure_any_more(tmp_path, result):
    _, found = driven(tmp_path, result, ["a", "b"], repeats=2, says={"a": "capped", "b": "capped"})
    assert (found["done"], found["failures"]) == (2, {"cap not given back": 4})
    _, found = driven(tmp_path, result, ["a", "b"], repeats=2, says={"b": "unreachable"})
    assert {row["host"] for row in found["rows"] if row["class"] == "cap not given back"} == {"b"}
    _, found = driven(tmp_path, result, ["a", "b"], repeats=2)
    assert (found["done"], found["failures"]) == (4, {})


def test_a_result_that_was_changed_on_the_way_is_no_result(tmp_path, result):
    _, found = driven(tmp_path, result, ["a", "b"], repeats=2, says={"b": "changed"})
    assert (found["done"], found["failures"]) == (2, {"bad result": 2})  # the next is tried all the same
    assert "its sum differs" in next(row["text"] for row in found["rows"] if row["class"])


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ({"state": "gone"}, "bad result"),
        ({"state": "done", "exit": 2, "error": {"code": "busy", "text": "x"}}, "busy"),
        ({"state": "done", "exit": 2, "error": {"code": "level", "text": "x"}}, "preflight refused"),
        ({"state": "done", "exit": 2, "error": {"code": "write", "text": "x"}, "measured": True}, "bad result"),
        ({"state": "done", "exit": 130, "timed_out": True}, "timed out"),
        ({"state": "done", "exit": 70, "sha256": "x"}, "cap not given back"),
        ({"state": "done", "exit": 0, "sha256": "x", "restore": {"exit": 70, "text": "y"}}, "cap not given back"),
        ({"state": "running"}, "timed out"),
        ({"state": "running", "restore": {"exit": 70}}, "cap not given back"),
        ({"state": "done", "error": 7, "restore": []}, "preflight refused"),
    ],
)
def test_how_a_run_ended_is_told_apart(outcome, kind):
    found = verdict(outcome)
    assert found is not None
    assert found[0] == kind
    assert verdict({"state": "done", "exit": 0, "sha256": "x", "restore": {"exit": 0}}) is None
    assert verdict({"state": "done", "exit": 0, "sha256": "x", "timed_out": True}) is None  # it was over all the same


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"suite": SUITE_VERSION + 1}, "of suite"),
        ({"kernels": VERSIONS | {"mem_chase": 9}}, "of another version"),
        ({"cap": "300W"}, "is at as-is, not at 300W"),
        ({"stopped": "interrupted"}, "interrupted before its stop"),
        ({"data": b"no gzip"}, "is not gzip"),
        ({"cut": True}, "was cut"),
        ({"data": gzip.compress(b'{"schema": "cpubench.run/1"}')}, "missing required"),
    ],
)
def test_a_result_that_is_not_what_was_asked_is_refused_and_nothing_is_stored(tmp_path, result, change, words):
    if "stopped" in change:
        document = made.made_run(2, suite=SUITE_VERSION)
        cut = sealed({**document, "stopped": {**document["stopped"], "by": change["stopped"]}})
        change = {"data": gzip.compress(json.dumps(cut).encode())}
    data = change.get("data", result[0])[: -9 if change.get("cut") else None]
    (tmp_path / "in").write_bytes(data)
    cell = Cell("h", change.get("cap", "as-is"), 1, "0" * 12)
    asked_for = {"suite": change.get("suite", SUITE_VERSION), "kernels": change.get("kernels", VERSIONS)}
    with pytest.raises(UsageError, match=words):
        receive(tmp_path / "in", hashlib.sha256(data).hexdigest(), cell, asked_for, tmp_path)
    outcome = {"state": "done", "sha256": hashlib.sha256(data).hexdigest()}
    assert taken(outcome, tmp_path / "in", cell, asked_for, tmp_path)[0] == "bad result"
    assert not cell_folder(tmp_path, cell).exists()


def test_a_result_takes_the_place_of_a_failure(tmp_path, result):
    cell = Cell("h", "as-is", 1, "0" * 12)
    state.write_failure(tmp_path, cell, "busy", "x")
    (tmp_path / "in").write_bytes(result[0])
    receive(tmp_path / "in", result[1], cell, {"suite": SUITE_VERSION, "kernels": VERSIONS}, tmp_path)
    assert state.is_done(tmp_path, cell)
    assert state.failure(tmp_path, cell) is None
    assert not (tmp_path / "in").exists()


def test_results_that_cannot_be_written_are_no_bad_result(tmp_path, result):
    (tmp_path / "h").write_text("a file")
    (tmp_path / "in").write_bytes(result[0])
    document = {"suite": SUITE_VERSION, "kernels": VERSIONS}
    with pytest.raises(UsageError, match="cannot be written"):
        taken({"sha256": result[1]}, tmp_path / "in", Cell("h", "as-is", 1, "0" * 12), document, tmp_path)


def test_what_a_killed_controller_left_is_taken_up_first(tmp_path, result):
    cells = [Cell("h", "as-is", repeat, "0" * 12) for repeat in (1, 2, 3)]
    assert asked.going_first(asked.left_going(tmp_path), cells) == cells
    (tmp_path / GOING).write_text(json.dumps([list(cells[2])]))
    left = asked.left_going(tmp_path)
    assert asked.going_first(left, cells) == [cells[2], *cells[:2]]  # or another of its power group would start
    others = [Cell("a", "as-is", repeat, "1" * 12) for repeat in (1, 2)]  # and the plan is another now
    anew = [cell._replace(suite="1" * 12) for cell in cells]
    assert asked.going_first(left, [*others, *anew]) == [anew[0], *others, *anew[1:]]
    (tmp_path / GOING).write_text("[1")
    assert asked.left_going(tmp_path) == set()
    (tmp_path / "h").mkdir()
    incoming(tmp_path, cells[0]).write_bytes(result[0])
    incoming(tmp_path, cells[1]).write_bytes(result[0][:-100])
    salvage(cells, {"suite": SUITE_VERSION, "kernels": VERSIONS}, tmp_path)
    assert [state.is_done(tmp_path, cell) for cell in cells] == [True, False, False]
    assert [state.failure(tmp_path, cell) for cell in cells] == [None] * 3
    assert not list(tmp_path.glob("*/.*"))


GOOD, STUCK = {"exit": 0, "text": ""}, {"exit": 70, "text": "still at 300 W"}


@pytest.mark.parametrize(
    ("cap", "said", "cleaned", "until", "words"),
    [
        ("as-is", {"exit": 0, "restore": GOOD}, GOOD, "clean", None),
        ("300W", {"exit": 0, "restore": GOOD}, GOOD, "fetch", None),
        ("300W", {"exit": 0, "restore": STUCK}, GOOD, "fetch", "still at 300 W"),
        ("300W", {"exit": 70, "error": {"code": "limits", "text": "odd"}, "restore": GOOD}, GOOD, "fetch", "odd"),
        ("as-is", {"exit": 0, "restore": GOOD}, STUCK, "clean", "still at 300 W"),
        ("300W", {"exit": 70, "restore": GOOD}, GOOD, "taken", "no reason was told"),
        ("300W", {"exit": 70, "restore": STUCK}, GOOD, "no result", "still at 300 W"),
        ("300W", None, GOOD, "fetch", "not known whether the limit was given back"),
        ("as-is", None, GOOD, "fetch", None),
    ],
)
def test_a_limit_not_given_back_is_told_wherever_a_controller_was_killed(tmp_path, cap, said, cleaned, until, words):
    data, sum_ = packed_at(cap)
    cell, document = Cell("h", cap, 1, "0" * 12), {"suite": SUITE_VERSION, "kernels": VERSIONS}
    file, memory = incoming(tmp_path, cell), {}
    outcome = {"state": "done", **(said or {})} | ({} if until == "no result" else {"sha256": sum_})
    for task, answer in (("look", outcome), ("fetch", {}), ("clean", {"state": "cleaned", "restore": cleaned})):
        if task == "fetch" and until != "no result":
            state.write(file, data)
        if said is not None and (task != "clean" or until == "clean"):
            told = {"host": "h", "task": task, "res": {"stdout": json.dumps(answer)}}
            hear(memory, "finish", event := {"event": "runner_on_ok", "event_data": told})
            engine_room.keep(memory, event, {"h": {"incoming": str(file)}})
    if until == "taken":  # and its failure not yet stored
        taken(outcome, file, cell, document, tmp_path)
    salvage([cell], document, tmp_path)
    assert state.is_done(tmp_path, cell) == (until != "no result")
    failed = state.failure(tmp_path, cell)
    assert (failed and failed["class"]) == (words and "cap not given back")
    assert words is None or words in failed["text"]
    assert not list(tmp_path.glob("*/.*"))
    salvage([cell], document, tmp_path)
    assert state.failure(tmp_path, cell) == failed


def packed_at(cap):
    if cap == "as-is":
        return packed()
    data = gzip.compress(json.dumps(made_capped_run(2, caps={cap: (1.2, 0.6)}, suite=SUITE_VERSION)).encode())
    return data, hashlib.sha256(data).hexdigest()


def test_groups_are_noted_while_they_measure(tmp_path, result):
    engine, _ = driven(tmp_path, result, ["a", "b"], {"a": "g", "b": "g"}, repeats=1)
    assert max(len(cells) for _, cells in engine.noted) == 1
    assert {cell.host for _, cells in engine.noted for cell in cells} == {"a", "b"}


def test_without_ansible_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ansible_runner", None)
    with pytest.raises(UsageError, match=r"pip install 'cpubench\[fleet\]'"):
        engine_room.check_ansible()
