# cython: language_level=3, freethreading_compatible=True
"""Where Python meets C: the registry of kernels and the pool of copies. Standard library only."""

import errno as _errno
import os
import signal

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free


cdef extern from *:
    """
    #include <sys/prctl.h>
    #include <signal.h>
    #include <unistd.h>
    #ifdef __GLIBC__
    #define CB_TEXT_OF(x) #x
    #define CB_TEXT(x) CB_TEXT_OF(x)
    #define CB_LIBC "glibc " CB_TEXT(__GLIBC__) "." CB_TEXT(__GLIBC_MINOR__)
    #else
    #define CB_LIBC "not glibc"
    #endif
    static int cb_die_with(int parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL)) return -errno;
        return getppid() == parent ? 0 : -ESRCH;
    }
    """
    const char *CB_COMPILER
    const char *CB_FLAGS
    const char *CB_LINK
    const char *CB_LIBC
    int cb_die_with(int parent) nogil


cdef extern from "board.h" nogil:
    enum: CB_BLOCKING, CB_ISOLATE, CB_GROUP, CB_PAIR, CB_PARENT, CB_FILES, CB_HIDDEN, CB_STORAGE, CB_LATENCY
    enum: CB_OWN, CB_SHELL, CB_BY_PAGE, CB_PAGES
    enum: CB_SCORED, CB_STRICT, CB_HUGE, CB_SAME, CB_OTHER, CB_SIBLING, CB_OF_L1, CB_OF_L2, CB_OF_L3
    enum: CB_EACH_COUNT, CB_EACH_PAIR
    enum: CB_MAX_GROUP, CB_MAX_VARIANTS
    enum cb_verb: CB_PREPARE, CB_SAMPLE, CB_RELEASE, CB_QUIT

    struct cb_param:
        const char *label
        uint64_t value, held_bytes
        uint32_t files
        uint8_t flags, pages, place, relative, threads, each

    struct cb_ctx:
        pass

    struct cb_kernel:
        const char *name
        const char *family
        const char *doc
        const char *unit
        const char *instructions
        uint32_t version, flags
        const cb_param *params
        uint64_t max_ops
        int (*before)(cb_ctx *, uint64_t) noexcept nogil
        int (*after)(cb_ctx *) noexcept nogil

    const cb_kernel *const cb_kernels[]
    const int cb_kernel_count

    struct cb_order:
        uint32_t verb, variant
        int32_t kernel, param
        uint64_t value
        int32_t ncpus
        int32_t cpus[512]
        uint64_t ops, window_ns

    struct cb_answer:
        int32_t rc
        char call[32]
        uint64_t t0_ns, t1_ns, ops, elapsed_ns, hook_ns, cpu_ns, run_delay_ns, nvcsw, nivcsw, minflt, majflt
        int32_t cpu_first, cpu_last, loose
        uint64_t checksum, counter, huge_bytes, huge_asked_bytes
        uint64_t thread_ops[512]

    struct cb_seat:
        int32_t cpu
        cb_answer answer

    struct cb_board:
        uint32_t nseats
        cb_seat seats[1]

    struct cb_pool:
        cb_board *board
        int lost_seat, lost_status

    uint64_t cb_tree_held(uint64_t files, uint64_t page)
    int cb_private_tmpfs(const char *path, uint64_t bytes)
    uint64_t cb_now_ns()
    double cb_clock_read_ns()
    cb_pool *cb_pool_new(const char *, const char *, const char *, const char *, int, const int *, const uint64_t *, uint64_t, uint64_t)
    int cb_pool_fill(cb_pool *)
    void cb_pool_ask(cb_pool *, const int *, int, const cb_order *, uint64_t, uint64_t)
    int cb_pool_wait(cb_pool *)
    void cb_pool_kill(cb_pool *)
    void cb_pool_free(cb_pool *)


cdef extern from "energy.h" nogil:
    int cb_perf_open(uint32_t type, uint64_t config, int cpu)


_FLAGS = {"blocking": CB_BLOCKING, "isolate": CB_ISOLATE, "group": CB_GROUP, "pair": CB_PAIR, "parent": CB_PARENT,
          "files": CB_FILES, "hidden": CB_HIDDEN, "storage": CB_STORAGE, "latency": CB_LATENCY, "own": CB_OWN,
          "shell": CB_SHELL, "by_page": CB_BY_PAGE}
