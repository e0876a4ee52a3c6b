/* A tree deleted as `rm -r` does it. The trees of a batch are made before it. */
#include "../kernel.h"

#include <stdio.h>

#define FILES 400
#define TREES 4

struct state { char path[CB_PATH]; uint64_t made; };

static const char *path(struct cb_ctx *ctx, uint64_t number) {
    struct state *s = ctx->state;
    snprintf(s->path, sizeof s->path, "%s/%04d", cb_tree(ctx)->root, (int)(number % 10000));
    return s->path;
}

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    ctx->state = rc ? NULL : cb_arena(ctx, sizeof(struct state), CB_BASE);
    return rc || ctx->state ? rc : cb_fail(ctx, ctx->call);
}

static int before(struct cb_ctx *ctx, uint64_t ops) {
    struct state *s = ctx->state;
    int rc = 0;
    if (ops > TREES) return errno = E2BIG, cb_fail(ctx, "before");
    while (s->made < ops && !rc) { /* some are left where another copy could not get ready */
        rc = cb_tree_make(ctx, path(ctx, ctx->counter + s->made), FILES, 1);
        s->made += !rc;
    }
    return rc;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct state *s = ctx->state;
    for (uint64_t i = 0; i < ops; i++, ctx->counter++) {
        if (!s->made) return errno = ENOENT, cb_fail(ctx, "run");
        int rc = cb_tree_job(ctx, CB_DELETE, path(ctx, ctx->counter), NULL, FILES);
        if (rc) return rc;
        s->made--;
        ctx->checksum += cb_tree(ctx)->files;
    }
    return 0;
}

static int release(struct cb_ctx *ctx) { return cb_tree_end(ctx); }

CB_FILE_KERNEL(tree_delete,
    .doc = "Read the folders of a tree of 400 files in 40 and unlink all in it; sizes lognormal, p50 5.6, p90 35 KiB.",
    .unit = "tree",
    .version = 1,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 32 << 20, .files = TREES * FILES, .flags = CB_SCORED}, {0}},
    .max_ops = TREES,
    .prepare = prepare,
    .before = before,
    .run = run,
    .release = release);
