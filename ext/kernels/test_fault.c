/* What may go wrong in a kernel, on purpose: each must become a row with its reason. Not listed. */
#include "../kernel.h"

#include <signal.h>
#include <unistd.h>

enum { FAIL, CRASH, DIE, HANG, NO_PREPARE, LOST, LEAVE_A_CHILD, BATCH };

static void wait_for_ever(struct cb_ctx *ctx) {
    for (;;) ctx->counter += (uint64_t)pause();
}

static int prepare(struct cb_ctx *ctx) {
    if (ctx->value == NO_PREPARE) return errno = ENOSPC, cb_fail(ctx, "prepare");
    return ctx->value == LEAVE_A_CHILD ? cb_peer_start(ctx, wait_for_ever) : 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    ctx->counter += ops;
    switch (ctx->value) {
    case FAIL: return errno = EPERM, cb_fail(ctx, "open");
    case CRASH: *(volatile int *)(uintptr_t)ctx->state = 1; break; /* NULL */
    case DIE: case LEAVE_A_CHILD: kill(getpid(), SIGKILL); break;
    case HANG: for (;;) pause();
    case BATCH: return ops > 1 ? errno = EPERM, cb_fail(ctx, "open") : 0;
    case LOST: break;
    }
    return 0;
}

static int release(struct cb_ctx *ctx) {
    return ctx->value == LOST ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

#define HOW(name, n) {.label = "how=" name, .value = n}
const struct cb_kernel cb_kernel_test_fault = {
    .name = "test_fault",
    .family = "test",
    .doc = "Fail, crash, die or hang in the way that is asked for.",
    .unit = "fault",
    .version = 1,
    .flags = CB_HIDDEN,
    .params = (const struct cb_param[]){
        HOW("fail", FAIL), HOW("crash", CRASH), HOW("die", DIE), HOW("hang", HANG), HOW("prepare", NO_PREPARE),
        HOW("lost", LOST), HOW("leave_a_child", LEAVE_A_CHILD), HOW("batch", BATCH), {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
