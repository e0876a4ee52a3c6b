/* A tree walked as find, git status and test collectors do it. */
#include "../kernel.h"

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    return rc ? rc : cb_tree_make(ctx, cb_tree(ctx)->root, ctx->value, 0);
}

static int warm(struct cb_ctx *ctx) { return cb_tree_job(ctx, CB_WALK, cb_tree(ctx)->root, NULL, ctx->value); }

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct cb_tree *tree = cb_tree(ctx);
    for (uint64_t i = 0; i < ops; i++, ctx->counter++) {
        int rc = cb_tree_job(ctx, CB_WALK, tree->root, NULL, ctx->value);
        if (rc) return rc;
        ctx->checksum += tree->bytes;
    }
    return 0;
}

static int release(struct cb_ctx *ctx) {
    int wrong = ctx->checksum != ctx->counter * cb_tree_bytes(ctx->value), rc = cb_tree_end(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : rc;
}

#define FILES(n, held, bits) {.label = "files=" #n, .value = n, .held_bytes = held, .flags = bits}
CB_FILE_KERNEL(walk,
    .doc = "Walk a tree of so many files, ten in each folder: open each folder, read its entries, fstatat() each, close.",
    .unit = "tree",
    .version = 1,
    .params = (const struct cb_param[]){FILES(400, 1 << 20, CB_SCORED), FILES(3000, 4 << 20, 0), {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release);
