/* OPERATIONS CPU: 128 KiB of anonymous memory are mapped, and unmapped again untouched. Some are not timed. */
#include "peer.h"

#include <sys/mman.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 1000;
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        void *at = mmap(NULL, 131072, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
        if (at == MAP_FAILED || munmap(at, 131072)) die("mmap, munmap");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
