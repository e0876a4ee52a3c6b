/* OPERATIONS CPU FOLDER: open one of 64 files with O_TRUNC, write it in 2 KiB pieces, close; sizes lognormal. */
#include "files.h"

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 64;
    char name[16];
    enter(argc, argv);
    const uint32_t *sizes = lognormal();
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        snprintf(name, sizeof name, "text%02d.c", (int)(i % 64));
        int fd = i < warm ? open(name, O_WRONLY | O_CREAT | O_EXCL, 0644) : open(name, O_WRONLY | O_TRUNC);
        if (fd < 0) die("open");
        write_pieces(fd, sizes[i % PARTS]);
        if (close(fd)) die("close");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    leave();
    return 0;
}
