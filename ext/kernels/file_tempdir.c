/* A folder for one step and one file in it, as test runners and tools make by the thousand; named as Python's
 * mkdtemp() does. The names follow from a counter: a random number would be another call. */
#include "../kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct state { char piece[CB_PIECE], folder[96], file[112], *random; };

static int prepare(struct cb_ctx *ctx) {
    int rc = cb_tree_start(ctx);
    struct state *s = ctx->state = rc ? NULL : cb_arena(ctx, sizeof *s, CB_BASE);
    if (!s) return rc ? rc : cb_fail(ctx, ctx->call);
    memset(s->piece, 'x', sizeof s->piece);
    s->random = s->folder + snprintf(s->folder, sizeof s->folder, "%s/tmp........", cb_tree(ctx)->root) - 8;
    snprintf(s->file, sizeof s->file, "%s/file", s->folder);
    return 0;
}

/* Eight times 5 bits of a multiplicative hash (Knuth, The Art of Computer Programming 3, 6.4), in both paths. */
static void next_name(struct state *s, uint64_t counter) {
    uint64_t bits = (counter + 1) * 0x9E3779B97F4A7C15u >> 24;
    for (int i = 0; i < 8; i++, bits >>= 5) s->random[i] = "abcdefghijklmnopqrstuvwxyz012345"[bits & 31];
    memcpy(s->file + (s->random - s->folder), s->random, 8);
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct state *s = ctx->state;
    for (uint64_t i = 0; i < ops; i++) {
        next_name(s, ctx->counter++);
        if (mkdirat(ctx->dir_fd, s->folder, 0700)) return cb_fail(ctx, "mkdirat");
        int fd = openat(ctx->dir_fd, s->file, CB_NEW_FILE, 0600);
        if (fd < 0) return cb_fail(ctx, "openat");
        int rc = cb_close(ctx, fd, cb_write(ctx, fd, s->piece, sizeof s->piece));
        if (rc) return rc;
        if (unlinkat(ctx->dir_fd, s->file, 0)) return cb_fail(ctx, "unlinkat");
        if (unlinkat(ctx->dir_fd, s->folder, AT_REMOVEDIR)) return cb_fail(ctx, "unlinkat");
        for (int c = 0; c < 8; c++) ctx->checksum += (unsigned char)s->random[c];
    }
    return 0;
}

static int release(struct cb_ctx *ctx) { return cb_tree_end(ctx); }

CB_FILE_KERNEL(tempdir,
    .doc = "Make a folder of a random name, create a file in it, write 2 KiB, close, unlink it and remove the folder.",
    .unit = "folder",
    .version = 1,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = 1 << 20, .flags = CB_SCORED}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release);
