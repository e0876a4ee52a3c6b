/* Buffers of kernels on the pages that they ask for, and random cycles through them. */
#include "kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((size_t)2 << 20)

/* Bytes of the mapping that begins at `start` which lie on transparent huge pages (smaps, proc(5)). */
static uint64_t huge_bytes(uintptr_t start) {
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (!smaps) return 0;
    char line[512];
    int inside = 0;
    unsigned long from, to, kib = 0;
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = from == start;
        else if (inside && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1) break;
    }
    fclose(smaps);
    return (uint64_t)kib << 10;
}

/* The reserve around the buffer stays inaccessible: mappings of equal kind would merge, and smaps counts by mapping. */
void *cb_arena(struct cb_ctx *ctx, size_t bytes, enum cb_pages pages) {
    size_t page = pages == CB_HUGE ? HUGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (bytes + page - 1) / page * page, mapped = size + 2 * page;
    if (ctx->narenas == CB_MAX_ARENAS) return errno = E2BIG, ctx->call = "cb_arena", NULL;
    int shared = pages == CB_SHARED ? MAP_SHARED : MAP_PRIVATE;
    char *map = mmap(NULL, mapped, PROT_NONE, shared | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return ctx->call = "mmap", NULL;
    char *at = (char *)(((uintptr_t)map + page) / page * page);
    if (mprotect(at, size, PROT_READ | PROT_WRITE)) {
        munmap(map, mapped);
        return ctx->call = "mprotect", NULL;
    }
    /* EINVAL: a kernel without huge pages. What was had is read back below, so the refusal is no error. */
    madvise(at, size, pages == CB_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += (size_t)sysconf(_SC_PAGESIZE)) ((volatile char *)at)[i] = 0;
    ctx->arenas[ctx->narenas].at = at;
    ctx->arenas[ctx->narenas].map = map;
    ctx->arenas[ctx->narenas].bytes = size;
    ctx->arenas[ctx->narenas].mapped = mapped;
    ctx->narenas++;
    if (pages == CB_HUGE) {
        ctx->huge_bytes += huge_bytes((uintptr_t)at);
        ctx->huge_asked_bytes += size;
    }
    return at;
}

void cb_arena_free(struct cb_ctx *ctx) {
    while (ctx->narenas) {
        ctx->narenas--;
        munmap(ctx->arenas[ctx->narenas].map, ctx->arenas[ctx->narenas].mapped);
    }
}

/* A full-period bijection over the line index: rounds of xorshift and odd multiply, each invertible. A line's successor is
 * mix(unmix(line) + 1), so the cycle is written in address order, several times faster than a shuffle. Six rounds: with two
 * the 16 commonest strides of a 256 KiB set made 7 to 14 % of its steps, which a stride prefetcher may learn, with four up
 * to 3.5 % for the worst of 400 seeds, with six 2.2 %; in shuffles they make 1.7 to 2 %. */
#define ROUNDS 6
struct mixer { uint64_t mask, odd[ROUNDS], inverse[ROUNDS]; unsigned shift; };

static uint64_t inverse(uint64_t odd) { /* modulo 2^64, by Newton: the number of right bits doubles each time */
    uint64_t x = odd;
    for (int i = 0; i < 5; i++) x *= 2 - odd * x;
    return x;
}

static struct mixer mixer(uint64_t lines, uint64_t seed) {
    unsigned bits = (unsigned)__builtin_ctzll(lines);
    struct mixer m = {.mask = lines - 1, .shift = bits / 2 + 1}; /* 2 * shift > bits: x ^= x >> shift undoes itself */
    for (int r = 0; r < ROUNDS; r++) { /* the odd numbers are steps of splitmix64 (Steele and others, OOPSLA 2014) */
        uint64_t z = (seed = seed + 0x9E3779B97F4A7C15u);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        m.odd[r] = (z ^ z >> 31) | 1;
        m.inverse[r] = inverse(m.odd[r]);
    }
    return m;
}

static uint64_t mix(const struct mixer *m, uint64_t x) {
    for (int r = 0; r < ROUNDS; r++) x = (x ^ x >> m->shift) * m->odd[r] & m->mask;
    return x ^ x >> m->shift;
}

static uint64_t unmix(const struct mixer *m, uint64_t x) {
    for (int r = ROUNDS; r-- > 0;) x = (x ^ x >> m->shift) * m->inverse[r] & m->mask;
    return x ^ x >> m->shift;
}

uint64_t cb_cycle_at(uint64_t n, uint64_t seed, uint64_t i) {
    struct mixer m = mixer(n, seed);
    return mix(&m, i & m.mask);
}

void cb_cycle_of(void *base, uint64_t n, size_t stride, uint64_t seed) {
    struct mixer m = mixer(n, seed);
    for (uint64_t i = 0; i < n; i++) {
        char *next = (char *)base + cb_cycle_offset(n, stride, mix(&m, (unmix(&m, i) + 1) & m.mask));
        memcpy((char *)base + cb_cycle_offset(n, stride, i), &next, sizeof next);
    }
}

/* Prefetches by addresses that depend on no load: nobody waits for one, so that 32 MiB take 4 ms where loads of the same
 * addresses took 24 and a chase 80; and the lines arrive in the order in which a chase visits them. */
void cb_cycle_lap_of(const void *base, uint64_t n, size_t stride, uint64_t seed, uint64_t from) {
    struct mixer m = mixer(n, seed);
    for (uint64_t i = 0; i < n; i++)
        __builtin_prefetch((const char *)base + cb_cycle_offset(n, stride, mix(&m, (from + i) & m.mask)));
}
