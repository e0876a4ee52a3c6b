/* Groups of threads for lock kernels: pinned, and let through a gate together.
 * Where threads may sleep in the lock nobody waits for them at the end of a batch: one that sleeps would need a wake-up of
 * 50 us and more, which is no part of the work (it made batches of 100 us twice as slow as one of 20 ms). It joins the next
 * batch instead. Threads that never sleep in the body begin and end a batch together: cb_group_run(). */
#include "kernel.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 100 us of pauses: between the batches of a sample the threads stay awake, between samples they sleep. */
#define SPINS 4000
#define LEAST 32 /* operations that a thread takes at once */

struct member { struct cb_group *group; int index; };

struct cb_group {
    _Alignas(CB_LINE) _Atomic uint32_t go;
    _Atomic uint32_t parked;
    _Alignas(CB_LINE) _Atomic uint64_t met;
    _Alignas(CB_LINE) _Atomic uint64_t left;
    _Alignas(CB_LINE) _Atomic uint32_t starting;
    _Atomic int pin_error;
    struct cb_ctx *ctx;
    cb_body *body;
    _Atomic uint32_t quit; /* futex of the thread that only waits for the end */
    int started, together;
    pthread_t threads[CB_MAX_GROUP];
    struct member members[CB_MAX_GROUP];
};

size_t cb_group_bytes(void) { return sizeof(struct cb_group); }

static void wait_for_go(struct cb_group *g, uint32_t seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&g->go) != seen) return;
        cb_pause();
    }
    atomic_fetch_add(&g->parked, 1);
    while (atomic_load(&g->go) == seen) syscall(SYS_futex, &g->go, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&g->parked, 1);
}

/* A barrier of spinning threads: about 0.2 us, a wake-up 50. Each round of arrivals is ncpus tickets. */
static void meet(struct cb_group *g) {
    uint64_t n = (uint64_t)g->ctx->ncpus, due = atomic_fetch_add(&g->met, 1) / n * n + n;
    while (atomic_load(&g->met) < due) cb_pause();
}

static void take_part(struct cb_group *g, int index) {
    int together = g->together;
    if (together) meet(g);
    g->body(g->ctx, index);
    if (together) meet(g);
}

static void *thread_main(void *argument) {
    struct cb_group *g = ((struct member *)argument)->group;
    int index = ((struct member *)argument)->index;
    int rc = cb_pin(g->ctx->cpus[index]);
    if (rc) atomic_store(&g->pin_error, rc);
    atomic_fetch_sub(&g->starting, 1);
    for (uint32_t seen = 0;;) {
        wait_for_go(g, seen);
        seen = atomic_load(&g->go);
        if (atomic_load(&g->quit)) return NULL;
        take_part(g, index);
    }
}

/* Sleeps beside the only thread of a group of one. In a process without threads glibc leaves out the atomic instructions
 * of a lock (__libc_single_threaded, <sys/single_threaded.h>; of pthread_mutex_lock() since 2.34), and whether there are
 * some would depend on which other rows the plan has: the group of one would be two kinds of work. */
static void *only_be_there(void *argument) {
    struct cb_group *g = ((struct member *)argument)->group;
    int rc = cb_pin(g->ctx->cpus[0]);
    if (rc) atomic_store(&g->pin_error, rc);
    atomic_fetch_sub(&g->starting, 1);
    while (!atomic_load(&g->quit)) syscall(SYS_futex, &g->quit, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return NULL;
}

int cb_group_start(struct cb_ctx *ctx, struct cb_group *g, cb_body *body) {
    int alone = ctx->ncpus == 1, n = alone ? 2 : ctx->ncpus;
    g->ctx = ctx;
    g->body = body;
    atomic_store(&g->starting, (uint32_t)n - 1);
    for (g->started = 1; g->started < n; g->started++) {
        int i = g->started;
        g->members[i] = (struct member){g, i};
        errno = pthread_create(&g->threads[i], NULL, alone ? only_be_there : thread_main, &g->members[i]);
        if (errno) return cb_fail(ctx, "pthread_create");
    }
    while (atomic_load(&g->starting)) {
        if (alone) sched_yield(); /* it starts on this CPU */
        cb_pause();
    }
    if (g->pin_error) return errno = -g->pin_error, cb_fail(ctx, "sched_setaffinity");
    return 0;
}

void cb_group_open(struct cb_group *g) {
    atomic_fetch_add(&g->go, 1);
    if (atomic_load(&g->parked)) syscall(SYS_futex, &g->go, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void cb_group_run(struct cb_group *g, uint64_t ops) {
    g->together = 1;
    atomic_store(&g->left, ops);
    cb_group_open(g);
    take_part(g, 0);
}

/* Guided self-scheduling (Polychronopoulos and Kuck, IEEE Trans. Computers 1987): with fixed shares the thread that the
 * hardware prefers would be ready early, and the rest of the batch would be done without contention. */
uint64_t cb_group_take(struct cb_group *g) {
    uint64_t left = atomic_load(&g->left), n;
    do {
        n = left / (2 * (uint64_t)g->ctx->ncpus);
        if (n < LEAST) n = left < LEAST ? left : LEAST;
    } while (n && !atomic_compare_exchange_weak(&g->left, &left, left - n));
    return n;
}

void cb_group_stop(struct cb_group *g) {
    atomic_store(&g->quit, 1);
    syscall(SYS_futex, &g->quit, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    cb_group_open(g);
    for (int i = 1; i < g->started; i++) pthread_join(g->threads[i], NULL);
    g->started = 0;
}
