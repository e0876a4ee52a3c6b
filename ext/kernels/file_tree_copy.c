/* A tree copied as `cp -r` and worktrees do it, by read() and write(): copy_file_range() would share blocks on some file
 * systems and copy on others. The copies are deleted between the batches. */
#include "../kernel.h"

#include <stdio.h>

#define FILES 400
#define COPIES 4 /* of a batch */
#define KEPT 16 /* on a disk, in its cache, which is given back where memory is short: not in held_bytes */

struct state { char source[CB_PATH], copy[CB_PATH]; uint64_t made; };

static const char *path(struct cb_ctx *ctx, uint64_t number) {
    struct state *s = ctx->state;
    snprintf(s->copy, sizeof s->copy, "%s/%04d", cb_tree(ctx)->root, (int)(number % 10000));
    return s->copy;
}

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    struct state *s = ctx->state = rc ? NULL : cb_arena(ctx, sizeof *s, CB_BASE);
    if (!s) return rc ? rc : cb_fail(ctx, ctx->call);
    snprintf(s->source, sizeof s->source, "%s/tree", cb_tree(ctx)->root);
    return cb_tree_make(ctx, s->source, FILES, 1);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct state *s = ctx->state;
    if (ops > COPIES) return errno = E2BIG, cb_fail(ctx, "run");
    for (uint64_t i = 0; i < ops; i++, ctx->counter++) {
        int rc = cb_tree_job(ctx, CB_COPY, s->source, path(ctx, ctx->counter), FILES);
        if (rc) return rc;
        s->made++;
        ctx->checksum += cb_tree(ctx)->bytes;
    }
    return 0;
}

/* On a disk they stay for a while: a copy that takes the place of a deleted one waits for its inodes (see cb_spread()). */
static int after(struct cb_ctx *ctx) {
    struct state *s = ctx->state;
    int rc = 0;
    if (ctx->kernel->flags & CB_STORAGE && s->made < KEPT) return 0;
    for (; s->made && !rc; s->made--) rc = cb_tree_job(ctx, CB_DELETE, path(ctx, ctx->counter - s->made), NULL, FILES);
    return rc;
}

static int release(struct cb_ctx *ctx) {
    int wrong = ctx->checksum != ctx->counter * cb_tree_bytes(FILES), rc = cb_tree_end(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : rc;
}

CB_FILE_KERNEL(tree_copy,
    .doc = "Copy a tree of 400 files in 40 folders, by read() and write() of 64 KiB; sizes lognormal, p50 5.6, p90 35 KiB.",
    .unit = "tree",
    .version = 1,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 40 << 20, .files = (1 + COPIES) * FILES, .flags = CB_SCORED}, {0}},
    .max_ops = COPIES,
    .prepare = prepare,
    .run = run,
    .after = after,
    .release = release);
