/* A default pthread read-write lock of which all threads of the group are readers: they exclude nobody, and share only the
 * line of the lock. The section is one load of what the lock protects. Longer ones hide the lock: 200 ns of work took 76
 * to 86 ns with two threads, 75 without a lock, and 50 ns, which is what the line needs to the other core and back, 22 or
 * 37 by the chance of who waits for whom. */
#include "../kernel.h"

#include <pthread.h>

#define DATA 0x9E3779B97F4A7C15u

struct lock {
    _Alignas(CB_LINE) pthread_rwlock_t rwlock;
    _Alignas(CB_LINE) uint64_t data; /* nobody writes it */
    _Alignas(CB_LINE) _Atomic uint64_t sum; /* of what the sections found; touched once a batch by each thread */
    _Atomic int error;
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }

static void body(struct cb_ctx *ctx, int thread) {
    struct lock *lock = ctx->state;
    uint64_t mine = 0, sum = 0;
    for (uint64_t taken; (taken = cb_group_take(group_of(ctx))); mine += taken)
        for (uint64_t i = 0; i < taken; i++) {
            int rc = pthread_rwlock_rdlock(&lock->rwlock); /* EAGAIN: too many readers */
            if (rc) lock->error = rc;
            sum += lock->data;
            if (!rc) pthread_rwlock_unlock(&lock->rwlock);
        }
    lock->sum += sum;
    ctx->thread_ops[thread] += mine;
}

static int prepare(struct cb_ctx *ctx) {
    struct lock *lock = ctx->state = cb_arena(ctx, sizeof *lock, CB_BASE);
    if (!lock || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    lock->data = DATA;
    errno = pthread_rwlock_init(&lock->rwlock, NULL);
    if (errno) return cb_fail(ctx, "pthread_rwlock_init");
    return cb_group_start(ctx, group_of(ctx), body);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct lock *lock = ctx->state;
    cb_group_run(group_of(ctx), ops);
    ctx->counter += ops;
    return lock->error ? errno = lock->error, cb_fail(ctx, "pthread_rwlock_rdlock") : 0;
}

static int warm(struct cb_ctx *ctx) { return run(ctx, 0); } /* the threads wake up, and wait for the next batch awake */

static int release(struct cb_ctx *ctx) {
    struct lock *lock = ctx->state;
    int wrong = 0;
    if (ctx->narenas == 2) {
        cb_group_stop(group_of(ctx));
        pthread_rwlock_destroy(&lock->rwlock);
        ctx->checksum = lock->sum;
        wrong = lock->sum != ctx->counter * DATA;
    }
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_lock_rwlock = {
    .name = "lock_rwlock",
    .family = "lock",
    .doc = "One read lock, load and unlock of a default pthread rwlock that all threads of the group take for reading at once.",
    .unit = "read section",
    .version = 1,
    .flags = CB_GROUP,
    .params = (const struct cb_param[]){{.label = "readers", .flags = CB_SCORED, .threads = 2}, {0}},
    .prepare = prepare, .warm = warm, .run = run, .release = release,
};
