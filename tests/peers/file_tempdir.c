/* OPERATIONS CPU FOLDER: make a folder of a random name, create a file in it, write 2 KiB, close, unlink, remove the folder. */
#include "files.h"

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 100;
    char name[64], file[80];
    enter(argc, argv);
    srandom(3);
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        int n = sprintf(name, "tmp");
        for (int c = 0; c < 8; c++) name[n++] = (char)('a' + random() % 26);
        name[n] = 0;
        memcpy(file, name, (size_t)n);
        strcpy(file + n, "/data");
        if (mkdir(name, 0700)) die("mkdir");
        int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0) die("open");
        write_pieces(fd, 2048);
        if (close(fd) || unlink(file) || rmdir(name)) die("close, unlink, rmdir");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    leave();
    return 0;
}
