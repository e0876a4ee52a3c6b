/* OPERATIONS CPU FOLDER: open a file of at least 4 KiB by path in a tree of 400 files in 40 folders, read 4 KiB, close. */
#include "files.h"

#define FILES 400

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), n = 0;
    char data[4096];
    static char paths[FILES][64];
    enter(argc, argv);
    make_tree("tree", FILES, 1, paths);
    int *order = shuffled(FILES);
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        if (stat(paths[order[i]], &st)) die("stat");
        if (st.st_size >= (off_t)sizeof data) order[n++] = order[i];
    }
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < n + ops; i++) {
        if (i == n) began = now_ns();
        int fd = open(paths[order[i % n]], O_RDONLY);
        if (fd < 0 || read(fd, data, sizeof data) != sizeof data || data[0] != 'x' || close(fd)) die("open, read, close");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    leave();
    return 0;
}
