/* Trees of small files walked, copied and deleted by the calls of find, cp and rm, without an allocation.
 * What is met is counted, and each job must meet the whole tree: nothing of the work can be left out unnoticed. */
#include "kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct entry { uint64_t inode, next; uint16_t bytes; uint8_t type; char name[]; }; /* getdents64(2) */
struct place { int above; const char *name; }; /* a folder's name, and the open folder that it is in */

static int copy_file(struct cb_ctx *ctx, int from, int to, const char *name) {
    struct cb_tree *tree = cb_tree(ctx);
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
    if (in < 0) return cb_fail(ctx, "openat");
    int out = openat(to, name, CB_NEW_FILE, 0600);
    if (out < 0) return cb_close(ctx, in, cb_fail(ctx, "openat"));
    ssize_t got = 0, put = 0;
    while (got == put && (got = read(in, tree->data, sizeof tree->data)) > 0) {
        put = write(out, tree->data, (size_t)got);
        tree->bytes += (uint64_t)got;
    }
    if (got < 0) rc = cb_fail(ctx, "read");
    else if (put < 0 || (got && put < got)) errno = put < 0 ? errno : ENOSPC, rc = cb_fail(ctx, "write");
    return cb_close(ctx, out, cb_close(ctx, in, rc));
}

static int folder(struct cb_ctx *, enum cb_tree_job, struct place from, struct place to, int depth);

static int entry(struct cb_ctx *ctx, enum cb_tree_job job, int from, int to, int depth, const struct entry *e) {
    struct cb_tree *tree = cb_tree(ctx);
    int is_folder = e->type == DT_DIR;
    if (job == CB_WALK || e->type == DT_UNKNOWN) { /* some file systems do not tell what an entry is */
        struct stat st;
        if (fstatat(from, e->name, &st, AT_SYMLINK_NOFOLLOW)) return cb_fail(ctx, "fstatat");
        is_folder = S_ISDIR(st.st_mode);
        if (job == CB_WALK && !is_folder) tree->bytes += (uint64_t)st.st_size;
    }
    if (is_folder) return folder(ctx, job, (struct place){from, e->name}, (struct place){to, e->name}, depth + 1);
    tree->files++;
    if (job == CB_COPY) return copy_file(ctx, from, to, e->name);
    return job == CB_DELETE && unlinkat(from, e->name, 0) ? cb_fail(ctx, "unlinkat") : 0;
}

static int entries(struct cb_ctx *ctx, enum cb_tree_job job, int from, int to, int depth) {
    char *buffer = cb_tree(ctx)->entries[depth];
    ssize_t n;
    while ((n = syscall(SYS_getdents64, from, buffer, sizeof cb_tree(ctx)->entries[depth])) > 0)
        for (ssize_t at = 0; at < n; at += ((struct entry *)(buffer + at))->bytes) {
            const struct entry *e = (struct entry *)(buffer + at);
            if (e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]))) continue;
            int rc = entry(ctx, job, from, to, depth, e);
            if (rc) return rc;
        }
    return n < 0 ? cb_fail(ctx, "getdents64") : 0;
}

static int folder(struct cb_ctx *ctx, enum cb_tree_job job, struct place from, struct place to, int depth) {
    if (depth == CB_TREE_DEPTH) return errno = ELOOP, cb_fail(ctx, "depth");
    int in = openat(from.above, from.name, FOLDER), out = -1, rc;
    if (in < 0) return cb_fail(ctx, "openat");
    if (job == CB_COPY) {
        if (mkdirat(to.above, to.name, 0700)) return cb_close(ctx, in, cb_fail(ctx, "mkdirat"));
        if ((out = openat(to.above, to.name, FOLDER)) < 0) return cb_close(ctx, in, cb_fail(ctx, "openat"));
    }
    cb_tree(ctx)->folders++;
    rc = cb_close(ctx, in, entries(ctx, job, in, out, depth));
    if (job == CB_COPY) rc = cb_close(ctx, out, rc);
    return !rc && job == CB_DELETE && unlinkat(from.above, from.name, AT_REMOVEDIR) ? cb_fail(ctx, "unlinkat") : rc;
}

int cb_tree_job(struct cb_ctx *ctx, enum cb_tree_job job, const char *from, const char *to, uint64_t files) {
    struct cb_tree *tree = cb_tree(ctx);
    tree->files = tree->folders = tree->bytes = 0;
    int rc = folder(ctx, job, (struct place){ctx->dir_fd, from}, (struct place){ctx->dir_fd, to}, 0);
    if (rc || (tree->files == files && tree->folders == files / CB_TREE_FILES)) return rc;
    return errno = EBADE, cb_fail(ctx, "count");
}

/* The variant's folder, where there is one: a prepare that failed may not have come so far, and a copy that was killed
 * has left one behind for its successor. */
static int clear(struct cb_ctx *ctx) {
    struct place root = {ctx->dir_fd, cb_tree(ctx)->root};
    return faccessat(ctx->dir_fd, root.name, F_OK, AT_SYMLINK_NOFOLLOW) ? 0 : folder(ctx, CB_DELETE, root, root, 0);
}

int cb_tree_start(struct cb_ctx *ctx) {
    struct cb_tree *tree = cb_arena(ctx, sizeof *tree, CB_BASE);
    if (!tree) return cb_fail(ctx, ctx->call);
    snprintf(tree->root, sizeof tree->root, "%s-%d.%02x", ctx->kernel->name, (int)(ctx->param - ctx->kernel->params),
             (unsigned)ctx->seed & 0xff); /* ext4 chooses the group of its inodes by the name: another in each pass */
    int rc = clear(ctx);
    return rc || !mkdirat(ctx->dir_fd, tree->root, 0700) ? rc : cb_fail(ctx, "mkdirat");
}

int cb_tree_end(struct cb_ctx *ctx) {
    int rc = ctx->narenas ? clear(ctx) : 0;
    cb_arena_free(ctx);
    return rc;
}
