/* One counter that all threads of a group increment as fast as they can: reference counts and statistics do it.
 * The counter itself says when a batch is over, so that all threads want its line to the end. */
#include "../kernel.h"

#include <stdatomic.h>

struct shared {
    _Alignas(CB_LINE) _Atomic uint64_t count;
    _Alignas(CB_LINE) uint64_t target; /* read once a batch */
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }

static void body(struct cb_ctx *ctx, int thread) {
    struct shared *s = ctx->state;
    uint64_t mine = 0, target = s->target;
    while (atomic_fetch_add(&s->count, 1) < target) mine++;
    ctx->thread_ops[thread] += mine;
}

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, sizeof(struct shared), CB_BASE);
    if (!ctx->state || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    return cb_group_start(ctx, group_of(ctx), body);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct shared *s = ctx->state;
    s->target += ops;
    cb_group_run(group_of(ctx), 0);
    atomic_fetch_sub(&s->count, (uint64_t)ctx->ncpus); /* each thread's last one, which found the target reached */
    ctx->counter += ops;
    return 0;
}

static int warm(struct cb_ctx *ctx) { return run(ctx, 0); } /* the threads wake up, and wait for the next batch awake */

/* What the counter says, and what the threads say that they did, must both be the number of operations. */
static int release(struct cb_ctx *ctx) {
    struct shared *s = ctx->state;
    uint64_t done = 0;
    int wrong = 0;
    if (ctx->narenas == 2) {
        cb_group_stop(group_of(ctx));
        for (int i = 0; i < ctx->ncpus; i++) done += ctx->thread_ops[i];
        ctx->checksum = s->count;
        wrong = s->count != ctx->counter || done != ctx->counter;
    }
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_lock_atomic = {
    .name = "lock_atomic",
    .family = "lock",
    .doc = "One atomic fetch-and-add (sequentially consistent) on a counter that all threads of the group increment at once.",
    .unit = "increment",
    .version = 1,
    .flags = CB_GROUP,
    .params = (const struct cb_param[]){{.label = "", .flags = CB_SCORED, .threads = 2}, {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
