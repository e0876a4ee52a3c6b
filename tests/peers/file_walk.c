/* OPERATIONS CPU FOLDER FILES: walk a tree, ten files in each folder: open each folder, read its entries, stat each, close. */
#include "files.h"

static uint64_t entries;

static void walk(int above, const char *name) {
    struct stat st;
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0) die("folder");
    struct folder read;
    begin(&read, fd);
    for (struct dirent64 *e; (e = next(&read));) {
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW)) die("fstatat");
        entries++;
        if (S_ISDIR(st.st_mode)) walk(fd, e->d_name);
    }
    close(fd);
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), files = number(argc, argv, 4);
    char (*paths)[64] = calloc(files, sizeof *paths);
    if (!paths) die("memory");
    enter(argc, argv);
    make_tree("tree", (int)files, 0, paths);
    pin(argv[2], 0);
    walk(AT_FDCWD, "tree");
    double began = now_ns();
    for (uint64_t i = 0; i < ops; i++) walk(AT_FDCWD, "tree");
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    if (entries != (ops + 1) * (files + files / 10 - 1)) die("count");
    leave();
    return 0;
}
