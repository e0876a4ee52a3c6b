/* Small files as agents' tools leave them: sizes, names, content, and trees of them. The same on every host.
 * Sizes are lognormal (p50 5.6 KiB, p90 35 KiB: a site-packages tree), at most 1 MiB: the means of 64 equally likely
 * slices, so that the 64 have the mean of the distribution, 15,868 bytes; their midpoints lacked 5.5 % of it, in the tail.
 * In bit-reversed order, so that any run of operations has nearly the same mean. */
#include "kernel.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

const uint32_t cb_sizes[CB_SIZES] = {
    173, 5898, 2264, 15592, 1167, 9317, 3745, 31436,
    697, 7389, 2942, 21277, 1680, 11910, 4711, 56798,
    461, 6599, 2589, 18090, 1417, 10511, 4204, 40519,
    929, 8287, 3326, 25504, 1962, 13575, 5273, 100014,
    333, 6238, 2423, 16770, 1290, 9891, 3969, 35433,
    813, 7823, 3130, 23229, 1819, 12705, 4985, 71680,
    581, 6982, 2762, 19580, 1546, 11181, 4452, 47268,
    1047, 8784, 3530, 28194, 2110, 14533, 5577, 234629};

int cb_write(struct cb_ctx *ctx, int fd, const void *piece, size_t left) {
    while (left) {
        ssize_t put = write(fd, piece, left < CB_PIECE ? left : CB_PIECE);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return cb_fail(ctx, "write");
        left -= (size_t)put;
    }
    return 0;
}

void cb_spread(int above, const char *name) {
    int flags, fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !ioctl(fd, FS_IOC_GETFLAGS, &flags)) {
        flags |= FS_TOPDIR_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
    if (fd >= 0) close(fd);
}

int cb_close(struct cb_ctx *ctx, int fd, int rc) { return close(fd) && !rc ? cb_fail(ctx, "close") : rc; }

/* From the 17th on: 400 files then have a mean of 15,841 bytes, and 15,676 from the first on (the 64 have 15,868). */
uint32_t cb_tree_size(uint64_t file) { return cb_sizes[(file + 16) % CB_SIZES]; }

uint64_t cb_tree_bytes(uint64_t files) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < files; i++) bytes += cb_tree_size(i);
    return bytes;
}

uint64_t cb_tree_held(uint64_t files, uint64_t page) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < files; i++) bytes += (cb_tree_size(i) + page - 1) / page * page;
    return bytes;
}

static int folder_path(char *out, const char *root, uint64_t folder) { /* returns its length */
    if (!folder) return snprintf(out, CB_PATH, "%s", root);
    int n = folder_path(out, root, (folder - 1) / 3);
    return n + snprintf(out + n, (size_t)(CB_PATH - n), "/dir%d", (int)((folder - 1) % 3));
}

void cb_tree_path(char out[CB_PATH], const char *root, uint64_t file, const char *kind) {
    int n = folder_path(out, root, file / CB_TREE_FILES);
    snprintf(out + n, (size_t)(CB_PATH - n), "/file_%04d.%s", (int)file, kind);
}

void cb_tree_names(struct cb_name *out, const char *root, uint64_t files) {
    uint64_t lines = 1, i = 0;
    while (lines < files) lines *= 2;
    for (uint64_t n = 0; n < files;) {
        uint64_t file = cb_cycle_at(lines, 1, i++);
        if (file >= files) continue;
        cb_tree_path(out[n].path, root, file, "txt");
        out[n++].file = (uint32_t)file;
    }
}

static int make_file(struct cb_ctx *ctx, const char *path, uint64_t file, int filled) {
    uint64_t piece[CB_PIECE / sizeof(uint64_t)];
    for (uint64_t i = 0; i < sizeof piece / sizeof piece[0]; i++) piece[i] = cb_tree_word(file, i);
    int fd = openat(ctx->dir_fd, path, CB_NEW_FILE, 0600), rc = 0;
    if (fd < 0) return cb_fail(ctx, "openat");
    if (filled) rc = cb_write(ctx, fd, piece, cb_tree_size(file));
    else if (ftruncate(fd, cb_tree_size(file))) rc = cb_fail(ctx, "ftruncate");
    return cb_close(ctx, fd, rc);
}

int cb_tree_make(struct cb_ctx *ctx, const char *root, uint64_t files, int filled) {
    char path[CB_PATH];
    int rc = 0;
    for (uint64_t i = 0; i < files / CB_TREE_FILES; i++) {
        folder_path(path, root, i);
        if (mkdirat(ctx->dir_fd, path, 0700) && (i || errno != EEXIST)) return cb_fail(ctx, "mkdirat");
    }
    for (uint64_t i = 0; i < files && !rc; i++) {
        cb_tree_path(path, root, i, "txt");
        rc = make_file(ctx, path, i, filled);
    }
    return rc;
}
