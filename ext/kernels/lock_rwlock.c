/* A default pthread read-write lock of which all threads of the group are readers: they exclude nobody, and share only the
 * line of the lock. The section reads the data under the lock and does 37 steps on it, 50 ns at 4 cycles and 3 GHz. */
#include "../kernel.h"

#include <pthread.h>

#define SEED 1

struct lock {
    _Alignas(CB_LINE) pthread_rwlock_t rwlock;
    _Alignas(CB_LINE) uint64_t data; /* nobody writes it */
    _Alignas(CB_LINE) _Atomic uint64_t sum; /* of what the sections found; touched once a batch by each thread */
    _Atomic int error;
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }
static uint64_t steps(const struct cb_ctx *ctx) { return ctx->value * 3 / 4; }

static void body(struct cb_ctx *ctx, int thread) {
    struct lock *lock = ctx->state;
    uint64_t mine = 0, sum = 0, n = steps(ctx);
    for (uint64_t taken; (taken = cb_group_take(group_of(ctx))); mine += taken)
        for (uint64_t i = 0; i < taken; i++) {
            int rc = pthread_rwlock_rdlock(&lock->rwlock); /* EAGAIN: too many readers */
            if (rc) lock->error = rc;
            sum += cb_work(lock->data, n);
            if (!rc) pthread_rwlock_unlock(&lock->rwlock);
        }
    lock->sum += sum;
    ctx->thread_ops[thread] += mine;
}

static int prepare(struct cb_ctx *ctx) {
    struct lock *lock = ctx->state = cb_arena(ctx, sizeof *lock, CB_BASE);
    if (!lock || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    lock->data = SEED;
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
        wrong = lock->sum != ctx->counter * cb_work_result(SEED, steps(ctx));
    }
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_lock_rwlock = {
    .name = "lock_rwlock",
    .family = "lock",
    .doc = "One read lock, 50 ns of reading and unlock of a default pthread rwlock that all threads of the group read at once.",
    .unit = "read section",
    .version = 1,
    .flags = CB_GROUP,
    .params = (const struct cb_param[]){{.label = "readers", .value = 50, .flags = CB_SCORED, .threads = 2}, {0}},
    .prepare = prepare, .warm = warm, .run = run, .release = release,
};
