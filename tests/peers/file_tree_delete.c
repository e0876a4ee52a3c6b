/* OPERATIONS CPU FOLDER: read the folders of a tree of 400 files in 40 and unlink all in it; the tree is made untimed. */
#include "files.h"

#define FILES 400

static void delete(int above, const char *name) {
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0) die("folder");
    struct folder read;
    begin(&read, fd);
    for (struct dirent64 *e; (e = next(&read));) {
        if (e->d_type == DT_DIR) delete(fd, e->d_name);
        else if (unlinkat(fd, e->d_name, 0)) die("unlink");
    }
    close(fd);
    if (unlinkat(above, name, AT_REMOVEDIR)) die("rmdir");
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1);
    static char paths[FILES][64];
    enter(argc, argv);
    pin(argv[2], 0);
    double took = 0;
    for (uint64_t i = 0; i < 1 + ops; i++) {
        make_tree("tree", FILES, 1, paths);
        double began = now_ns();
        delete(AT_FDCWD, "tree");
        if (i) took += now_ns() - began;
    }
    printf("%.4f\n", took / (double)ops);
    return 0;
}
