/* Writing after fork(): the page fault, another page found, 4 KiB (a base page) copied, the entry changed and flushed.
 * A child that sleeps shares the pages. It is forked anew when all are copied, not for each batch: that takes milliseconds.
 * The process is this kernel's own: a fork would leave the buffers of others write-protected too. */
#include "../kernel.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SET ((size_t)32 << 20)

struct cow { size_t at; uint64_t due, faults; };

static void sleep_for_ever(struct cb_ctx *ctx) {
    for (;;) ctx->counter += (uint64_t)pause();
}

static int prepare(struct cb_ctx *ctx) {
    struct cow *cow = ctx->state = cb_arena(ctx, sizeof *cow, CB_BASE);
    if (!cow || !cb_arena(ctx, SET, CB_BASE)) return cb_fail(ctx, ctx->call);
    cow->at = SET;
    return 0;
}

static int before(struct cb_ctx *ctx, uint64_t ops) {
    struct cow *cow = ctx->state;
    size_t bytes = ops * (size_t)sysconf(_SC_PAGESIZE);
    int rc = 0;
    if (bytes > SET) return errno = E2BIG, cb_fail(ctx, "batch");
    if (cow->at + bytes > SET) {
        rc = cb_peer_stop(ctx);
        if (!rc) rc = cb_peer_start(ctx, sleep_for_ever);
        cow->at = 0;
        sched_yield(); /* it shares this CPU: it shall sleep before the clock starts */
    }
    cow->due = ops;
    cow->faults = cb_faults();
    return rc;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct cow *cow = ctx->state;
    cow->at += cb_write_pages((char *)ctx->arenas[1].at + cow->at, ops, (size_t)sysconf(_SC_PAGESIZE));
    ctx->checksum = ctx->counter += ops;
    return 0;
}

/* A fault for each page, and the child still has the old ones: so each was copied. */
static int after(struct cb_ctx *ctx) {
    struct cow *cow = ctx->state;
    siginfo_t ended = {0};
    if (cb_faults() - cow->faults < cow->due) return errno = EBADE, cb_fail(ctx, "faults");
    if (waitid(P_PID, (id_t)ctx->peer, &ended, WEXITED | WNOHANG | WNOWAIT)) return cb_fail(ctx, "waitid");
    return ended.si_pid ? errno = ECHILD, cb_fail(ctx, "waitid") : 0;
}

static int release(struct cb_ctx *ctx) {
    int rc = cb_peer_stop(ctx);
    cb_arena_free(ctx);
    return rc;
}

const struct cb_kernel cb_kernel_mem_cow = {
    .name = "mem_cow", .family = "memory", .unit = "page", .version = 1, .flags = CB_OWN | CB_BY_PAGE, .max_ops = SET >> 12,
    .doc = "The first write to a base page after fork(), while the child that shares it lives: the page is copied.",
    .params = (const struct cb_param[]){
        {.label = "set=32M", .value = SET, .held_bytes = 2 * SET, .flags = CB_SCORED}, {0}},
    .prepare = prepare, .before = before, .run = run, .after = after, .release = release,
};
