"""Whole blocks, as processes: what they store, what they survive, and that nothing of them stays."""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from blocks import WORK, plan_of, run_block, variant
from pools import CPUS, KERNELS, children, lived, param
from started import started

from cpubench import _native
from cpubench.analysis.flags import Flag, block_flags, sample_flags
from cpubench.analysis.rates import measured
from cpubench.measure import copies as pool
from cpubench.measure import programs
from cpubench.measure.block import COLUMNS, add_sample, empty_cell
from cpubench.measure.child import run_child
from cpubench.measure.scratch import file_system
from cpubench.results.files import content_hash
from cpubench.results.records import Plan


def test_a_block_stores_raw_integers_of_every_cell(tmp_path):
    variants = [variant(*WORK, ops=5000), variant(*WORK, "cores", ops=100, window_ns=5_000_000)]
    variants += [variant("file_create", "", "cores", ops=3, window_ns=5_000_000), variant("mem_chase", "set=256K")]
    block = run_block(tmp_path, plan_of(variants, samples=3))
    assert [sorted(order) for order in block.rounds] == [[0, 1, 2, 3]] * 3
    for cell, v in zip(block.cells, variants, strict=True):
        assert cell.error is None
        columns = msgspec.structs.asdict(cell.samples)
        assert {len(values) for name, values in columns.items() if not name.startswith("cpu_f")} <= {3, 0}
        assert len(cell.copy_ops) == len(v.groups)
        assert sum(cell.copy_ops) == sum(columns["ops"])
        assert sum(cell.copy_elapsed_ns) == sum(columns["elapsed_ns"])
        assert cell.obtained["cpus"] == v.groups
        assert cell.obtained["proven"] is True
        assert sum(columns["moved"]) == 0
    one = block.cells[0].samples
    assert one.ops == [5000] * 3
    assert one.cpu_first == one.cpu_last == [CPUS[-1]] * 3
    assert all(0 < cpu <= 1.02 * wall + 10_000 for cpu, wall in zip(one.cpu_ns, one.wall_ns, strict=True))
    assert block.cells[1].samples.cpu_first == []
    assert block.cells[2].obtained["file_system"] == "tmpfs"
    assert block.cells[2].obtained["tmpfs"] == ("private" if os.geteuid() == 0 else "dev_shm")
    assert "size=" in block.cells[2].obtained["mount_options"] or os.geteuid() != 0
    assert block.cells[3].obtained["huge_ppm"] in range(1_000_001)
    assert block.times.timed_ns <= block.times.rounds_ns
    assert content_hash(msgspec.to_builtins(block)) == block.sha256  # a run file holds what the block's file held


def test_files_on_the_disk_say_which_disk_and_leave_nothing(tmp_path):
    block = run_block(tmp_path, plan_of([variant("storage_create", "", ops=5), variant("file_create", "", ops=5)]))
    disk, memory = (cell.obtained for cell in block.cells)
    device = tmp_path.stat().st_dev
    assert disk["device"] == f"{os.major(device)}:{os.minor(device)}"
    assert disk["file_system"] == file_system(tmp_path) or not disk["file_system"]
    assert memory["file_system"] == "tmpfs"
    assert all(cell.error is None and sum(cell.copy_ops) == 10 for cell in block.cells)


def test_faults_are_rows_with_reasons_while_the_round_goes_on(tmp_path):
    faults = {
        "how=fail": "test_fault[how=fail]: open EPERM: Operation not permitted",
        "how=crash": f"test_fault[how=crash]: copy on CPU {CPUS[-1]} killed by SIGSEGV (11)",
        "how=die": f"test_fault[how=die]: copy on CPU {CPUS[-1]} killed by SIGKILL (9)",
        "how=prepare": "test_fault[how=prepare]: prepare ENOSPC: No space left on device",
        "how=lost": "test_fault[how=lost]: checksum EBADE: Invalid exchange",
    }
    variants = [*(variant("test_fault", label, ops=1) for label in faults), variant(*WORK, ops=100),
                variant("mem_chase", "set=256K", ops=1000), variant("file_create", "", ops=10)]  # fmt: skip
    block = run_block(tmp_path, plan_of(variants, samples=3))
    errors = {cell.params: cell.error for cell in block.cells if cell.kernel == "test_fault"}
    assert errors == faults
    disproven = next(cell for cell in block.cells if cell.params == "how=lost")
    assert (disproven.copy_ops, disproven.copy_elapsed_ns, disproven.samples.ops) == ([0], [0], [])
    assert not measured(disproven)  # nothing that could be scored
    for cell in block.cells[len(faults) :]:
        assert cell.error is None
        assert cell.samples.round == [0, 1, 2]
        assert cell.obtained["proven"] is False  # copies were lost, and with them the proof of earlier samples


