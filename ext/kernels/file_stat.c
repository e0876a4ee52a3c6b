/* stat() of the files of a tree: a third of all system calls of agents' tools, and many of them find nothing, since
 * interpreters and package managers try several places for each name. */
#include "../kernel.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILES 400
#define MISSING UINT32_MAX
#define MISS_SEED 2

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    struct cb_name *names = ctx->state = rc ? NULL : cb_arena(ctx, FILES * sizeof *names, CB_BASE);
    if (!names) return rc ? rc : cb_fail(ctx, ctx->call);
    cb_tree_names(names, cb_tree(ctx)->root, FILES);
    for (uint64_t i = 0, missing = 0; missing < FILES * ctx->value / 100; i++) {
        uint64_t at = cb_cycle_at(512, MISS_SEED, i);
        if (at >= FILES) continue;
        cb_tree_path(names[at].path, cb_tree(ctx)->root, names[at].file, "pyc");
        names[at].file = MISSING;
        missing++;
    }
    return cb_tree_make(ctx, cb_tree(ctx)->root, FILES, 0);
}

static int look(struct cb_ctx *ctx, const struct cb_name *name, uint64_t *sum) {
    struct stat st;
    if (fstatat(ctx->dir_fd, name->path, &st, AT_SYMLINK_NOFOLLOW)) {
        if (errno != ENOENT || name->file != MISSING) return cb_fail(ctx, "fstatat");
        *sum += 1;
    } else if (name->file == MISSING) {
        return errno = EEXIST, cb_fail(ctx, "fstatat");
    } else {
        *sum += (uint64_t)st.st_size;
    }
    return 0;
}

static int lap(struct cb_ctx *ctx, uint64_t from, uint64_t ops, uint64_t *sum) {
    const struct cb_name *names = ctx->state;
    int rc = 0;
    for (uint64_t i = from; i < from + ops && !rc; i++) rc = look(ctx, &names[i % FILES], sum);
    return rc;
}

static int warm(struct cb_ctx *ctx) { return lap(ctx, 0, FILES, &(uint64_t){0}); }

static int run(struct cb_ctx *ctx, uint64_t ops) {
    int rc = lap(ctx, ctx->counter, ops, &ctx->checksum);
    ctx->counter += ops;
    return rc;
}

/* The sizes of all that was looked at, from the numbers of the files; a name that is missing counts 1. */
static int release(struct cb_ctx *ctx) {
    uint64_t due = 0;
    const struct cb_name *names = ctx->state;
    for (uint64_t i = 0; ctx->narenas && i < ctx->counter; i++)
        due += names[i % FILES].file == MISSING ? 1 : cb_tree_size(names[i % FILES].file);
    int wrong = ctx->narenas && due != ctx->checksum, rc = cb_tree_end(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : rc;
}

#define SHARE(name, percent) {.label = name, .value = percent, .held_bytes = 1 << 20, .flags = CB_SCORED}
CB_FILE_KERNEL(stat,
    .doc = "fstatat() by a path of 2 to 5 names, in a tree of 400 files in 40 folders; with `miss` 35 % are not there.",
    .unit = "call",
    .version = 1,
    .params = (const struct cb_param[]){SHARE("hit", 0), SHARE("miss", 35), {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release);
