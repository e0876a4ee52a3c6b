/* Each thread increments a counter of its own, and all counters lie in one cache line: statistics per thread without
 * padding. Nothing is shared but the line. The increment is a load and a store, both sequentially consistent, so that each
 * store has to reach the line before the next load. Relaxed ones wait in the store buffer and are loaded from there: then
 * the same source took 0.7, 0.8 or 1.3 ns by the shape of its loop (0.5 without any sharing), here 9. */
#include "../kernel.h"

#include <stdatomic.h>

struct line {
    _Alignas(CB_LINE) _Atomic uint64_t counts[CB_LINE / sizeof(uint64_t)];
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }

static void body(struct cb_ctx *ctx, int thread) {
    _Atomic uint64_t *count = &((struct line *)ctx->state)->counts[thread];
    for (uint64_t n; (n = cb_group_take(group_of(ctx)));) {
        ctx->thread_ops[thread] += n;
        while (n--) atomic_store(count, atomic_load(count) + 1);
    }
}

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, sizeof(struct line), CB_BASE);
    if (!ctx->state || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    if (ctx->ncpus > (int)(CB_LINE / sizeof(uint64_t))) return errno = E2BIG, cb_fail(ctx, "threads of one line");
    return cb_group_start(ctx, group_of(ctx), body);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    cb_group_run(group_of(ctx), ops);
    ctx->counter += ops;
    return 0;
}

static int warm(struct cb_ctx *ctx) { return run(ctx, 0); } /* the threads wake up, and wait for the next batch awake */

/* Each counter must be what its thread took, and all of them together the number of operations. */
static int release(struct cb_ctx *ctx) {
    struct line *line = ctx->state;
    uint64_t done = 0;
    int wrong = 0;
    if (ctx->narenas == 2) {
        cb_group_stop(group_of(ctx));
        for (int i = 0; i < ctx->ncpus && !wrong; i++) {
            wrong = line->counts[i] != ctx->thread_ops[i];
            done += line->counts[i];
        }
        ctx->checksum = done;
        wrong = wrong || done != ctx->counter;
    }
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_lock_false_sharing = {
    .name = "lock_false_sharing",
    .family = "lock",
    .doc = "One increment (seq_cst load, seq_cst store) of a thread's own counter in one cache line with that of the other thread.",
    .unit = "increment",
    .version = 1,
    .flags = CB_GROUP,
    .params = (const struct cb_param[]){{.label = "", .flags = CB_SCORED, .threads = 2}, {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
