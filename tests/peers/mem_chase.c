/* OPERATIONS CPU BYTES: a linked list through all 64-byte lines of BYTES, in the one cycle that Sattolo's shuffle gives.
 * It is walked for a lap before the clock starts. */
#include "peer.h"

#include <sys/mman.h>

struct line { struct line *next; char rest[56]; };

static uint64_t xorshift(void) {
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), bytes = number(argc, argv, 3), n = bytes / sizeof(struct line);
    pin(argv[2], 0);
    size_t huge = 2 << 20, room = (bytes + huge - 1) / huge * huge;
    struct line *lines = aligned_alloc(huge, room);
    if (!lines || madvise(lines, room, MADV_HUGEPAGE)) die("memory");
    memset(lines, 1, room); /* a set smaller than a huge page gets one all the same */
    for (uint64_t i = 0; i < n; i++) lines[i].next = &lines[i];
    for (uint64_t i = n - 1; i > 0; i--) {
        uint64_t j = xorshift() % i; /* below i, never i itself: this is what makes one cycle of it */
        struct line *kept = lines[i].next;
        lines[i].next = lines[j].next;
        lines[j].next = kept;
    }
    struct line *at = lines;
    for (uint64_t i = 0; i < n; i++) at = at->next; /* a whole lap: warm, and proof of the one cycle */
    if (at != lines) return fputs("not at the start after a lap\n", stderr), 1;
    double began = now_ns();
    for (uint64_t i = 0; i < ops; i++) at = at->next;
    double took = now_ns() - began;
    fprintf(stderr, "ended at line %td\n", at - lines);
    printf("%.4f\n", took / (double)ops);
    return 0;
}