def test_a_fault_of_all_copies_is_not_that_of_one(tmp_path):
    """What fails on many cores may work on one; but the proof of what that one did before is gone with the slot."""
    one, all_ = (variant("test_fault", "how=batch", copies, ops=n) for copies, n in (("1", 1), ("cores", 2)))
    block = run_block(tmp_path, plan_of([one, all_, variant(*WORK, ops=10)], samples=3))
    told = [(cell.error, len(cell.samples.ops), cell.obtained["proven"]) for cell in block.cells]
    assert told == [(None, 3, False), ("test_fault[how=batch]: open EPERM: Operation not permitted", 0, False),
                    (None, 3, True)]  # fmt: skip


def test_threads_have_a_process_of_their_own():
    work, lock, two = variant(*WORK), variant("lock_mutex", "cs=200ns"), variant("lock_mutex", "cs=50ns")
    seats = [pool.seats_of(msgspec.to_builtins(v)) for v in (work, lock, two)]
    assert seats[0] != seats[1] == seats[2]


def test_processes_start_from_one_that_no_other_kernel_has_changed():
    """An arena of another kernel in it would be copied by each fork, a thread would slow them all."""
    own = [variant("spawn_reap", "child=64M"), variant("spawn_thread", ""), variant("spawn_shell", "")]
    parents = [variant(f"spawn_{name}", "rss=8M") for name in ("fork_exit", "fork_exec", "vfork_exec")]
    work, *seats = [pool.seats_of(msgspec.to_builtins(v))[0] for v in (variant(*WORK), *own, *parents)]
    assert len({work, *seats}) == 1 + len(own) + 1  # parents of one size are one process


def test_a_shell_is_named_with_its_hash(tmp_path):
    (cell,) = run_block(tmp_path, plan_of([variant("spawn_shell", "", ops=2)], samples=2)).cells
    assert cell.error is None
    assert cell.obtained["shell"] == os.path.realpath("/bin/sh")
    assert cell.obtained["shell_sha256"] == programs.sha256(Path("/bin/sh"))


@pytest.mark.parametrize("how", ["too many", "one is killed"])
def test_children_that_wait_for_their_end_are_gone_after_a_failure(tmp_path, how):
    reap = variant("spawn_reap", "child=64M", ops=1)
    copies = pool.start({"variants": [msgspec.to_builtins(reap)], "llc_bytes": None}, tmp_path, 1)
    try:
        pool.prepare(copies)
        before = set(children())
        (one,) = copies.variants
        if how == "too many":
            assert pool.sample(copies, one, 5, 0, 10**10) is None
            assert copies.errors == {
                "spawn_reap[child=64M]@1": "spawn_reap[child=64M]: before E2BIG: Argument list too long"
            }
        else:
            killer = threading.Thread(target=kill_the_next, args=(before,))
            killer.start()
            assert pool.sample(copies, one, 2, 0, 10**10) is None
            killer.join()
            assert "spawn_reap[child=64M]: " in copies.errors["spawn_reap[child=64M]@1"]
        assert set(children()) == before
    finally:
        copies.pool.close()


def kill_the_next(known):
    """As the OOM killer does it, while the children touch their memory."""
    end = time.monotonic() + 10
    while not (new := set(children()) - known) and time.monotonic() < end:
        time.sleep(0.001)
    os.kill(new.pop(), signal.SIGKILL)


