/* OPERATIONS CPU FOLDER: create a file, write it in 2 KiB pieces, close, rename, unlink; sizes lognormal. */
#include "files.h"

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 64;
    if (argc < 4 || chdir(argv[3])) die("folder");
    const uint32_t *sizes = lognormal();
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        int fd = open("new", O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0) die("open");
        write_pieces(fd, sizes[i % PARTS]);
        if (close(fd) || rename("new", "file") || unlink("file")) die("close, rename, unlink");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
