"""The states of a cap from readings alone, and from a made-up host whose load obeys its limit."""

import contextlib
import subprocess
import sys
import time

import pytest
from pools import lived
from power import limit_trees as trees

from cpubench.errors import UsageError
from cpubench.power import checked as checking
from cpubench.power import verify as verifying
from cpubench.power.levels import External, parse_level
from cpubench.power.states import SENTENCES, State
from cpubench.power.verdict import Readings, judge
from cpubench.power.verify import Drawn, Gauge, Times, verify_external
from cpubench.power.virus import burning


def state(cap_w, watts, uncapped_w=300.0, rate=0.8, **more):
    return judge(State.SET_UNVERIFIED, Readings(cap_w, watts, uncapped_w, rate), **more)


@pytest.mark.parametrize(
    ("cap_w", "watts", "uncapped_w", "rate", "expected", "evidence"),
    [
        (200, [198, 199], 300, 0.8, State.VERIFIED, ()),
        (200, [206.9] * 4, 300, 0.8, State.VERIFIED, ()),  # 1.03 x 200 + 1 W
        (200, [207.1] * 4, 300, 0.8, State.OVER_CAP, ()),
        (200, [190, 190, 190, 223], 300, 0.8, State.OVER_CAP, ("peak",)),
        (150, [80], 80, 1.0, State.NOT_BINDING, ()),  # raplcap#4: below the cap is no failure
        (295, [292], 300, 0.99, State.NOT_BINDING, ()),
        (350, [200], 340, 0.6, State.NOT_BINDING, ("other_limit",)),  # variorum#445
        (200, [150], 300, 0.5, State.NOT_BINDING, ("other_limit",)),
        (200, [195], 300, 1.0, State.SET_UNVERIFIED, ("not_slower",)),
        (200, [195], None, None, State.SET_UNVERIFIED, ("no_uncapped",)),
        (200, None, None, 0.8, State.SET_UNVERIFIED, ("no_meter",)),
        (200, [], 300, 0.8, State.SET_UNVERIFIED, ("no_meter",)),
        (200, [195, float("nan")], 300, 0.8, State.SET_UNVERIFIED, ("no_meter",)),
        (200, [0, 0, 0], 300, 0.8, State.SET_UNVERIFIED, ("no_meter",)),
        (200, [195], float("nan"), 0.8, State.SET_UNVERIFIED, ("no_uncapped",)),
        (30, [75], 90, 0.9, State.OVER_CAP, ()),  # libmsr PR#27: a DRAM limit that does nothing
    ],
)
def test_states(cap_w, watts, uncapped_w, rate, expected, evidence):
    found = state(cap_w, watts, uncapped_w, rate)
    assert (found.state, found.evidence) == (expected, evidence)
    assert found.sentence.startswith(expected.sentence)


def test_what_became_of_the_write_comes_first():
    for written in set(State) - {State.SET_UNVERIFIED}:
        assert judge(written, Readings(200, [150], 300, 0.5)).state is written


def test_every_state_has_a_sentence():
    assert set(SENTENCES) == set(State)


def test_a_cap_of_somebody_else_is_a_claim_until_the_load_is_known_without_it():
    """A host that nobody has capped draws 195 W too: neither that it is slower was measured, nor that it drew more."""
    found = state(200, [195], None, None, external=True)
    assert (found.label, found.evidence, found.mean_w) == ("external_claim", ("no_uncapped",), 195)
    drawn = "195.0 W drawn, no more than a cap of 200 W allows; what it draws without was not measured"
    assert found.sentence == f"{State.EXTERNAL_CLAIM.sentence}: {drawn}"
    assert state(200, [195], 195, 1.0, external=True).label == "not_binding"
    assert state(200, [195], 300, 0.8, external=True).label == "verified(external)"
    assert state(200, [250], None, None, external=True).label == "over_cap"
    assert state(200, [100], None, None, external=True).label == "not_binding"
    assert state(200, None, None, None, external=True).label == "external_claim"


class Machine:
    """Draws 320 W under load and less under its limits; a clock that nobody waits for."""

    def __init__(self, root, monkeypatch, obeys=True):
        self.root, self.obeys, self.now, self.done = root, obeys, 0.0, 0.0
        self.loaded = False
        monkeypatch.setattr(time, "sleep", self.pass_)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def watts(self):
        if not self.loaded:
            return 90.0
        values = [int(p.read_text()) for p in (self.root / trees.POWERCAP).glob("*:[1a]/constraint_0_power_limit_uw")]
        return min(320.0, sum(values) / 1e6) if self.obeys else 320.0

    def pass_(self, seconds):
        self.now += seconds
        self.done += seconds * (self.watts() / 320) ** 0.5 * 1000

    def watch(self, seconds):
        self.pass_(seconds)
        return [self.watts()] * int(seconds)

    @contextlib.contextmanager
    def load(self):
        self.loaded = True
        yield lambda: int(self.done)
        self.loaded = False


def levels(*texts):
    return [parse_level(text) for text in texts]


def test_caps_are_verified_level_by_level_and_given_back(tmp_path, monkeypatch):
    trees.xeon(tmp_path)
    before, machine = trees.limits(tmp_path), Machine(tmp_path, monkeypatch)
    gauge = Gauge("package", machine.watch)
    rows = checking.checked(levels("250W", "60%", "319W", "100%"), trees.host(tmp_path), gauge, Times(), machine.load)
    assert [(r["level"], r["state"], r["cap_watts"], r["watts"]) for r in rows] == [
        ("250W", "verified", 250, 250), ("60%", "verified", 192, 192), ("319W", "not_binding", 319, 319),
        ("100%", "not_binding", 320, 320)]  # fmt: skip
    assert machine.now == pytest.approx(5 + 5 * 30)
    assert trees.limits(tmp_path) == before