_PLACES = {0: "any", CB_SAME: "same", CB_OTHER: "other", CB_SIBLING: "sibling"}
_EACH = {0: None, CB_EACH_COUNT: "count", CB_EACH_PAIR: "pair"}
_RELATIVE = {0: None, CB_OF_L1: "L1", CB_OF_L2: "L2", CB_OF_L3: "L3"}

BUILD = {"compiler": CB_COMPILER.decode(), "flags": CB_FLAGS.decode(), "link": CB_LINK.decode(),
         "libc": CB_LIBC.decode()}  # linked into the copies: posix_spawn() and pthread_create() are its


class CopyLost(RuntimeError):
    """A copy crashed, was killed or passed its deadline. Every copy was started anew: nothing is prepared any more.

    ``seat`` is that of the copy that ended, which need not be one that was asked; None where a deadline passed.
    """

    def __init__(self, reason, seat=None):
        super().__init__(reason)
        self.seat = seat


class PoolBroken(RuntimeError):
    """The copies could not be started again: there is nothing left to ask."""


def now_ns() -> int:
    """CLOCK_MONOTONIC_RAW in nanoseconds, the clock of every sample."""
    return cb_now_ns()


def clock_read_ns() -> float:
    """What one reading of that clock costs, in nanoseconds, over 1,000 readings."""
    return cb_clock_read_ns()


def die_with(int parent) -> None:
    """This process is killed when its parent, whose pid is given, ends; OSError where it has ended already."""
    cdef int rc = cb_die_with(parent)
    if rc:
        raise OSError(-rc, os.strerror(-rc), "prctl")


def private_tmpfs(str path, uint64_t size_bytes) -> None:
    """Mounts a tmpfs on a folder, for this process and its children alone; it is gone with them. Needs root."""
    cdef int rc = cb_private_tmpfs(os.fsencode(path), size_bytes)
    if rc:
        raise OSError(-rc, os.strerror(-rc), "private tmpfs")


def perf_open(uint32_t kind, uint64_t config, int cpu) -> int:
    """The descriptor of a perf event that counts on one CPU, whoever runs there; read(2) gives its 8 bytes."""
    cdef int fd = cb_perf_open(kind, config, cpu)
    if fd < 0:
        raise OSError(-fd, os.strerror(-fd), "perf_event_open")
    return fd


def kernels(bint hidden=False, uint64_t page_bytes=0) -> list:
    """Every kernel of the registry as a dict of plain values; those for tests only where ``hidden`` is set.

    What they hold and how far a batch may go is for base pages of ``page_bytes``; 0: this machine's.
    """
    cdef const cb_kernel *k
    cdef const cb_param *p
    found = []
    page_bytes = page_bytes or os.sysconf("SC_PAGESIZE")
    larger = page_bytes // 4096
    for i in range(cb_kernel_count):
        k = cb_kernels[i]
        if k.flags & CB_HIDDEN and not hidden:
            continue
        params = []
        p = k.params
        while p.label != NULL:
            params.append({"label": p.label.decode(), "value": p.value,
                           "held_bytes": p.held_bytes * (larger if p.flags & CB_PAGES else 1)
                           + cb_tree_held(p.files, page_bytes) - cb_tree_held(p.files, 4096),
                           "scored": bool(p.flags & CB_SCORED and not k.flags & (CB_STORAGE | CB_LATENCY)), "strict": bool(p.flags & CB_STRICT),
                           "huge": p.pages == CB_HUGE, "place": _PLACES[p.place], "relative": _RELATIVE[p.relative],
                           "threads": p.threads or 1, "each": _EACH[p.each]})
            p += 1
        found.append({"name": k.name.decode(), "family": k.family.decode(), "doc": k.doc.decode(),
                      "unit": k.unit.decode(), "version": k.version, "number": i,
                      "max_ops": k.max_ops // (larger if k.flags & CB_BY_PAGE else 1),
                      "instructions": None if k.instructions == NULL else k.instructions.decode(),
                      "hooks": k.before != NULL or k.after != NULL,
                      "flags": [name for name, bit in _FLAGS.items() if k.flags & bit], "params": params})
    return found


