/* OPERATIONS CPU BYTES: with BYTES of base pages touched, fork, let the child end at once, wait for its end. */
#include "peer.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), bytes = number(argc, argv, 3), warm = 2;
    pin(argv[2], 0);
    volatile char *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED || madvise((void *)held, bytes, MADV_NOHUGEPAGE)) die("memory");
    for (uint64_t at = 0; at < bytes; at += (uint64_t)sysconf(_SC_PAGESIZE)) held[at] = 1;
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        int status;
        pid_t child = fork();
        if (child < 0) die("fork");
        if (!child) _exit(7);
        if (wait(&status) != child) die("wait");
        if (status != 7 << 8) return fputs("it did not run\n", stderr), 1;
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