def test_a_cap_that_does_nothing_is_switched_on_once_more_and_flagged(tmp_path, monkeypatch):
    trees.xeon(tmp_path)
    machine, kernel = Machine(tmp_path, monkeypatch, obeys=False), trees.Kernel()
    gauge = Gauge("package", machine.watch)
    (row,) = checking.checked(levels("200W"), trees.host(tmp_path, kernel), gauge, Times(), machine.load)
    assert (row["state"], row["flags"]) == ("over_cap", ["clamp_changed"])
    assert [value for name, value in kernel.writes if "enabled" in name] == [1, 1]
    assert "a reboot undoes that" in row["text"]


@pytest.mark.parametrize("scope", [None, "wall", "dram"])
def test_without_a_meter_of_its_scope_a_cap_is_set_and_unverified(tmp_path, monkeypatch, scope):
    trees.xeon(tmp_path)
    machine = Machine(tmp_path, monkeypatch)
    gauge = scope and Gauge(scope, machine.watch)
    (row,) = checking.checked(levels("200W"), trees.host(tmp_path), gauge, Times(), machine.load)
    assert (row["state"], row["evidence"], row["watts"]) == ("set_unverified", ["no_meter"], None)
    with pytest.raises(UsageError, match="needs a meter"):
        checking.checked(levels("70%"), trees.host(tmp_path), gauge, Times(), machine.load)


def test_all_of_the_uncapped_power_is_never_above_the_limit_in_force(tmp_path):
    trees.xeon(tmp_path)
    controls, _ = verifying.caps_session.caps.choose(trees.host(tmp_path))
    value_of = verifying.caps_session.caps.value_of
    assert value_of(parse_level("100%"), controls, uncapped_w=703.0) == 350_000_000
    assert value_of(parse_level("50%"), controls, uncapped_w=703.0) == 175_750_000


def test_a_cap_below_idle_is_refused_before_any_load(tmp_path, monkeypatch):
    trees.xeon(tmp_path)
    machine = Machine(tmp_path, monkeypatch)
    with pytest.raises(UsageError, match=r"89 W is below the idle power of 90\.0 W"):
        checking.checked(levels("89W"), trees.host(tmp_path), Gauge("package", machine.watch), Times(), machine.load)
    assert machine.now == 5


def test_a_locked_zone_needs_no_load_to_be_told(tmp_path, monkeypatch):
    trees.xeon(tmp_path)
    machine = Machine(tmp_path, monkeypatch)
    host = trees.host(tmp_path, trees.Kernel(power_limit=trees.raises(61)))
    (row,) = checking.checked(levels("200W"), host, None, Times(), machine.load)
    assert row["state"] == "locked"
    assert machine.now == pytest.approx(30)  # without the cap, and no more


def test_settling_is_five_time_windows(tmp_path, monkeypatch):
    trees.xeon(tmp_path)
    controls = trees.host(tmp_path) and verifying.caps_session.caps.choose(trees.host(tmp_path))[0]
    assert verifying.settle_s(controls, Times(settle_s=1)) == pytest.approx(5 * 0.999424)
    assert verifying.settle_s(controls, Times()) == 10


def test_an_external_cap_is_measured_and_never_written(monkeypatch, tmp_path):
    trees.xeon(tmp_path)
    machine = Machine(tmp_path, monkeypatch)
    found = verify_external(330, Gauge("package", machine.watch), None, Times(), machine.load)
    assert (found.label, found.mean_w) == ("external_claim", 320)
    slower = Drawn([400.0], 2000.0)
    assert (
        verify_external(330, Gauge("package", machine.watch), slower, Times(), machine.load).label
        == "verified(external)"
    )


def test_an_external_cap_of_the_wall_is_not_judged_by_a_package(monkeypatch, tmp_path):
    trees.xeon(tmp_path)
    machine = Machine(tmp_path, monkeypatch)
    gauge = Gauge("package", machine.watch)
    for cap_w in (330, 100):  # neither verified nor over_cap
        (row,) = checking.external(External(cap_w, "wall"), gauge, Times(), machine.load)
        assert (row["state"], row["evidence"], row["watts"]) == ("external_claim", ["no_meter"], None)
        assert row["text"].endswith(": it limits wall, the meter reads package")
    assert machine.now == 0  # a load would show nothing
    (row,) = checking.external(External(330, "package"), gauge, Times(), machine.load)
    assert (row["level"], row["state"]) == ("external 330W:package", "external_claim")
    (row,) = checking.external(External(100, "package"), gauge, Times(), machine.load)
    assert row["state"] == "over_cap"


def test_the_virus_ends_with_its_parent():
    script = (
        "import os, sys, psutil; from cpubench.power.virus import burning\n"
        "with burning([0, 0]):\n"
        "    print(*(child.pid for child in psutil.Process().children()), flush=True); os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    burners = [int(pid) for pid in done.stdout.split()]
    assert len(burners) == 2
    until = time.monotonic() + 20
    while any(map(lived, burners)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(lived, burners))


def test_the_virus_works_on_every_cpu_and_is_gone_afterwards():
    with burning([0, 0]) as count:
        until = time.monotonic() + 20
        while count() < 40 and time.monotonic() < until:
            time.sleep(0.02)
        assert count() >= 40
