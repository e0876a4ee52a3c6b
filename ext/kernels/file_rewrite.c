/* A file truncated and written anew, as editors and tools save in place. The names stay: on a disk this allocates and
 * frees blocks (and ext4 writes back at close), but no inodes. */
#include "../kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES 64

static _Alignas(CB_LINE) char piece[CB_PIECE];

static int fill(struct cb_ctx *ctx, struct cb_name *name, int flags, uint64_t count) {
    int fd = openat(ctx->dir_fd, name->path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return cb_fail(ctx, "openat");
    uint32_t size = cb_sizes[count % CB_SIZES];
    name->file = size;
    return cb_close(ctx, fd, cb_write(ctx, fd, piece, size));
}

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    struct cb_name *names = ctx->state = rc ? NULL : cb_arena(ctx, NAMES * sizeof *names, CB_BASE);
    if (!names) return rc ? rc : cb_fail(ctx, ctx->call);
    memset(piece, 'x', sizeof piece);
    for (uint64_t i = 0; i < NAMES && !rc; i++) {
        snprintf(names[i].path, CB_PATH, "%s/file_%04d.txt", cb_tree(ctx)->root, (int)i);
        rc = fill(ctx, &names[i], O_CREAT | O_EXCL, i);
    }
    return rc;
}

/* With each lap the sizes move on by one name, so that files grow and shrink. */
static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct cb_name *names = ctx->state;
    for (uint64_t i = 0; i < ops; i++, ctx->counter++) {
        struct cb_name *name = &names[(ctx->counter + ctx->counter / NAMES + 1) % NAMES];
        int rc = fill(ctx, name, O_TRUNC, ctx->counter);
        if (rc) return rc;
        ctx->checksum += name->file;
    }
    return 0;
}

/* Each file must have the size that was last written. */
static int release(struct cb_ctx *ctx) {
    int wrong = 0;
    struct stat st;
    struct cb_name *names = ctx->state;
    for (int i = 0; ctx->counter && ctx->narenas && i < NAMES; i++)
        wrong |= fstatat(ctx->dir_fd, names[i].path, &st, AT_SYMLINK_NOFOLLOW) || st.st_size != names[i].file;
    int rc = cb_tree_end(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : rc;
}

CB_FILE_KERNEL(rewrite,
    .doc = "Open one of 64 files with O_TRUNC, write it in 2 KiB pieces, close; sizes lognormal, p50 5.6, p90 35 KiB.",
    .unit = "file",
    .version = 1,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 2 << 20, .files = NAMES, .flags = CB_SCORED}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release);