def test_an_idle_copy_that_ends_is_not_the_fault_of_the_variant_at_work(tmp_path):
    """As the OOM killer does it: the idle parent of known size is killed while another kernel works."""
    parent = variant("spawn_fork_exec", "rss=8M", ops=1)
    work = variant(*WORK, ops=10)
    document = [msgspec.to_builtins(parent), msgspec.to_builtins(work)]
    copies = pool.start({"variants": document, "llc_bytes": None}, tmp_path, 1)
    try:
        pool.prepare(copies)
        idle = next(pid for pid in children() if int(Path(f"/proc/{pid}/statm").read_text().split()[1]) > 2000)
        os.kill(idle, signal.SIGKILL)
        assert pool.sample(copies, document[1], 200_000, 0, 10**10) is None  # this sample is lost ..
        assert copies.errors == {}
        assert copies.unproven == {0, 1}
        for one in document:  # .. and both variants go on
            assert pool.sample(copies, one, 1, 0, 10**10)[0]["ops"] == 1
    finally:
        copies.pool.close()


class Killing:
    """A pool in which an idle copy is killed while a slot is prepared or released, so often; as by the OOM killer."""

    def __init__(self, inner, slot, times):
        self.inner, self.slot, self.times = inner, slot, times

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def prepare(self, slot, *arguments):
        if slot == self.slot and self.times:
            self.times -= 1
            kill_the_largest()
        return self.inner.prepare(slot, *arguments)

    def release(self, slot):
        if slot == self.slot and self.times:
            self.times -= 1
            kill_the_largest()
        return self.inner.release(slot)


def kill_the_largest():
    """The others are stopped: none can be ready before the loss is seen. The pool kills them too."""
    *others, largest = sorted(children(), key=lambda pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]))
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    os.kill(largest, signal.SIGKILL)
    wait_for(lambda: not lived(largest))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_idle_copy_that_ends_is_not_the_fault_of_the_kernel_that_is_prepared(tmp_path, times):
    """The idle parent ends while another copy prepares; at the third time that has to stop."""
    rows = [variant("spawn_fork_exec", "rss=64M", ops=1), variant("mem_chase", "set=256K", ops=1000)]
    document = [msgspec.to_builtins(row) for row in rows]
    copies = pool.start({"variants": document, "llc_bytes": None}, tmp_path, 1)
    try:
        copies.pool = Killing(copies.pool, 1, times)
        pool.prepare(copies)
        assert copies.pool.times == 0
        idle, chase = (pool.sample(copies, one, 1, 0, 10**10) for one in document)
        assert idle[0]["ops"] == 1
        if times < 3:
            assert (copies.errors, chase[0]["ops"]) == ({}, 1)
        else:
            lost = f"copy on CPU {CPUS[-1]} killed by SIGKILL (9), idle; 2 more attempts ended so too"
            assert (copies.errors, chase) == ({"mem_chase[set=256K]@1": f"mem_chase[set=256K]: {lost}"}, None)
    finally:
        copies.pool.close()


def test_an_idle_copy_that_ends_is_not_the_fault_of_the_kernel_that_is_released(tmp_path):
    rows = [variant("mem_chase", "set=256K", ops=1000), variant("spawn_fork_exec", "rss=64M", ops=1)]
    document = [msgspec.to_builtins(row) for row in rows]
    copies = pool.start({"variants": document, "llc_bytes": None}, tmp_path, 1)
    try:
        pool.prepare(copies)
        copies.pool = Killing(copies.pool, 0, 1)
        pool.release(copies)
        assert (copies.pool.times, copies.errors, copies.proven, copies.unproven) == (0, {}, set(), {0, 1})
    finally:
        copies.pool.close()


def test_peers_after_a_failure_are_forked_before_other_memory_is_there(tmp_path):
    """A later fork would share the huge pages of other kernels, and the next write to each of them splits it."""
    rows = [variant("switch_unix", "place=same", ops=10), variant("switch_unix", "place=same", "cores", ops=10),
            variant("mem_chase", "set=32M", ops=1000)]  # fmt: skip
    one, every, chase = document = [msgspec.to_builtins(row) for row in rows]
    copies = pool.start({"variants": document, "llc_bytes": None}, tmp_path, 1)
    try:
        pool.prepare(copies)
        before = children()
        for peer in peers():
            os.kill(peer, signal.SIGKILL)
            wait_for(lambda peer=peer: not lived(peer))
        assert pool.sample(copies, every, 10, 0, 10**10) is None
        assert copies.errors == {"switch_unix[place=same]@cores": "switch_unix[place=same]: send EPIPE: Broken pipe"}
        assert copies.unproven == {0, 1}
        assert not set(before) & set(children())
        mapped = [int(Path(f"/proc/{peer}/statm").read_text().split()[0]) for peer in peers()]  # pages
        assert mapped
        assert max(mapped) * os.sysconf("SC_PAGESIZE") < 32 << 20  # the set of the chase is not in them
        assert all(pool.sample(copies, row, 10, 0, 10**10)[0]["ops"] == 10 for row in (one, chase))
    finally:
        copies.pool.close()


