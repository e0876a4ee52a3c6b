/* OPERATIONS CPU: OPERATIONS MiB are read by 16-byte loads, in address order through 64 MiB on huge pages, over and over.
 * A lap is not timed. */
#include "peer.h"

#include <sys/mman.h>

typedef uint32_t quad __attribute__((vector_size(16)));

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), mib = 1 << 20, laps_of = 64, warm = 64;
    pin(argv[2], 0);
    quad *set = aligned_alloc(2 * mib, laps_of * mib), even = {0}, odd = {0};
    if (!set || madvise(set, laps_of * mib, MADV_HUGEPAGE)) die("memory");
    memset(set, 1, laps_of * mib);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        const quad *block = set + i % laps_of * (mib / sizeof *set);
        for (uint64_t at = 0; at < mib / sizeof *set; at += 2) even ^= block[at], odd ^= block[at + 1];
    }
    double took = now_ns() - began;
    fprintf(stderr, "xor %u\n", (even ^ odd)[0]);
    printf("%.4f\n", took / (double)ops);
    return 0;
}