cdef class Pool:
    """Copies that run kernels: one process per seat, pinned to its CPU, with its touched memory.

    ``seats`` are pairs (CPU, touched bytes); ``directory`` is for files on tmpfs, ``storage`` on a disk. Slots name what is prepared in the copies, 0 to 1,023.
    OSError names the kernel and the call that failed; CopyLost says who was lost and why.
    """

    cdef cb_pool *pool
    cdef readonly list seats
    cdef readonly uint64_t touch_ns  # what touching memory took of the start, in the slowest copy
    cdef object names, _threads, _paths  # by slot: (its name, its seats); seat -> threads of its copy

    def __cinit__(self, str program, str target, str directory, list seats, uint64_t llc_bytes=0, uint64_t seed=1,
                  str storage=None):
        cdef int n = len(seats)
        cdef int *cpus = <int *>calloc(n, sizeof(int))
        cdef uint64_t *touched = <uint64_t *>calloc(n, sizeof(uint64_t))
        self.seats = seats
        self.names = {}
        self._threads = {}
        self._paths = (os.fsencode(program), os.fsencode(target), os.fsencode(directory),
                       os.fsencode(storage or directory))
        if cpus == NULL or touched == NULL or n == 0:
            free(cpus)
            free(touched)
            raise MemoryError if n else ValueError("a pool needs a seat")
        for i, (cpu, touched_bytes) in enumerate(seats):
            cpus[i] = cpu
            touched[i] = touched_bytes
        self.pool = cb_pool_new(self._paths[0], self._paths[1], self._paths[2], self._paths[3], n, cpus, touched, llc_bytes,
                                seed)
        error = _last_errno()
        free(cpus)
        free(touched)
        if self.pool == NULL:
            raise OSError(error, os.strerror(error), "memfd_create")
        self._fill()

    def __dealloc__(self):
        if self.pool != NULL:
            cb_pool_free(self.pool)

    def renew(self) -> None:
        """Every copy is killed, with what it started, and started anew: nothing is prepared any more.

        PoolBroken where they cannot be started again.
        """
        self._renew("copies were to be started anew")

    def close(self) -> None:
        """Kill and reap every copy and what it started."""
        if self.pool != NULL:
            cb_pool_free(self.pool)
            self.pool = NULL

    def prepare(self, int slot, int kernel, int param, uint64_t value, list copies) -> list:
        """What each copy told after its kernel's prepare. ``copies`` are pairs (seat, CPUs of the copy)."""
        if not 0 <= slot < CB_MAX_VARIANTS:
            raise ValueError(f"no such slot: {slot}")
        if not (0 <= kernel < cb_kernel_count):
            raise ValueError(f"no such kernel: {kernel}")
        cdef int nparams = 0
        while cb_kernels[kernel].params[nparams].label != NULL:
            nparams += 1
        if not 0 <= param < nparams:
            raise ValueError(f"no such parameter of kernel {kernel}: {param}")
        for seat, cpus in copies:
            if not 0 <= seat < len(self.seats):
                raise ValueError(f"no such seat: {seat}")
            if not 1 <= len(cpus) <= CB_MAX_GROUP:
                raise ValueError(f"a copy runs on 1 to {CB_MAX_GROUP} CPUs, not {len(cpus)}")
        label = cb_kernels[kernel].params[param].label.decode()
        name = cb_kernels[kernel].name.decode()
        seats = [seat for seat, _ in copies]
        self.names[slot] = (f"{name}[{label}]" if label else name, seats)
        self._threads[slot] = {seat: len(cpus) for seat, cpus in copies}
        return self._ask(CB_PREPARE, slot, seats, copies, kernel, param, value, 0, 0, 0, 60_000_000_000)

    def sample(self, int slot, list seats, uint64_t ops, uint64_t window_ns, uint64_t deadline_ns,
               uint64_t due_ns=0) -> list:
        """One sample, a dict of raw integers for each copy: one batch of ``ops``, or batches until the window is over.

        ``seats`` are those of the copies that take part, each of them prepared. For ``due_ns`` this process sleeps
        through, so that its waking up disturbs nobody; a copy that dies meanwhile is noticed after that.
        """
        if not set(seats) <= set(self.names[slot][1]):
            raise ValueError(f"{self.names[slot][0]}: not prepared in every one of the seats {seats}")
        return self._ask(CB_SAMPLE, slot, seats, None, 0, 0, 0, ops, window_ns, due_ns, deadline_ns)

    def release(self, int slot) -> list:
        """What each copy told after its kernel's release."""
        return self._ask(CB_RELEASE, slot, self.names[slot][1], None, 0, 0, 0, 0, 0, 0, 60_000_000_000)

    cdef list _ask(self, cb_verb verb, int slot, list seats, copies, int kernel, int param, uint64_t value,
                   uint64_t ops, uint64_t window_ns, uint64_t due_ns, uint64_t deadline_ns):
        cdef int n = len(seats), i
        name = self.names[slot][0]
        cdef int *where = <int *>calloc(n, sizeof(int))
        cdef cb_order *orders = <cb_order *>calloc(n, sizeof(cb_order))
        try:
            for i in range(n):
                where[i] = seats[i]
                orders[i].verb = verb
                orders[i].variant = slot
                orders[i].kernel = kernel
                orders[i].param = param
                orders[i].value = value
                orders[i].ops = ops
                orders[i].window_ns = window_ns
                if copies is not None:
                    cpus = copies[i][1]
                    orders[i].ncpus = len(cpus)
                    for j in range(len(cpus)):
                        orders[i].cpus[j] = cpus[j]
            with nogil:
                cb_pool_ask(self.pool, where, n, orders, due_ns, deadline_ns)
            self._wait(name, deadline_ns)
            return [self._answer(name, seat, self._threads[slot][seat]) for seat in seats]
        finally:
            free(where)
            free(orders)

    cdef _wait(self, name, deadline_ns):
        cdef int rc = -_errno.EINTR
        while rc == -_errno.EINTR:
            with nogil:
                rc = cb_pool_wait(self.pool)
            if rc == -_errno.EINTR:
                self._check_signals()
        if rc == 0:
            return
        lost = self.pool.lost_seat if rc == -_errno.ECHILD else None
        if rc == -_errno.ECHILD:
            reason = f"{name}: {self._how()}"
        else:
            reason = f"{name}: no answer within {deadline_ns / 1e9:.3g} s"
        self._renew(reason)
        raise CopyLost(reason, lost)

    cdef _renew(self, reason):
        cb_pool_kill(self.pool)
        try:
            self._fill()
        except OSError as error:
            raise PoolBroken(f"{reason}; no new copies: {error.strerror}") from None

    cdef str _how(self):
        """How the copy that ended did so."""
        code = os.waitstatus_to_exitcode(self.pool.lost_status)
        how = f"killed by {_signal_name(-code)}" if code < 0 else f"ended with status {code}"
        return f"copy on CPU {self.seats[self.pool.lost_seat][0]} {how}"

    cdef _check_signals(self):
        try:
            PyErr_CheckSignals()
        except BaseException:
            cb_pool_kill(self.pool)  # they are in the middle of something that nobody will ask for again
            raise

    cdef _fill(self):
        cdef int rc
        self.names = {}
        self.touch_ns = 0
        with nogil:
            rc = cb_pool_fill(self.pool)
        if rc:
            raise OSError(-rc, os.strerror(-rc), self._paths[0].decode(errors="replace"))
        rc = -_errno.EINTR
        while rc == -_errno.EINTR:
            with nogil:
                rc = cb_pool_wait(self.pool)
            if rc == -_errno.EINTR:
                self._check_signals()
        if rc:
            how = self._how() if rc == -_errno.ECHILD else "no answer within 60 s"
            cb_pool_kill(self.pool)
            raise OSError(-rc, f"a copy did not start: {how}", self._paths[0].decode(errors="replace"))
        for seat, (cpu, _) in enumerate(self.seats):
            try:
                self.touch_ns = max(self.touch_ns, self._answer(f"copy on CPU {cpu}", seat)["elapsed_ns"])
            except OSError:
                cb_pool_kill(self.pool)
                raise

    cdef dict _answer(self, name, int seat, int threads=0):
        cdef cb_answer *a = &self.pool.board.seats[seat].answer
        if a.rc and a.rc != -_errno.ECANCELED:
            call = a.call.decode()
            # Of a pin that was read back, EXDEV is ours.
            elsewhere = a.rc == -_errno.EXDEV and call == "sched_setaffinity"
            raise OSError(-a.rc, "it has no effect" if elsewhere else os.strerror(-a.rc), f"{name}: {call}")
        return {"cpu": self.seats[seat][0], "canceled": a.rc != 0, "t0_ns": a.t0_ns, "t1_ns": a.t1_ns, "ops": a.ops,
                "elapsed_ns": a.elapsed_ns, "hook_ns": a.hook_ns, "cpu_ns": a.cpu_ns, "run_delay_ns": a.run_delay_ns,
                "nvcsw": a.nvcsw, "nivcsw": a.nivcsw, "minflt": a.minflt, "majflt": a.majflt,
                "cpu_first": a.cpu_first, "cpu_last": a.cpu_last, "loose": bool(a.loose),
                "checksum": a.checksum, "counter": a.counter,
                "huge_bytes": a.huge_bytes, "huge_asked_bytes": a.huge_asked_bytes,
                "thread_ops": [a.thread_ops[i] for i in range(threads)]}


def _signal_name(number):
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"


cdef extern from "errno.h":
    int errno


cdef int _last_errno():
    return errno
