"""Caps that are set and given back on trees of files, with a kernel that refuses, clamps, locks and forgets."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from host.test_host_surroundings import namespaces
from hosts.surroundings import may_unshare
from power import limit_trees as trees
from power.limit_trees import Kernel, raises

from cpubench.errors import NotGivenBack, UsageError
from cpubench.power import caps, giveback, journal, session
from cpubench.power.levels import parse_level
from cpubench.power.registers import Host
from cpubench.power.states import State


@pytest.fixture
def xeon(tmp_path):
    return trees.xeon(tmp_path)


def left(root):
    """The journal on disk, read as a person would."""
    paths = list((root / "run/cpubench").glob("cap-*.json"))
    return json.loads(paths[0].read_text()) if paths else None


def capped(host, *steps):
    """A session with a cap of 200 W in each zone, in which the steps happen one after the other."""
    with session.capping(host) as open_:
        session.apply(open_, 200_000_000)
        for step in steps:
            step(open_)


def holds(root, index, number):
    return int((root / trees.POWERCAP / f"intel-rapl:{index}/constraint_{number}_power_limit_uw").read_text())


def test_a_cap_is_set_in_every_package_and_given_back(xeon):
    before, kernel = trees.limits(xeon), Kernel()
    with session.capping(trees.host(xeon, kernel)) as open_:
        value = caps.value_of(parse_level("501W"), open_.controls)
        applied = session.apply(open_, value)
        assert (applied.state, set(applied.read.values())) == (State.SET_UNVERIFIED, {250_500_000})
        assert [holds(xeon, i, n) for i in "1a" for n in (0, 1)] == [250_500_000] * 4
        assert [(e["old"], e["ours"]) for e in left(xeon)["entries"]] == [
            (350_000_000, [250_500_000]), (420_000_000, [250_500_000])] * 2  # fmt: skip
        assert session.changed(open_) == []
    assert trees.limits(xeon) == before
    assert left(xeon) is None
    assert not any("enabled" in name for name, _ in kernel.writes)  # on already: writing it would set a bit for good
    assert not any(part in name for name, _ in kernel.writes for part in ("rapl:0/", "rapl:1:0/"))


def test_the_journal_is_on_disk_before_the_first_write(xeon):
    seen = []

    def look(value):
        seen.append(left(xeon))
        return value

    with session.capping(trees.host(xeon, Kernel(power_limit=look))) as open_:
        session.apply(open_, 200_000_000)
        assert len(seen[0]["entries"]) == 4
        assert (seen[0]["pid"], seen[0]["boot_id"]) == (os.getpid(), trees.BOOT)


def test_lowering_writes_long_first_and_raising_short_first(xeon):
    kernel = Kernel()
    with session.capping(trees.host(xeon, kernel)) as open_:
        for value in (200_000_000, 300_000_000):
            session.apply(open_, value)
    numbers = [name.split("constraint_")[1][0] for name, _ in kernel.writes if "rapl:1/" in name]
    assert numbers == ["0", "1", "1", "0", "1", "0"]


def test_levels_follow_each_other_and_as_is_is_what_was_found(xeon):
    before = trees.limits(xeon)
    with session.capping(trees.host(xeon)) as open_:
        for value in (200_000_000, 300_000_000, 150_000_000):
            assert session.apply(open_, value).stands
            assert holds(xeon, "a", 1) == value
        session.give_back(open_)
        assert trees.limits(xeon) == before
        assert left(xeon) is None
        assert session.apply(open_, 100_000_000).stands
    assert trees.limits(xeon) == before


@pytest.mark.parametrize("limit", [0, 350])
def test_a_zone_that_was_off_is_off_again(tmp_path, limit):
    """geopm#3936: 0 W does not switch a limit off. On comes after the limits: they may be 0 W while it is off."""
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0", limit, limit, enabled="0")
    before, kernel = trees.limits(tmp_path), Kernel()
    with session.capping(trees.host(tmp_path, kernel)) as open_:
        assert session.apply(open_, 200_000_000).stands
        assert (tmp_path / trees.POWERCAP / "intel-rapl:0/enabled").read_text() == "1\n"
    assert trees.limits(tmp_path) == before
    assert [value for name, value in kernel.writes if "enabled" in name] == [1, 0]
    # On after the limits, and off before them: 0 W is in force at no moment, whenever it is killed.
    assert ["enabled" in name for name, _ in kernel.writes] == [False, False, True, True, False, False]