def peers():
    """Pids of what the copies have forked."""
    import psutil

    return [pid for pid in children() if psutil.Process(pid).ppid() != os.getpid()]


def test_copies_that_cannot_start_again_end_the_block_in_one_line(tmp_path):
    program = tmp_path / "copy"
    program.write_bytes(programs.COPY.read_bytes())
    program.chmod(0o755)
    made_pool = _native.Pool(str(program), str(programs.TARGET), str(tmp_path), [(CPUS[-1], 0)])
    try:
        number = KERNELS["test_fault"]["number"]
        index, record = param("test_fault", "how=die")
        made_pool.prepare(0, number, index, record["value"], [(0, CPUS[-1:])])
        program.unlink()
        with pytest.raises(_native.PoolBroken, match=r"killed by SIGKILL \(9\); no new copies: No such file"):
            made_pool.sample(0, [0], 1, 0, 10**9)
    finally:
        made_pool.close()


def test_a_hang_is_a_row_after_its_deadline(tmp_path):
    variants = [variant("test_fault", "how=hang", ops=1), variant(*WORK, ops=100)]
    block = run_block(tmp_path, plan_of(variants, sample_ns=1_000_000))
    assert block.cells[0].error == "test_fault[how=hang]: no answer within 5.02 s"
    assert len(block.cells[1].samples.ops) == 2


def test_a_window_is_contiguous_and_has_all_copies(tmp_path):
    variants = [variant(*WORK, "1", ops=100), variant(*WORK, "cores", ops=100, window_ns=1_000_000),
                variant("mem_chase", "set=16K", "cores", ops=1000, window_ns=1_000_000)]  # fmt: skip
    window = {"family": "control", "settle_ns": 10_000_000, "length_ns": 100_000_000}
    plan = plan_of(variants)
    plan = msgspec.convert({**msgspec.to_builtins(plan), "windows": [window]}, Plan)
    block = run_block(tmp_path, plan)
    (found,) = block.windows
    (cell,) = found.cells
    assert (cell.kernel, len(cell.copy_ops)) == ("test_work", len(CPUS))
    assert all(0.9e8 < elapsed < 2e8 for elapsed in cell.copy_elapsed_ns)
    assert found.t0_ns <= cell.t0_ns < cell.t1_ns <= found.t1_ns


