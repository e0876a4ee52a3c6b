"""The pool with kernels that fail, crash, are killed and hang; and nothing is left of it, however it ends."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pools import CPUS, KERNELS, children, lived, open_files, rig

from cpubench import _native
from cpubench.measure import programs

FAULT, WORK = "test_fault", ("test_work", "steps=1000")


def test_a_failing_kernel_is_an_oserror_that_names_kernel_call_and_errno(tmp_path):
    with rig([(FAULT, "how=fail")], tmp_path) as r:
        r.prepare()
        with pytest.raises(PermissionError, match=r"test_fault\[how=fail\]: open") as caught:
            r.sample((FAULT, "how=fail"), 1)
        assert caught.value.errno == 1


def test_a_failing_prepare_is_an_oserror_and_release_after_it_is_harmless(tmp_path):
    with rig([(FAULT, "how=prepare")], tmp_path) as r:
        with pytest.raises(OSError, match="prepare") as caught:
            r.prepare()
        assert caught.value.errno == 28
        r.release((FAULT, "how=prepare"))


@pytest.mark.parametrize(
    ("how", "reason", "within_s"),
    [
        ("how=crash", r"copy on CPU \d+ killed by SIGSEGV \(11\)", 5),
        ("how=die", r"copy on CPU \d+ killed by SIGKILL \(9\)", 5),
        ("how=leave_a_child", r"copy on CPU \d+ killed by SIGKILL \(9\)", 5),
        ("how=hang", r"no answer within 1 s", 8),
    ],
)
def test_a_lost_copy_is_named_and_the_pool_goes_on(tmp_path, how, reason, within_s):
    with rig([(FAULT, how), WORK], tmp_path, copies=None) as r:
        r.prepare()
        began = time.monotonic()
        with pytest.raises(_native.CopyLost, match=rf"test_fault\[{how}\]: {reason}"):
            r.sample((FAULT, how), 1, deadline_ns=10**9)
        assert time.monotonic() - began < within_s
        assert len(children()) == len(r.pool.seats)  # the new copies, and nothing that the old ones had started
        r.prepare(WORK)
        assert all(answer["ops"] == 10 for answer in r.sample(WORK, 10))
    assert children() == []


def test_nobody_wakes_up_until_a_sample_is_due(tmp_path):
    """The process that waits shares a CPU with what is measured."""
    with rig([WORK], tmp_path) as r:
        r.prepare()
        ops = round(200e6 / r.ns(WORK, 1000))
        switches = []
        for due_ns in (0, 10**9):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
            r.sample(WORK, ops, due_ns=due_ns)
            switches.append(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
    assert switches[0] >= 10
    assert switches[1] <= 3


def test_lost_work_is_found_at_release(tmp_path):
    with rig([(FAULT, "how=lost")], tmp_path) as r:
        r.prepare()
        r.sample((FAULT, "how=lost"), 1)
        with pytest.raises(OSError, match="checksum"):
            r.release((FAULT, "how=lost"))


def test_no_process_descriptor_or_mapping_stays_behind(tmp_path):
    def once():
        with rig([WORK, ("mem_chase", "set=256K"), ("switch_pipe", "place=same")], tmp_path) as r:
            r.prepare()
            r.sample(WORK, 10)

    once()
    before = open_files(), len(Path("/proc/self/maps").read_text().splitlines())
    for _ in range(3):
        once()
    after = open_files(), len(Path("/proc/self/maps").read_text().splitlines())
    assert after[0] == before[0]
    assert after[1] <= before[1] + 2  # the allocator may have taken another arena
    assert children() == []


def test_copies_die_with_a_killed_block(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import pools, time\n"
        f"r = pools.Rig([{WORK!r}, ('switch_pipe', 'place=same')], Path(sys.argv[2]), None)\n"
        "r.prepare(); print(*pools.children(), flush=True); time.sleep(60)"
    )
    arguments = [sys.executable, "-I", "-c", script, str(Path(__file__).parents[1]), str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as block:
        pids = [int(pid) for pid in block.stdout.readline().split()]
        block.kill()
    assert len(pids) > len(CPUS)  # the copies and the peers that pipes need
    deadline = time.monotonic() + 5
    while any(lived(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in pids if lived(pid)]


def test_a_signal_reaches_python_while_copies_work(tmp_path):
    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    old = signal.signal(signal.SIGALRM, handler)
    try:
        with rig([(FAULT, "how=hang")], tmp_path) as r:
            r.prepare()
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            began = time.monotonic()
            with pytest.raises(Stop):
                r.sample((FAULT, "how=hang"), 1)
            assert time.monotonic() - began < 5
    finally:
        signal.signal(signal.SIGALRM, old)
    assert children() == []


def test_a_cpu_that_is_not_allowed_is_an_oserror_before_anything_runs(tmp_path):
    absent = max(os.sched_getaffinity(0)) + 1
    with pytest.raises(OSError, match=f"copy on CPU {absent}: sched_setaffinity"):
        _native.Pool(str(programs.COPY), str(programs.TARGET), str(tmp_path), [(CPUS[0], 0), (absent, 0)])
    assert children() == []


def test_a_missing_program_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        _native.Pool(str(tmp_path / "none"), str(programs.TARGET), str(tmp_path), [(CPUS[0], 0)])


@pytest.mark.parametrize("kernel", ["lock_all", "lock_mutex"])
def test_a_group_of_one_has_a_thread_that_only_sleeps(tmp_path, kernel):
    """In a process without threads glibc leaves out the atomic instructions of a mutex: alone in a plan, or on a
    machine of one core, this would be another kind of work than beside larger groups."""
    made = _native.Pool(str(programs.COPY), str(programs.TARGET), str(tmp_path), [(CPUS[-1], 0)])
    try:
        (copy,) = children()
        for _ in range(2):  # what was released may be prepared again
            value = KERNELS[kernel]["params"][0]["value"]
            made.prepare(0, KERNELS[kernel]["number"], 0, value, [(0, CPUS[-1:])])
            made.sample(0, [0], 1, 0, 10**10)
            (other,) = set(os.listdir(f"/proc/{copy}/task")) - {str(copy)}
            assert os.sched_getaffinity(int(other)) == {CPUS[-1]}
            slept = switches(copy, other)
            for ops in (1, 10, 1000):
                made.sample(0, [0], ops, 0, 10**10)
            assert made.sample(0, [0], 10, 2_000_000, 10**10)[0]["ops"] >= 10
            assert switches(copy, other) == slept  # no batch wakes it
            made.release(0)
            assert os.listdir(f"/proc/{copy}/task") == [str(copy)]
    finally:
        made.close()


def switches(copy, thread):
    """State and voluntary context switches of a thread, once it sleeps."""
    deadline = time.monotonic() + 5
    while True:
        lines = Path(f"/proc/{copy}/task/{thread}/status").read_text().splitlines()
        told = dict(line.split(":", 1) for line in lines)
        if "S" in told["State"] or time.monotonic() > deadline:
            return [told[name].split()[0] for name in ("State", "voluntary_ctxt_switches")]


def test_touched_memory_is_there_on_base_pages(tmp_path):
    touched = 64 << 20
    pool = _native.Pool(str(programs.COPY), str(programs.TARGET), str(tmp_path), [(CPUS[0], touched)])
    try:
        smaps = Path(f"/proc/{children()[0]}/smaps_rollup").read_text()
        kib = {line.split(":")[0]: int(line.split()[1]) for line in smaps.splitlines()[1:]}
        assert touched <= kib["Rss"] << 10 < touched + (16 << 20)
        assert kib["AnonHugePages"] == 0
        assert pool.touch_ns > 0
    finally:
        pool.close()


def test_clock_costs_less_than_a_thousandth_of_a_batch():
    assert 0 < min(_native.clock_read_ns() for _ in range(5)) < 400_000 / 1000


def test_wrong_slots_kernels_and_seats_are_refused(tmp_path):
    with rig([WORK], tmp_path) as r:
        r.prepare()
        with pytest.raises(ValueError, match="seats"):
            r.pool.sample(0, [7], 1, 0, 10**9)
        with pytest.raises(ValueError, match="slot"):
            r.pool.prepare(5000, 0, 0, 0, [])
        with pytest.raises(ValueError, match="kernel"):
            r.pool.prepare(1, 99, 0, 0, [])
        with pytest.raises(ValueError, match="parameter"):
            r.pool.prepare(1, 0, 99, 0, [])
        with pytest.raises(ValueError, match="seat"):
            r.pool.prepare(1, 0, 0, 0, [(7, [CPUS[0]])])
        for cpus in ([], [CPUS[0]] * 513):
            with pytest.raises(ValueError, match="1 to 512 CPUs"):
                r.pool.prepare(1, 0, 0, 0, [(0, cpus)])
