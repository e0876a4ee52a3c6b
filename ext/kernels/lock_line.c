/* One cache line handed to and fro between two CPUs by plain stores, each of which the other waits for: what any hand-over
 * between these cores costs at least. They wait as spin locks do, with a pause between loads: without it the figure was
 * 51, 58 or 78 ns by the shape of the waiting loop (loads already under way are undone when the line leaves), with it 63
 * to 65. A pause is 10 to 140 cycles on x86, by model, and half of one is in each of the two waits. */
#include "../kernel.h"

#include <stdatomic.h>

struct line {
    _Alignas(CB_LINE) _Atomic uint64_t turn; /* odd: the second thread's */
    _Alignas(CB_LINE) uint64_t from, to;     /* this batch's values of it */
};

static struct cb_group *group_of(struct cb_ctx *ctx) { return ctx->arenas[1].at; }

static void hand_over(struct cb_ctx *ctx, int thread) {
    struct line *line = ctx->state;
    uint64_t to = line->to;
    for (uint64_t turn = line->from + (uint64_t)thread; turn < to; turn += 2) {
        while (atomic_load_explicit(&line->turn, memory_order_acquire) != turn) cb_pause();
        atomic_store_explicit(&line->turn, turn + 1, memory_order_release);
    }
    ctx->thread_ops[thread] += (to - line->from) / 2;
}

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, sizeof(struct line), CB_BASE);
    if (!ctx->state || !cb_arena(ctx, cb_group_bytes(), CB_BASE)) return cb_fail(ctx, ctx->call);
    if (ctx->ncpus != 2) return errno = EINVAL, cb_fail(ctx, "two CPUs");
    return cb_group_start(ctx, group_of(ctx), hand_over);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct line *line = ctx->state;
    line->from = line->to;
    line->to += 2 * ops;
    cb_group_run(group_of(ctx), 0);
    ctx->counter += ops;
    return 0;
}

static int warm(struct cb_ctx *ctx) { return run(ctx, 0); } /* the other thread wakes up, and waits for the batch awake */

/* Each value was stored by one thread after it had seen the other's: the last one is twice the number of round trips. */
static int release(struct cb_ctx *ctx) {
    struct line *line = ctx->state;
    int wrong = 0;
    if (ctx->narenas == 2) {
        cb_group_stop(group_of(ctx));
        ctx->checksum = line->turn;
        wrong = line->turn != 2 * ctx->counter;
    }
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_lock_line = {
    .name = "lock_line",
    .family = "lock",
    .doc = "One store that another CPU waits for and its store back: a cache line is handed over twice; waits pause.",
    .unit = "round trip",
    .version = 1,
    .flags = CB_GROUP,
    .params = (const struct cb_param[]){{.label = "cpus=A-B", .threads = 2, .each = CB_EACH_PAIR}, {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
