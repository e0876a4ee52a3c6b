/* 4 KiB made durable in place, as databases and lock files of agents' tools do: neither size nor name of the file change.
 * How long it takes is the matter of the file system and the disk, or of what a virtual machine takes for one. */
#include "../kernel.h"

#include <fcntl.h>
#include <unistd.h>

#define BYTES 4096
#define WORDS (BYTES / sizeof(uint64_t))

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    ctx->state = rc ? NULL : cb_arena(ctx, BYTES, CB_BASE);
    if (!ctx->state) return rc ? rc : cb_fail(ctx, ctx->call);
    char path[CB_PATH];
    cb_tree_path(path, cb_tree(ctx)->root, 0, "db");
    int fd = openat(ctx->dir_fd, path, (CB_NEW_FILE & ~O_WRONLY) | O_RDWR, 0600);
    if (fd < 0) return cb_fail(ctx, "openat");
    ctx->fds[0] = fd;
    if (pwrite(fd, ctx->state, BYTES, 0) != BYTES) return cb_fail(ctx, "pwrite");
    return fsync(fd) ? cb_fail(ctx, "fsync") : 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    uint64_t *words = ctx->state;
    for (uint64_t i = 0; i < ops; i++) {
        words[0] = words[WORDS - 1] = ++ctx->counter;
        ssize_t put = pwrite(ctx->fds[0], words, BYTES, 0);
        if (put != BYTES) return errno = put < 0 ? errno : ENOSPC, cb_fail(ctx, "pwrite");
        if (fsync(ctx->fds[0])) return cb_fail(ctx, "fsync");
        ctx->checksum += words[0];
    }
    return 0;
}

static int release(struct cb_ctx *ctx) {
    uint64_t *words = ctx->state;
    int wrong = 0;
    if (ctx->fds[0] > 0) {
        if (ctx->counter) wrong = pread(ctx->fds[0], words, BYTES, 0) != BYTES || words[WORDS - 1] != ctx->counter;
        close(ctx->fds[0]);
    }
    ctx->fds[0] = 0;
    int rc = cb_tree_end(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : rc;
}

const struct cb_kernel cb_kernel_storage_fsync = {
    .name = "storage_fsync",
    .family = "storage",
    .doc = "pwrite() of 4 KiB at the start of an existing file of 4 KiB, which stays open, and fsync() of it.",
    .unit = "fsync",
    .version = 1,
    .flags = CB_BLOCKING | CB_STORAGE | CB_ISOLATE,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 1 << 20}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