def test_a_window_measures_what_is_scored_and_without_that_the_whole_family(tmp_path):
    window = {"family": "control", "settle_ns": 1_000_000, "length_ns": 20_000_000}
    found = []
    for scored in ((True, False), (False, False)):
        variants = [
            msgspec.structs.replace(variant("test_work", label, "cores", ops=100, window_ns=1_000_000), scored=one)
            for label, one in zip(("steps=1000", "steps=1020"), scored, strict=True)
        ]
        plan = msgspec.convert({**msgspec.to_builtins(plan_of(variants)), "windows": [window]}, Plan)
        found.append([cell.params for cell in run_block(tmp_path, plan).windows[0].cells])
        (tmp_path / "block.json").unlink()
    assert found == [["steps=1000"], ["steps=1000", "steps=1020"]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_block_leaves_no_process_and_no_file(tmp_path, number):
    plan_file = tmp_path / "plan.json"
    variants = [variant("test_fault", "how=hang", ops=1), variant("file_create", "", ops=10),
                variant("switch_pipe", "place=same", ops=10)]  # fmt: skip
    plan_file.write_bytes(msgspec.json.encode(plan_of(variants)))
    scratch, others = tmp_path / "scratch", set(Path("/dev/shm").glob("cpubench-*"))
    scratch.mkdir()
    arguments = [str(plan_file), "0", "as-is", str(tmp_path / "b.json"), str(scratch), "0", str(os.getpid())]
    command = [sys.executable, "-I", "-m", "cpubench.measure.block", *arguments]
    with started(command, start_new_session=True) as block:
        pids = wait_for(lambda: [pid for pid in below(block.pid) if "cpubench-copy" in name_of(pid)])
        time.sleep(0.3)
        pids = below(block.pid)
        block.send_signal(number)
        block.wait(timeout=10)
    wait_for(lambda: not any(lived(pid) for pid in pids) and not scratch.exists())
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert set(Path("/dev/shm").glob("cpubench-*")) <= others


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def below(pid):
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_samples_of_copies_add_up_by_hand():
    """Two copies that overlap for 80 of 110 ns; one was moved."""
    cell = empty_cell(msgspec.to_builtins(variant(*WORK, "cores")) | {"groups": [[0], [1]]})
    answer = dict.fromkeys(("hook_ns", "cpu_ns", "run_delay_ns", "nvcsw", "nivcsw", "minflt", "majflt"), 1)
    first = answer | {"cpu": 0, "cpu_first": 0, "cpu_last": 0, "t0_ns": 100, "t1_ns": 190, "ops": 9, "elapsed_ns": 90}
    other = answer | {"cpu": 1, "cpu_first": 1, "cpu_last": 0, "t0_ns": 110, "t1_ns": 210, "ops": 5, "elapsed_ns": 100}
    assert add_sample(cell, 0, [first, other]) == 110
    assert {name: values[0] for name, values in cell["samples"].items() if values} == {
        "round": 0, "wall_ns": 110, "overlap_ppm": 80 * 10**6 // 110, "moved": 1, "ops": 14, "elapsed_ns": 190,
        "hook_ns": 2, "cpu_ns": 2, "run_delay_ns": 2, "nvcsw": 2, "nivcsw": 2, "minflt": 2, "majflt": 2,
    }  # fmt: skip
    assert (cell["copy_ops"], cell["copy_elapsed_ns"]) == ([9, 5], [90, 100])
    assert set(cell["samples"]) == set(COLUMNS)


def test_a_block_starts_within_its_limit_and_measures_most_of_the_time(tmp_path):
    """0.2 s to the first sample apart from declared preparation, and 70 % of the time inside samples: the better of
    three, since others may be at work here."""
    variants = [variant(*WORK, ops=18_000), variant("mem_chase", "set=4M", ops=400_000),
                variant("file_create", "", "cores", ops=10, window_ns=20_000_000)]  # fmt: skip
    blocks = [run_block(tmp_path, plan_of(variants)) for _ in range(3)]
    assert min(block.times.ready_ns for block in blocks) < 200_000_000
    assert max(block.times.timed_ns / block.times.rounds_ns for block in blocks) > 0.7
    assert max(block.times.clock_read_ns for block in blocks) * 2 < 20_000_000 / 50 / 1000


@pytest.mark.skipif(len(CPUS) < 2, reason="a block alone would not get far beside it")
def test_a_block_beside_a_busy_process_is_contended(tmp_path):
    """Of somebody else, on the CPU of its copy; the block, its copies and its guard are nobody else."""
    plan = plan_of([variant(*WORK, ops=50_000), variant("file_create", "", ops=500)], samples=8)
    with started([sys.executable, "-c", "while True: pass"], start_new_session=True) as busy:
        os.sched_setaffinity(busy.pid, {CPUS[-1]})
        block = run_block(tmp_path, plan)
    assert Flag.CONTENDED in block_flags(plan, block)
    assert sum(sample_flags(plan.variants[0], block.cells[0]).values()) > 0
    before, after = block.environment.before, block.environment.after
    wall_ns = after.t_ns - before.t_ns
    assert wall_ns >= block.times.rounds_ns
    others_ns, own_ns = after.others_ns - before.others_ns, sum(sum(cell.samples.cpu_ns) for cell in block.cells)
    assert others_ns <= 1.1 * wall_ns * os.cpu_count() - own_ns + 10**8
    assert "python" in {one.name[:6] for one in block.environment.busiest}


def test_a_child_that_fails_is_one_line(tmp_path):
    with pytest.raises(Exception, match=r"no-plan\.json: No such file or directory"):
        run_child("cpubench.measure.block", [str(tmp_path / "no-plan.json"), "0", "x", "y"], tmp_path, random.Random(1))
    assert list(tmp_path.iterdir()) == []
