/* Two processes on one CPU that yield it to each other: a switch without a sleep or a wake-up.
 * Whose turn it is stands in shared memory, so that an operation is two real switches also where a scheduler ignores
 * some yields; Linux 6.18 follows each of them. With nobody else on the CPU a yield would be no switch. Between batches
 * the other process sleeps, so that no other kernel shares the CPU with it. */
#include "../kernel.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct shared {
    _Atomic uint32_t turns; /* how often it was handed over: even, it is the copy's turn */
    _Atomic uint32_t go;    /* a batch runs */
};

static void answer(struct cb_ctx *ctx) {
    struct shared *s = ctx->state;
    for (;;) {
        if (!atomic_load(&s->go)) syscall(SYS_futex, &s->go, FUTEX_WAIT, 0, NULL, NULL, 0);
        if (atomic_load(&s->turns) % 2) atomic_fetch_add(&s->turns, 1);
        sched_yield();
    }
}

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, sizeof(struct shared), CB_SHARED);
    return ctx->state ? cb_peer_start(ctx, answer) : cb_fail(ctx, ctx->call);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct shared *s = ctx->state;
    atomic_store(&s->go, 1);
    if (syscall(SYS_futex, &s->go, FUTEX_WAKE, 1, NULL, NULL, 0) < 0) return cb_fail(ctx, "futex");
    for (uint64_t i = 0; i < ops; i++) {
        atomic_fetch_add(&s->turns, 1);
        do
            if (sched_yield()) return cb_fail(ctx, "sched_yield");
        while (atomic_load(&s->turns) % 2);
    }
    atomic_store(&s->go, 0); /* read by the other process once this one sleeps */
    ctx->checksum = ctx->counter += ops;
    return 0;
}

static int release(struct cb_ctx *ctx) {
    struct shared *s = ctx->state;
    int rc = cb_peer_stop(ctx), lost = ctx->narenas && s->turns != (uint32_t)(2 * ctx->counter);
    cb_arena_free(ctx);
    return lost ? errno = EBADE, cb_fail(ctx, "checksum") : rc;
}

const struct cb_kernel cb_kernel_switch_yield = {
    .name = "switch_yield",
    .family = "switch",
    .doc = "The CPU given to another process by sched_yield(), and given back alike: two yields, two switches.",
    .unit = "round trip",
    .version = 1,
    .flags = CB_BLOCKING | CB_PAIR,
    .params = (const struct cb_param[]){{.label = "", .place = CB_SAME}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
