/* Copying between two buffers of 64 MiB, by 16-byte loads and stores that go through the caches.
 * Not libc's memcpy: it picks other instructions on each host, and past a size that it derives from the caches stores that
 * bypass them, so that hosts would be compared in different work. Each store's line is read first, where the CPU does not
 * find out by itself that it is overwritten whole. */
#include "../kernel.h"

#include <string.h>

#define SET ((size_t)64 << 20)
#define MIB ((size_t)1 << 20)
#define BLOCKS (SET / MIB)

static char *to(struct cb_ctx *ctx, uint64_t op) { return (char *)ctx->arenas[1].at + op % BLOCKS * MIB; }

/* Each lap begins one MiB further on: what was copied before is not what is due. */
static char *from(struct cb_ctx *ctx, uint64_t op) {
    return (char *)ctx->arenas[0].at + (op + op / BLOCKS) % BLOCKS * MIB;
}

static int prepare(struct cb_ctx *ctx) {
    uint64_t *words = cb_arena(ctx, SET, CB_HUGE);
    if (!words || !cb_arena(ctx, SET, CB_HUGE)) return cb_fail(ctx, ctx->call);
    for (uint64_t i = 0; i < SET / sizeof *words; i++) words[i] = i + 1;
    return 0;
}

static int warm(struct cb_ctx *ctx) {
    for (int i = 0; i < 2; i++)
        if (2 * SET <= ctx->llc_bytes) cb_sweep(ctx->arenas[i].at, SET); /* larger ones would not stay anyway */
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++, ctx->counter++) {
        const cb_vector *s = (const void *)from(ctx, ctx->counter), *end = s + MIB / sizeof *s;
        for (cb_vector *d = (void *)to(ctx, ctx->counter); s < end; s += 4, d += 4) {
            cb_vector x0 = s[0], x1 = s[1], x2 = s[2], x3 = s[3];
            d[0] = x0, d[1] = x1, d[2] = x2, d[3] = x3;
            __asm__ volatile("" ::: "memory"); /* or the compiler makes a call of memcpy() of it */
        }
    }
    return 0;
}

/* Every block holds what the last operation on it had to bring there. */
static int release(struct cb_ctx *ctx) {
    int wrong = 0;
    uint64_t n = ctx->counter;
    for (uint64_t op = n < BLOCKS ? 0 : n - BLOCKS; ctx->narenas == 2 && op < n; op++)
        wrong |= memcmp(to(ctx, op), from(ctx, op), MIB) != 0;
    ctx->checksum = n;
    cb_arena_free(ctx);
    return wrong ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_mem_copy = {
    .name = "mem_copy",
    .family = "memory",
    .doc = "Copying one MiB, in address order from 64 MiB to other 64 MiB on huge pages, by 16-byte loads and cached stores.",
    .unit = "MiB",
    .instructions = "loads and cached stores of " CB_VECTOR,
    .version = 1,
    .params = (const struct cb_param[]){
        {.label = "set=64M", .value = SET, .held_bytes = 2 * SET, .flags = CB_SCORED, .pages = CB_HUGE}, {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
