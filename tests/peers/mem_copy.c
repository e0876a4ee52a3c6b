/* OPERATIONS CPU: OPERATIONS MiB are copied by 16-byte loads and ordinary 16-byte stores, in address order from 64 MiB to
 * other 64 MiB on huge pages, over and over. A lap is not timed. */
#include "peer.h"

#include <sys/mman.h>

typedef uint32_t quad __attribute__((vector_size(16)));

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), mib = 1 << 20, n = 64 * mib / sizeof(quad), warm = 64;
    pin(argv[2], 0);
    quad *all = aligned_alloc(2 * mib, 128 * mib);
    if (!all || madvise(all, 128 * mib, MADV_HUGEPAGE)) die("memory");
    memset(all, 1, 128 * mib);
    const quad *from = all;
    volatile quad *to = all + n; /* volatile: each store is one of 16 bytes, and nothing is made of them together */
    double began = 0;
    uint64_t at = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        for (uint64_t end = at + n / 64; at < end; at += 2) to[at] = from[at], to[at + 1] = from[at + 1];
        at %= n;
    }
    double took = now_ns() - began;
    fprintf(stderr, "last %u\n", all[2 * n - 1][3]);
    printf("%.4f\n", took / (double)ops);
    return 0;
}
