/* All the timing: one sample of one copy, with the evidence around it. */
#include "board.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int schedstat = -1;

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Not slewed by NTP, and the same on every CPU; a read of it is a vDSO call where the clocksource allows. */
uint64_t cb_now_ns(void) { return clock_ns(CLOCK_MONOTONIC_RAW); }

uint64_t cb_stamp(void) { return cb_now_ns(); }

double cb_clock_read_ns(void) {
    uint64_t start = cb_now_ns(), end = start;
    for (int i = 0; i < 1000; i++) end = cb_now_ns();
    return (double)(end - start) / 1000;
}

int cb_evidence_open(void) {
    schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    return schedstat < 0 ? -errno : 0;
}

/* Nanoseconds that this thread was runnable and waited (second field, Documentation/scheduler/sched-stats). */
static uint64_t run_delay_ns(void) {
    char text[96];
    ssize_t n = schedstat < 0 ? -1 : pread(schedstat, text, sizeof text - 1, 0);
    if (n <= 0) return 0;
    text[n] = 0;
    char *space = strchr(text, ' ');
    return space ? strtoull(space, NULL, 10) : 0;
}

/* Adds sign times what the thread has used so far: -1 before the sample, +1 after it leaves the difference. */
static void evidence(struct cb_answer *a, uint64_t sign) {
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    a->nvcsw += sign * (uint64_t)u.ru_nvcsw;
    a->nivcsw += sign * (uint64_t)u.ru_nivcsw;
    a->minflt += sign * (uint64_t)u.ru_minflt;
    a->majflt += sign * (uint64_t)u.ru_majflt;
    a->run_delay_ns += sign * run_delay_ns();
}

static int hook(int rc, int (*f)(struct cb_ctx *), struct cb_ctx *ctx) { return rc || !f ? rc : f(ctx); }

static int before(struct cb_ctx *ctx, uint64_t ops) { return ctx->kernel->before ? ctx->kernel->before(ctx, ops) : 0; }

/* The last copy to arrive says when all start: in 30 us, the time that a waiting core needs to see it, and 0.2 us more
 * for each copy. Returns the start, or 0 when some copy could not get ready. */
static uint64_t agree(struct cb_board *board, int rc) {
    if (rc) atomic_store(&board->failed, 1);
    uint32_t here = atomic_fetch_add(&board->arrived, 1) + 1;
    if (here == board->expected) atomic_store(&board->start_ns, cb_now_ns() + 30000 + 200u * board->expected);
    while (!atomic_load(&board->start_ns)) cb_pause();
    if (atomic_load(&board->failed)) return 0;
    return atomic_load(&board->start_ns);
}

/* Batches until the stop; before() and after() run between them with the clock stopped. */
static int batches(struct cb_ctx *ctx, const struct cb_order *order, uint64_t stop_ns, struct cb_answer *a) {
    const struct cb_kernel *k = ctx->kernel;
    int hooked = k->before || k->after, latency = k->flags & CB_LATENCY;
    for (;;) {
        uint64_t stamped_ns = ctx->stamped_ns, start = cb_now_ns();
        int rc = k->run(ctx, order->ops);
        uint64_t end = cb_now_ns();
        if (!a->t0_ns) a->t0_ns = start;
        a->t1_ns = end;
        a->elapsed_ns += latency ? ctx->stamped_ns - stamped_ns : end - start;
        a->ops += order->ops;
        rc = hook(rc, k->after, ctx);
        if (rc || end >= stop_ns) {
            if (hooked) a->hook_ns += cb_now_ns() - end;
            return rc;
        }
        if (!hooked) continue;
        rc = before(ctx, order->ops);
        a->hook_ns += cb_now_ns() - end;
        if (rc) return rc;
    }
}

void cb_measure(struct cb_ctx *ctx, const struct cb_order *order, struct cb_board *board, struct cb_answer *a) {
    uint64_t entered = cb_now_ns();
    int rc = before(ctx, order->ops);
    rc = hook(rc, ctx->kernel->warm, ctx); /* last: what before() touched may have evicted the set */
    a->hook_ns = cb_now_ns() - entered;
    uint64_t start_ns = agree(board, rc);
    evidence(a, (uint64_t)-1); /* in the 30 us before the start: waiting for slower copies is not the sample's */
    if (start_ns) {
        while (cb_now_ns() < start_ns) cb_pause();
        a->cpu_first = sched_getcpu();
        uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        rc = batches(ctx, order, order->window_ns ? start_ns + order->window_ns : 0, a);
        a->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
        a->cpu_last = sched_getcpu();
    } else if (!rc) {
        rc = -ECANCELED;
    }
    evidence(a, 1);
    a->rc = rc;
}
