/* OPERATIONS CPU PAGES: a linked list with one 64-byte line in each of PAGES base pages, at a random place in its page, in
 * the one cycle that Sattolo's shuffle gives. It is walked for two laps before the clock starts. */
#include "peer.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t xorshift(void) {
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), n = number(argc, argv, 3), page = (uint64_t)sysconf(_SC_PAGESIZE);
    pin(argv[2], 0);
    char *map = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void ***spot = malloc(n * sizeof *spot);
    if (map == MAP_FAILED || !spot || madvise(map, n * page, MADV_NOHUGEPAGE)) die("memory");
    for (uint64_t i = 0; i < n; i++) {
        spot[i] = (void **)(map + i * page + 64 * (xorshift() >> 20) % page);
        *spot[i] = spot[i];
    }
    for (uint64_t i = n - 1; i > 0; i--) {
        uint64_t j = (xorshift() >> 20) % i;
        void *kept = *spot[i];
        *spot[i] = *spot[j];
        *spot[j] = kept;
    }
    void **at = spot[0], **first = at;
    for (uint64_t i = 0; i < 2 * n; i++) at = *at;
    if (at != first) return fputs("not at the start after two laps\n", stderr), 1;
    double began = now_ns();
    for (uint64_t i = 0; i < ops; i++) at = *at;
    double took = now_ns() - began;
    fprintf(stderr, "ended at %td\n", (char *)at - map);
    printf("%.4f\n", took / (double)ops);
    return 0;
}
