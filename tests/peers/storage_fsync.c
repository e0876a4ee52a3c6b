/* OPERATIONS CPU FOLDER: write 4 KiB at the start of an existing file of 4 KiB and fsync() it. */
#include "files.h"

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 10;
    char name[64] = "fsyncXXXXXX", data[4096] = "";
    if (argc < 4 || chdir(argv[3])) die("folder");
    int fd = mkstemp(name);
    if (fd < 0) die("mkstemp");
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        data[i % sizeof data]++;
        if (pwrite(fd, data, sizeof data, 0) != sizeof data || fsync(fd)) die("write, fsync");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return unlink(name) != 0;
}
