/* What locks, condition variables and queues between processes come down to once somebody has to wait.
 * On one CPU the process that is woken may run before the other has come to its wait, which then finds the word changed
 * and does not sleep (45 % of the waits on Linux 6.18): a sample's voluntary switches say how often the copy slept. */
#include "../kernel.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COPY, PEER };

struct shared {
    _Alignas(CB_LINE) _Atomic uint32_t turns; /* how often it was handed over: even, it is the copy's turn */
    struct { _Alignas(CB_LINE) uint64_t slept; } side[2];
};

static int wait_while(struct shared *s, uint32_t turns, int side) {
    do {
        if (syscall(SYS_futex, &s->turns, FUTEX_WAIT, turns, NULL, NULL, 0) == 0) s->side[side].slept++;
        else if (errno != EAGAIN && errno != EINTR) return -1;
    } while (atomic_load(&s->turns) == turns);
    return 0;
}

static int hand_over(struct shared *s, int side) {
    uint32_t turns = atomic_load(&s->turns) + 1;
    atomic_store(&s->turns, turns);
    if (syscall(SYS_futex, &s->turns, FUTEX_WAKE, 1, NULL, NULL, 0) < 0) return -1;
    return wait_while(s, turns, side);
}

static void answer(struct cb_ctx *ctx) {
    for (int rc = wait_while(ctx->state, 0, PEER); rc == 0;) rc = hand_over(ctx->state, PEER);
}

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, sizeof(struct shared), CB_SHARED);
    return ctx->state ? cb_peer_start(ctx, answer) : cb_fail(ctx, ctx->call);
}

static int warm(struct cb_ctx *ctx) {
    if (ctx->ncpus > 1) cb_settle(); /* on one CPU nobody goes idle */
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++)
        if (hand_over(ctx->state, COPY)) return cb_fail(ctx, "futex");
    ctx->checksum = ctx->counter += ops;
    return 0;
}

static int release(struct cb_ctx *ctx) {
    struct shared *s = ctx->state;
    int rc = cb_peer_stop(ctx);
    int lost = ctx->narenas && s->turns != (uint32_t)(2 * ctx->counter);
    int awake = ctx->narenas && ctx->counter >= 100 && s->side[COPY].slept + s->side[PEER].slept < ctx->counter / 2;
    cb_arena_free(ctx);
    if (lost || awake) return errno = EBADE, cb_fail(ctx, lost ? "checksum" : "sleeps");
    return rc;
}

#define PLACE(name, where, bits) {.label = "place=" name, .place = where, .flags = bits}
const struct cb_kernel cb_kernel_switch_futex = {
    .name = "switch_futex",
    .family = "switch",
    .doc = "A shared word set for another process and set back: two FUTEX_WAKE, two FUTEX_WAIT, two switches.",
    .unit = "round trip",
    .version = 1,
    .flags = CB_BLOCKING | CB_PAIR,
    .params = (const struct cb_param[]){
        PLACE("same", CB_SAME, CB_SCORED), PLACE("other", CB_OTHER, CB_SCORED), PLACE("sibling", CB_SIBLING, 0), {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
