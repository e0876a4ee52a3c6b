/* What the peers of small files share: sizes drawn from the lognormal itself, writing in pieces, and a tree of files.
 * Lognormal: p50 5.6 KiB, p90 35 KiB, at most 1 MiB; its mean is 15868 bytes, that of 4096 parts 15878. */
#ifndef FILES_H
#define FILES_H

#include "peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTS 4096

/* The z below which a share u of the normal distribution lies. */
static inline double normal_at(double u) {
    double low = -10, high = 10;
    for (int i = 0; i < 50; i++) {
        double mid = (low + high) / 2;
        *(erfc(-mid / sqrt(2)) / 2 < u ? &low : &high) = mid;
    }
    return low;
}

/* One size from the middle of each of PARTS equally likely parts, in an order that mixes small and large. */
static inline const uint32_t *lognormal(void) {
    static uint32_t sizes[PARTS];
    double sigma = log(35 / 5.6) / normal_at(0.9);
    for (uint64_t i = 0; i < PARTS; i++) {
        uint64_t part = i * 2531 % PARTS; /* odd: each part comes once */
        sizes[i] = (uint32_t)fmin(round(5.6 * 1024 * exp(sigma * normal_at(((double)part + 0.5) / PARTS))), 1 << 20);
    }
    return sizes;
}

static inline void write_pieces(int fd, size_t bytes) {
    static char piece[2048];
    memset(piece, 'x', 1);
    for (size_t n; bytes; bytes -= n) {
        n = bytes < sizeof piece ? bytes : sizeof piece;
        if (write(fd, piece, n) != (ssize_t)n) die("write");
    }
}

/* A new folder below one that is given, for as long as the peer runs. */
static char own_folder[] = "peerXXXXXX";

static inline void enter(int argc, char **argv) {
    if (argc < 4 || chdir(argv[3]) || !mkdtemp(own_folder) || chdir(own_folder)) die("folder");
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline void remove_tree(const char *root) {
    if (nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS)) die("nftw");
}

static inline void leave(void) {
    if (chdir("..")) die("folder");
    remove_tree(own_folder);
}

/* The entries of an open folder but for itself and the one above. readdir() would read them by the same call, but asks
 * for the folder's kind and flags first and allocates its buffer: 9 % more for a walk. */
struct folder { int fd; ssize_t bytes, at; _Alignas(64) char buffer[32 << 10]; };

static inline void begin(struct folder *folder, int fd) {
    folder->fd = fd;
    folder->bytes = folder->at = 0;
}

static inline struct dirent64 *next(struct folder *folder) {
    for (;;) {
        if (folder->at == folder->bytes) {
            folder->bytes = getdents64(folder->fd, folder->buffer, sizeof folder->buffer);
            folder->at = 0;
            if (folder->bytes < 0) die("getdents64");
            if (folder->bytes == 0) return NULL;
        }
        struct dirent64 *entry = (struct dirent64 *)(folder->buffer + folder->at);
        folder->at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return entry;
    }
}

/* `files` files, ten in a folder, three folders in a folder, below `root`; paths[i] is where the i-th is. Each size is the
 * mean of a part of the lognormal, of which there are as many as files; every number of them has nearly the same mean. */
static inline void make_tree(const char *root, int files, int filled, char (*paths)[64]) {
    char (*folders)[64] = calloc((size_t)files, sizeof *folders);
    double sigma = log(35 / 5.6) / normal_at(0.9);
    if (!folders) die("memory");
    for (int i = 0; i < files / 10; i++) {
        if (i) snprintf(folders[i], 64, "%.50s/sub%d", folders[(i + 2) / 3 - 1], i % 3);
        else snprintf(folders[i], 64, "%s", root);
        if (mkdir(folders[i], 0755)) die("mkdir");
    }
    for (int i = 0; i < files; i++) {
        int part = (int)((int64_t)i * 149 % files);
        double size = 0;
        for (int j = 0; j < 16; j++)
            size += fmin(5.6 * 1024 * exp(sigma * normal_at((part + (j + 0.5) / 16) / files)), 1 << 20) / 16;
        snprintf(paths[i], 64, "%.48s/text%04u.c", folders[i % (files / 10)], (unsigned)i % 10000);
        int fd = open(paths[i], O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0) die("open");
        if (filled) write_pieces(fd, (size_t)size);
        else if (ftruncate(fd, (off_t)size)) die("ftruncate");
        close(fd);
    }
    free(folders);
}

/* Indexes below n in random order. */
static inline int *shuffled(int n) {
    int *order = malloc((size_t)n * sizeof *order);
    if (!order) die("memory");
    srandom(7);
    for (int i = 0; i < n; i++) {
        int j = (int)(random() % (i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}
#endif
