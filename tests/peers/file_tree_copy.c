/* OPERATIONS CPU FOLDER: copy a tree of 400 files in 40 folders by read() and write() of 64 KiB; the copy is removed untimed. */
#include "files.h"

#define FILES 400

static char data[64 << 10];

static void copy(int from, const char *name, int to, const char *as) {
    if (mkdirat(to, as, 0755)) die("mkdir");
    int in = openat(from, name, O_RDONLY | O_DIRECTORY), out = openat(to, as, O_RDONLY | O_DIRECTORY);
    if (in < 0 || out < 0) die("folder");
    struct folder entries;
    begin(&entries, in);
    for (struct dirent64 *e; (e = next(&entries));) {
        if (e->d_type == DT_DIR) {
            copy(in, e->d_name, out, e->d_name);
            continue;
        }
        int source = openat(in, e->d_name, O_RDONLY), target = openat(out, e->d_name, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (source < 0 || target < 0) die("open");
        for (ssize_t n; (n = read(source, data, sizeof data));)
            if (n < 0 || write(target, data, (size_t)n) != n) die("read, write");
        if (close(source) || close(target)) die("close");
    }
    close(in);
    close(out);
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1);
    
    static char paths[FILES][64];
    enter(argc, argv);
    make_tree("tree", FILES, 1, paths);
    pin(argv[2], 0);
    double took = 0;
    for (uint64_t i = 0; i < 1 + ops; i++) {
        double began = now_ns();
        copy(AT_FDCWD, "tree", AT_FDCWD, "copy");
        if (i) took += now_ns() - began;
        remove_tree("copy");
    }
    printf("%.4f\n", took / (double)ops);
    leave();
    return 0;
}
