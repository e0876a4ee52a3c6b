/* Groups of threads for lock kernels: pinned, released together, counted in. */
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
    _Alignas(CB_LINE) _Atomic uint32_t busy;
    _Atomic int pin_error;
    struct cb_ctx *ctx;
    cb_body *body;
    int quit, started;
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
    atomic_fetch_sub(&g->busy, 1);
    for (uint32_t seen = 0;; seen++) {
        wait_for_go(g, seen);
        if (g->quit) return NULL;
        g->body(g->ctx, index);
        atomic_fetch_sub(&g->busy, 1);
    }
}

static void wait_until_idle(struct cb_group *g) {
    while (atomic_load(&g->busy)) cb_pause();
}

int cb_group_start(struct cb_ctx *ctx, struct cb_group *g, cb_body *body) {
    g->ctx = ctx;
    g->body = body;
    atomic_store(&g->busy, (uint32_t)ctx->ncpus - 1);
    for (g->started = 1; g->started < ctx->ncpus; g->started++) {
        int i = g->started;
        g->members[i] = (struct member){g, i};
        errno = pthread_create(&g->threads[i], NULL, thread_main, &g->members[i]);
        if (errno) {
            atomic_fetch_sub(&g->busy, (uint32_t)(ctx->ncpus - i));
            return cb_fail(ctx, "pthread_create");
        }
    }
    wait_until_idle(g);
    if (g->pin_error) return errno = -g->pin_error, cb_fail(ctx, "sched_setaffinity");
    return 0;
}

static void open_gate(struct cb_group *g) {
    atomic_fetch_add(&g->go, 1);
    if (atomic_load(&g->parked)) syscall(SYS_futex, &g->go, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void cb_group_run(struct cb_group *g) {
    atomic_store(&g->busy, (uint32_t)g->started - 1);
    open_gate(g);
    g->body(g->ctx, 0);
    wait_until_idle(g);
}

void cb_group_stop(struct cb_group *g) {
    wait_until_idle(g);
    g->quit = 1;
    open_gate(g);
    for (int i = 1; i < g->started; i++) pthread_join(g->threads[i], NULL);
    g->started = 0;
}
