/* OPERATIONS CPU REUSED [APART]: the first byte of OPERATIONS base pages is written, each for the first time, 32 MiB at a time: of a
 * new mapping, or with REUSED = 1 of the same one, whose pages were given back. Only the writes are timed; the first 32 MiB
 * are not. With APART the loop is a function of its own, which the compiler may not put into main(). */
#include "peer.h"

#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) static void apart(char *map, uint64_t n, uint64_t page) {
    for (uint64_t i = 0; i < n; i++) *(volatile char *)(map + i * page) = 'x';
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), reused = number(argc, argv, 3), bytes = 32 << 20;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = bytes / page;
    pin(argv[2], 0);
    char *map = NULL;
    double took = 0;
    for (uint64_t lap = 0, left = ops; left; lap++) {
        if (map && reused && madvise(map, bytes, MADV_DONTNEED)) die("madvise");
        if (map && !reused && munmap(map, bytes)) die("munmap");
        if (!map || !reused) map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED || madvise(map, bytes, MADV_NOHUGEPAGE)) die("memory");
        uint64_t n = lap && left < pages ? left : pages;
        double began = now_ns();
        if (argc > 4) apart(map, n, page);
        else for (uint64_t i = 0; i < n; i++) *(volatile char *)(map + i * page) = 'x';
        if (lap) took += now_ns() - began, left -= n;
    }
    printf("%.4f\n", took / (double)ops);
    return 0;
}
