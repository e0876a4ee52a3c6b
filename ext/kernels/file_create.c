/* A small file's life as editors and package managers cause it: written under a temporary name, then renamed.
 * One name is alive at a time: a folder that has seen thousands of names is slower on some file systems, for minutes. */
#include "../kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Alignas(CB_LINE) char piece[CB_PIECE];

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++) {
        size_t size = cb_sizes[ctx->counter++ % CB_SIZES];
        int fd = openat(ctx->dir_fd, "new", CB_NEW_FILE, 0600);
        if (fd < 0) return cb_fail(ctx, "openat");
        int rc = cb_close(ctx, fd, cb_write(ctx, fd, piece, size));
        if (rc) return rc;
        if (renameat(ctx->dir_fd, "new", ctx->dir_fd, "file")) return cb_fail(ctx, "renameat");
        if (unlinkat(ctx->dir_fd, "file", 0)) return cb_fail(ctx, "unlinkat");
        ctx->checksum += size;
    }
    return 0;
}

static int release(struct cb_ctx *ctx) {
    if (ctx->dir_fd < 0) return 0;
    if (unlinkat(ctx->dir_fd, "new", 0) && errno != ENOENT) return cb_fail(ctx, "unlinkat");
    if (unlinkat(ctx->dir_fd, "file", 0) && errno != ENOENT) return cb_fail(ctx, "unlinkat");
    return 0;
}

static int prepare(struct cb_ctx *ctx) {
    memset(piece, 'x', sizeof piece);
    if (faccessat(ctx->dir_fd, ".", W_OK, 0)) return cb_fail(ctx, "faccessat");
    return release(ctx); /* a copy that was killed may have left them behind */
}

CB_FILE_KERNEL(create,
    .doc = "Create a file, write it in 2 KiB pieces, close, rename and unlink it; sizes lognormal, p50 5.6, p90 35 KiB.",
    .unit = "file",
    .version = 2,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 1 << 20, .flags = CB_SCORED}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release);
