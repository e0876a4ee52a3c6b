/* Groups of threads for lock kernels: pinned, and let through a gate together.
 * Nobody waits for them at the end of a batch: one that sleeps in the lock would need a wake-up of 50 us and more, which
 * is no part of the work (it made batches of 100 us twice as slow as one of 20 ms). It joins the next batch instead. */
#include "kernel.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 100 us of pauses: between the batches of a sample the threads stay awake, between samples they sleep. */
#define SPINS 4000

struct member { struct cb_group *group; int index; };

struct cb_group {
    _Alignas(CB_LINE) _Atomic uint32_t go;
    _Atomic uint32_t parked;
    _Alignas(CB_LINE) _Atomic uint32_t starting;
    _Atomic int pin_error;
    struct cb_ctx *ctx;
    cb_body *body;
    _Atomic int quit;
    int started;
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
        g->body(g->ctx, index);
    }
}

int cb_group_start(struct cb_ctx *ctx, struct cb_group *g, cb_body *body) {
    g->ctx = ctx;
    g->body = body;
    atomic_store(&g->starting, (uint32_t)ctx->ncpus - 1);
    for (g->started = 1; g->started < ctx->ncpus; g->started++) {
        int i = g->started;
        g->members[i] = (struct member){g, i};
        errno = pthread_create(&g->threads[i], NULL, thread_main, &g->members[i]);
        if (errno) return cb_fail(ctx, "pthread_create");
    }
    while (atomic_load(&g->starting)) cb_pause();
    if (g->pin_error) return errno = -g->pin_error, cb_fail(ctx, "sched_setaffinity");
    return 0;
}

void cb_group_open(struct cb_group *g) {
    atomic_fetch_add(&g->go, 1);
    if (atomic_load(&g->parked)) syscall(SYS_futex, &g->go, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void cb_group_stop(struct cb_group *g) {
    atomic_store(&g->quit, 1);
    cb_group_open(g);
    for (int i = 1; i < g->started; i++) pthread_join(g->threads[i], NULL);
    g->started = 0;
}
