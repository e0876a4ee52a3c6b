/* A small file's life as editors and package managers cause it: written under a temporary name, then renamed.
 * Sizes are 64 equally likely quantiles of a lognormal (p50 5.6 KiB, p90 35 KiB: a site-packages tree), in bit-reversed
 * order, so that any run of operations has nearly the same mean; written 2 KiB at a time, as agents' tools were seen to.
 * One name is alive at a time: a folder that has seen thousands of names is slower on some file systems, for minutes. */
#include "../kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t sizes[64] = {
    181, 5897, 2263, 15587, 1167, 9316, 3744, 31405,
    697, 7388, 2942, 21266, 1680, 11907, 4711, 56593,
    462, 6598, 2589, 18083, 1416, 10509, 4204, 40452,
    929, 8286, 3325, 25487, 1961, 13571, 5272, 98342,
    334, 6237, 2423, 16765, 1290, 9889, 3969, 35389,
    813, 7822, 3129, 23216, 1818, 12702, 4984, 71209,
    581, 6981, 2762, 19572, 1546, 11179, 4451, 47158,
    1047, 8782, 3530, 28172, 2110, 14529, 5576, 181912};
static char chunk[2048];

static int prepare(struct cb_ctx *ctx) {
    memset(chunk, 'x', sizeof chunk);
    if (faccessat(ctx->dir_fd, ".", W_OK, 0)) return cb_fail(ctx, "faccessat");
    return 0;
}

static int fill(struct cb_ctx *ctx, int fd, size_t left) {
    while (left) {
        ssize_t put = write(fd, chunk, left < sizeof chunk ? left : sizeof chunk);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return cb_fail(ctx, "write");
        left -= (size_t)put;
    }
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++) {
        size_t size = sizes[ctx->counter++ % 64];
        int fd = openat(ctx->dir_fd, "new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0) return cb_fail(ctx, "openat");
        int rc = fill(ctx, fd, size);
        if (close(fd) && !rc) rc = cb_fail(ctx, "close");
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

CB_FILE_KERNEL(create,
    .doc = "Create a file, write it in 2 KiB pieces, close, rename and unlink it; sizes lognormal, p50 5.6 KiB, p90 35 KiB.",
    .unit = "file",
    .version = 1,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 1 << 20, .flags = CB_SCORED}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release);