@pytest.mark.parametrize(("old", "now"), [(0, 200), (150, 200), (350, 350)])
def test_a_zone_that_stays_on_is_not_given_lower_limits(tmp_path, old, now):
    """They were in force of nothing while it was off, and would be now."""
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0", old, old, enabled="0")
    kernel = Kernel(enabled=lambda value: 1)
    with pytest.raises(NotGivenBack, match="enabled: holds 1 after 0 was written"):
        capped(trees.host(tmp_path, kernel))
    assert [holds(tmp_path, 0, n) // 10**6 for n in (0, 1)] == [now, now]
    assert left(tmp_path) is not None
    kernel.rules = {}
    assert all(one.good for one in giveback.give_back(trees.host(tmp_path), journal.load(tmp_path)))
    assert [holds(tmp_path, 0, n) // 10**6 for n in (0, 1)] == [old, old]


def test_a_zone_that_takes_no_limit_while_it_is_off_is_switched_on_first(tmp_path):
    trees.base(tmp_path, 1)
    folder = tmp_path / trees.zone(tmp_path, "intel-rapl:0", "package-0", 350, 420, enabled="0")

    def only_on(value):
        return value if (folder / "enabled").read_text() == "1\n" else raises(errno.ENODATA)(value)

    before = trees.limits(tmp_path)
    with session.capping(trees.host(tmp_path, Kernel(power_limit=only_on))) as open_:
        assert session.apply(open_, 200_000_000).stands
        (folder / "enabled").write_text("0\n")  # and somebody switches it off meanwhile
        assert session.changed(open_) == ["intel-rapl/package-0/enabled: holds 0, not 1"]
    assert trees.limits(tmp_path) == before
    capped(trees.host(tmp_path, Kernel(power_limit=only_on)))  # and if it is on until the end
    assert trees.limits(tmp_path) == before


@pytest.mark.parametrize(
    ("rules", "state"),
    [
        ({"power_limit": raises(errno.ENODATA)}, State.LOCKED),
        ({"power_limit": raises(errno.EINVAL)}, State.REFUSED),
        ({"power_limit": raises(errno.EACCES)}, State.REFUSED),
        ({"rapl:a/constraint_1": raises(errno.EIO)}, State.REFUSED),  # the last register of the second socket
        ({"power_limit": lambda value: 180_000_000 if value < 300_000_000 else value}, State.CLAMPED),
    ],
)
def test_what_is_not_taken_has_a_state_and_leaves_nothing_changed(xeon, rules, state):
    before = trees.limits(xeon)
    with session.capping(trees.host(xeon, Kernel(**rules))) as open_:
        applied = session.apply(open_, 200_000_000)
        assert applied.state is state
        assert not applied.stands
        assert trees.limits(xeon) == before
        assert left(xeon) is None
    assert trees.limits(xeon) == before


def test_a_write_that_changes_nothing_is_ignored(xeon):
    kernel = Kernel()
    kernel.rules = {f"rapl:{i}/constraint_{n}": lambda value, n=n: (350, 420)[n] * 10**6 for i in "1a" for n in (0, 1)}
    with session.capping(trees.host(xeon, kernel)) as open_:
        assert session.apply(open_, 200_000_000).state is State.IGNORED


@pytest.mark.parametrize(
    ("rules", "state"),
    [
        ({"enabled": lambda value: 0}, State.IGNORED),
        ({"enabled": raises(errno.ENOSYS)}, State.LOCKED),
        ({"power_limit": raises(errno.ENODATA), "enabled": lambda value: 0}, State.LOCKED),
    ],
)
def test_a_switch_that_stays_off(tmp_path, rules, state):
    """A locked zone shows 0 although the firmware's cap is in force: its watts are shown all the same."""
    trees.base(tmp_path, 1)
    trees.zone(tmp_path, "intel-rapl:0", "package-0", 150, 150, enabled="0")
    before = trees.limits(tmp_path)
    with session.capping(trees.host(tmp_path, Kernel(**rules))) as open_:
        assert session.apply(open_, 100_000_000).state is state
    assert trees.limits(tmp_path) == before
    assert caps.choose(trees.host(tmp_path))[0][0].capped[0].value == 150_000_000


def test_a_register_in_steps_of_an_eighth_of_a_watt_reads_back_rounded(xeon):
    with session.capping(trees.host(xeon, Kernel(power_limit=lambda value: value // 125_000 * 125_000))) as open_:
        assert session.apply(open_, 200_060_000).stands


def test_a_frequency_that_is_not_taken_is_an_ignored_proxy(tmp_path):
    trees.base(tmp_path, 1)
    policy = f"{trees.SYS_CPU}/cpufreq/policy0"
    trees.write(tmp_path, {f"{policy}/scaling_max_freq": "3500000", f"{policy}/cpuinfo_max_freq": "3500000"})
    with session.capping(trees.host(tmp_path), frequency=True) as open_:
        assert session.apply(open_, 2_000_000).state is State.PROXY
    assert (tmp_path / policy / "scaling_max_freq").read_text() == "3500000\n"
    with session.capping(trees.host(tmp_path, Kernel(max_freq=lambda value: 3_500_000)), frequency=True) as open_:
        assert session.apply(open_, 2_000_000).state is State.IGNORED


def test_epyc_and_grace_limits_are_given_back(tmp_path):
    trees.epyc(tmp_path)
    before = trees.limits(tmp_path)
    with session.capping(trees.host(tmp_path)) as open_:
        assert session.apply(open_, 200_000_000).stands
        assert trees.limits(tmp_path) != before
    assert trees.limits(tmp_path) == before


def test_hsmp_by_its_device_is_given_back(tmp_path):
    from power.test_power_limits import Mailbox

    trees.base(tmp_path, 2, "AuthenticAMD")
    trees.write(tmp_path, {"dev/hsmp": ""})
    mailbox = Mailbox()
    with session.capping(Host(tmp_path, ioctl=mailbox)) as open_:
        assert session.apply(open_, 200_000_000).stands
        assert mailbox.limits == {0: 200_000, 1: 200_000}
    assert mailbox.limits == {0: 360_000, 1: 360_000}


def test_a_limit_that_something_else_changed_is_left_alone_and_told(xeon):
    def meddle(open_):
        (xeon / trees.POWERCAP / "intel-rapl:1/constraint_0_power_limit_uw").write_text("120000000\n")
        assert session.changed(open_) == ["intel-rapl/package-0/long_term: holds 120000000, not 200000000"]

    with pytest.raises(NotGivenBack) as told:
        capped(trees.host(xeon), meddle)
    assert (told.value.exit_code, told.value.code) == (70, "not_given_back")
    assert f"echo 350000000 > {xeon}/sys/class/powercap/intel-rapl:1/constraint_0_power_limit_uw" in str(told.value)
    assert "left alone" in str(told.value)
    assert [holds(xeon, i, n) // 10**6 for i in "1a" for n in (0, 1)] == [120, 420, 350, 420]
    assert left(xeon) is not None
    with pytest.raises(UsageError, match="ended without giving"), session.capping(trees.host(xeon)):
        pass
    assert all(one.good for one in giveback.give_back(trees.host(xeon), journal.load(xeon), force=True))
    assert holds(xeon, 1, 0) == 350_000_000


def test_a_limit_that_cannot_be_given_back_is_told_with_the_command(xeon):
    kernel = Kernel()
    refuse = {"rapl:a/constraint_0": raises(errno.EACCES)}
    with pytest.raises(NotGivenBack) as told:
        capped(trees.host(xeon, kernel), lambda open_: kernel.rules.update(refuse))
    assert str(told.value).endswith(
        f"echo 350000000 > {xeon}/sys/class/powercap/intel-rapl:a/constraint_0_power_limit_uw"
    )
    assert [holds(xeon, i, n) // 10**6 for i in "1a" for n in (0, 1)] == [350, 420, 200, 420]
    assert left(xeon)["entries"]
    kernel.rules = {}
    with session.capping(trees.host(xeon), auto_restore=True):
        assert holds(xeon, "a", 0) == 350_000_000


def test_zones_that_are_numbered_anew_are_found_by_name(xeon):
    folder = xeon / trees.POWERCAP
    with session.capping(trees.host(xeon)) as open_:
        session.apply(open_, 200_000_000)
        (folder / "intel-rapl:a").rename(folder / "intel-rapl:b")
    assert holds(xeon, "b", 0) == 350_000_000


def test_a_zone_that_went_away_is_a_failure(xeon):
    folder = xeon / trees.POWERCAP
    with pytest.raises(NotGivenBack, match="is not there any more"):
        capped(trees.host(xeon), lambda open_: (folder / "intel-rapl:a").rename(xeon / "elsewhere"))


def test_a_second_capper_is_refused_and_changes_nothing(xeon):
    with session.capping(trees.host(xeon)) as open_:
        session.apply(open_, 200_000_000)
        during = trees.limits(xeon)
        with pytest.raises(UsageError, match=f"process {os.getpid()} caps this host") as told:
            journal.lock(xeon)
        assert told.value.code == "busy"
        assert trees.limits(xeon) == during


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_whatever_ends_the_session_the_limits_are_as_before(xeon, error):
    before = trees.limits(xeon)

    def end(open_):
        assert trees.limits(xeon) != before
        raise error

    with pytest.raises(error):
        capped(trees.host(xeon), end)
    assert (trees.limits(xeon), left(xeon)) == (before, None)


def test_an_interrupt_while_limits_are_given_back_begins_that_again(xeon):
    before, kernel = trees.limits(xeon), Kernel()
    interrupts = iter([KeyboardInterrupt()])

    def interrupted(value):
        for one in interrupts:
            raise one
        return value

    with pytest.raises(KeyboardInterrupt):
        capped(trees.host(xeon, kernel), lambda open_: kernel.rules.update({"rapl:a/constraint_0": interrupted}))
    assert (trees.limits(xeon), left(xeon)) == (before, None)


def test_a_full_disk_means_no_cap(xeon, monkeypatch):
    before = trees.limits(xeon)

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal, "write_atomic", full)
    with pytest.raises(UsageError, match="No space left"), session.capping(trees.host(xeon)) as open_:
        session.apply(open_, 200_000_000)
    assert trees.limits(xeon) == before


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("end", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_limits_stay_only_once_the_journal_says_so(xeon, monkeypatch, end, written):
    """``written``: the file is there when Ctrl-C comes, or before the folder was synced."""
    before, write_atomic = trees.limits(xeon), journal.write_atomic

    def fail(path, data):
        if written:
            write_atomic(path, data)
        raise end

    def keep(open_):
        monkeypatch.setattr(journal, "write_atomic", fail)
        session.keep(open_)

    with pytest.raises((UsageError, KeyboardInterrupt)):
        capped(trees.host(xeon), keep)
    assert (trees.limits(xeon), left(xeon)) == (before, None)
    os.close(journal.lock(xeon))  # and the guardian has ended


BIND = "40 27 0:22 {} {} rw,nosuid - {} tmpfs rw"


@pytest.mark.parametrize(
    ("own", "mount", "goes"),
    [
        (("pid", "uts"), "", False),
        (("pid",), BIND.format("/", "/run", "tmpfs"), False),
        (("pid",), BIND.format("/", "/run/cpubench", "tmpfs"), False),  # --tmpfs: it ends with the container too
        (("pid",), BIND.format("/var/lib/docker/volumes/0f/_data", "/run/cpubench", "ext4"), False),
        (("pid",), BIND.format("/cpubench", "/run/cpubench", "tmpfs"), True),
        (("uts",), "", True),  # a service
        ((), "", True),
    ],
)
def test_a_container_that_takes_journal_and_guardian_with_it_caps_nothing(xeon, own, mount, goes):
    trees.write(namespaces(xeon, own), {"proc/self/mountinfo": mount})
    before = trees.limits(xeon)
    if goes:
        capped(trees.host(xeon))
    else:
        with pytest.raises(UsageError, match="-v /run/cpubench:/run/cpubench") as told:
            capped(trees.host(xeon))
        assert (told.value.code, told.value.exit_code, told.value.where) == ("container", 2, "/run/cpubench")
    assert (trees.limits(xeon), left(xeon)) == (before, None)


@pytest.mark.skipif(not may_unshare(), reason="needs root and mount namespaces")
@pytest.mark.parametrize(
    ("space", "mount", "goes"),
    [
        ("-mn", "true", True),  # of the network: no container
        ("-mpf", "true", False),
        ("-mpf", "mount -t tmpfs none /run/cpubench", False),
        ("-mpf", "mount --bind /run/cpubench /run/cpubench", True),
    ],
)
def test_a_real_pid_namespace_is_a_container_and_a_bound_folder_is_its_hosts(space, mount, goes):
    """The host's /run is a tmpfs of the test's own."""
    code = "from pathlib import Path; from cpubench.power.journal import check_outlives; check_outlives(Path('/'))"
    script = f'mount -t tmpfs none /run; mkdir /run/cpubench; {mount}; mount -t proc proc /proc; exec "$@"'
    command = ["unshare", space, "sh", "-ec", script, "sh", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0, "in a container (" in done.stderr) == (goes, not goes), done.stderr


def kept(root, change=None):
    """A journal of a session whose process and guardian were killed."""
    with session.capping(trees.host(root)) as open_:
        session.apply(open_, 200_000_000)
        session.keep(open_)
    path = journal.place(root, trees.BOOT)
    document = json.loads(path.read_text()) | {"kept": False} | (change or {})
    path.write_bytes(journal.canonical(journal.sealed(document)))
    return path


def test_what_was_killed_with_its_guardian_is_found_at_the_next_start(xeon):
    before = trees.limits(xeon)
    kept(xeon)
    during = trees.limits(xeon)
    with pytest.raises(UsageError, match="gives the limits back") as told, session.capping(trees.host(xeon)):
        pass
    assert (told.value.code, trees.limits(xeon)) == ("stale", during)
    with session.capping(trees.host(xeon), auto_restore=True):
        assert trees.limits(xeon) == before


def test_a_pid_that_is_another_process_now_does_not_own_the_journal(xeon):
    kept(xeon, {"pid": 77, "starttime": 1234})
    stat = "77 (a) b) S 1 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 {} 1 1"
    for ticks, lives in (("1234", True), ("1235", False)):
        trees.write(xeon, {"proc/77/stat": stat.format(ticks)})
        assert journal.owner_lives(xeon, journal.load(xeon)) is lives
    assert journal.starttime(xeon, 78) == 0


@pytest.mark.parametrize(
    "spoil", ["", "{", "[]", "null", '{"schema": "cpubench.caps/1"}', "\xff", "9" * 5000, "[" * 9000]
)
def test_a_spoiled_journal_is_kept_and_nothing_is_capped(xeon, spoil):
    path = kept(xeon)
    path.write_text(spoil, encoding="latin-1")
    during = trees.limits(xeon)
    with (
        pytest.raises(UsageError, match="cut or spoiled") as told,
        session.capping(trees.host(xeon), auto_restore=True),
    ):
        pass
    assert (told.value.exit_code, told.value.where) == (2, str(path))
    assert (trees.limits(xeon), path.read_text(encoding="latin-1")) == (during, spoil)


@pytest.mark.parametrize(
    "change", [{"entries": 3}, {"entries": [{}]}, {"more": 1}, {"boot_id": "../../x"}, {"entries": [{"key": 1}]}]
)
def test_a_sealed_journal_of_another_form_is_refused_too(xeon, change):
    kept(xeon, change)
    with pytest.raises(UsageError, match="cut or spoiled"):
        journal.load(xeon)


def test_a_cut_journal_is_never_read_as_a_shorter_one(xeon):
    path = kept(xeon)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match="cut or spoiled"):
            journal.load(xeon)


def test_the_limits_of_another_boot_are_not_written(xeon):
    kept(xeon)
    during = trees.limits(xeon)
    trees.write(xeon, {"proc/sys/kernel/random/boot_id": trees.BOOT.replace("1", "9")})
    with (
        pytest.raises(UsageError, match="of another boot") as told,
        session.capping(trees.host(xeon), auto_restore=True),
    ):
        pass
    assert (told.value.exit_code, trees.limits(xeon)) == (2, during)


def test_a_folder_that_others_can_write_is_no_place_for_a_journal(xeon):
    folder = xeon / "run/cpubench"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="only this user"), session.capping(trees.host(xeon)):
        pass
    folder.rmdir()
    (xeon / "elsewhere").mkdir()
    folder.symlink_to(xeon / "elsewhere")
    with pytest.raises(UsageError, match=r"only this user|cannot be made"), session.capping(trees.host(xeon)):
        pass


def test_a_journal_that_may_not_be_looked_for_is_no_missing_one(xeon):
    (xeon / "run/cpubench").write_text("")
    with pytest.raises(UsageError, match="run as root"):
        journal.load(xeon)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")
@pytest.mark.parametrize("capped_before", [False, True])
def test_another_user_than_root_is_told_so_and_changes_nothing(xeon, capped_before):
    before = trees.limits(xeon)
    if capped_before:  # by root, whose folder stays
        journal.own_folder(xeon)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setuid(65534)
            session.capping(trees.host(xeon)).__enter__()
        except UsageError as error:
            code = 0 if "run as root" in str(error) and error.exit_code == 2 else 3
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert trees.limits(xeon) == before


def test_without_a_boot_id_nothing_is_capped(xeon):
    (xeon / "proc/sys/kernel/random/boot_id").unlink()
    with pytest.raises(UsageError, match="mount /proc"), session.capping(trees.host(xeon)):
        pass


def test_a_guardian_that_was_killed_is_replaced_before_the_next_write(xeon):
    with session.capping(trees.host(xeon)) as open_:
        session.apply(open_, 200_000_000)
        first = open_.guardian.pid
        os.kill(first, signal.SIGKILL)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        session.apply(open_, 250_000_000)
        assert open_.guardian.pid != first


def test_a_forked_process_that_holds_the_pipe_does_not_keep_the_guardian_waiting(xeon):
    """The guardian sees the end of its parent itself, not only that of the pipe."""
    script = (
        "import os, pathlib, sys; from power import limit_trees as trees; from cpubench.power import session\n"
        "with session.capping(trees.host(pathlib.Path(sys.argv[1]))) as open_:\n"
        "    session.apply(open_, 200_000_000)\n"
        "    if os.fork() == 0:\n"
        "        os.read(0, 1); os._exit(0)\n"
        "    print(open_.guardian.pid, flush=True); os.kill(os.getpid(), 9)\n"
    )
    before = trees.limits(xeon)
    environment = {**os.environ, "PYTHONPATH": str(trees.Path(__file__).parents[1])}
    command = [sys.executable, "-c", script, str(xeon)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        until = time.monotonic() + 10
        while trees.limits(xeon) != before and time.monotonic() < until:
            time.sleep(0.01)
        assert trees.limits(xeon) == before
        child.stdin.close()
