/* Reading memory in address order, again and again from end to end: bandwidth, which prefetchers help.
 * 16-byte loads, 64 bytes a step, into four sums: the adds of one step wait for none of each other, so that loads alone
 * are the limit (64 bytes need four load slots, two cycles of current cores: 90 GB/s at 3 GHz). */
#include "../kernel.h"

#define SET ((size_t)64 << 20)
#define MIB ((size_t)1 << 20)
#define BLOCKS (SET / MIB)

static int prepare(struct cb_ctx *ctx) {
    uint64_t *words = ctx->state = cb_arena(ctx, SET, CB_HUGE);
    if (!words) return cb_fail(ctx, ctx->call);
    for (uint64_t i = 0; i < SET / sizeof *words; i++) words[i] = i + 1;
    return 0;
}

static int warm(struct cb_ctx *ctx) {
    if (SET <= ctx->llc_bytes) cb_sweep(ctx->state, SET); /* a larger one would not stay anyway */
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    cb_vector a = {0}, b = {0}, c = {0}, d = {0};
    for (uint64_t i = 0; i < ops; i++) {
        const cb_vector *at = (const void *)((char *)ctx->state + (ctx->counter++ % BLOCKS) * MIB);
        for (const cb_vector *end = at + MIB / sizeof *at; at < end; at += 4) a += at[0], b += at[1], c += at[2], d += at[3];
    }
    a += b + c + d;
    ctx->checksum += a[0] + a[1];
    return 0;
}

static uint64_t sum_to(uint64_t n) { return n * (n + 1) / 2; }

/* Words count up from 1, so the sum of all that was read is known: whole laps, and the part of the last. */
static int release(struct cb_ctx *ctx) {
    uint64_t words = MIB / sizeof(uint64_t);
    uint64_t due = ctx->counter / BLOCKS * sum_to(BLOCKS * words) + sum_to(ctx->counter % BLOCKS * words);
    cb_arena_free(ctx);
    return ctx->checksum != due ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_mem_read = {
    .name = "mem_read",
    .family = "memory",
    .doc = "Reading one MiB, in address order through 64 MiB on huge pages, by 16-byte loads.",
    .unit = "MiB",
    .instructions = "loads of " CB_VECTOR,
    .version = 1,
    .params = (const struct cb_param[]){
        {.label = "set=64M", .value = SET, .held_bytes = SET, .flags = CB_SCORED, .pages = CB_HUGE}, {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
