/* Dependent loads through a random cycle over every line of a set: latency, which no prefetcher hides.
 * The cursor stays where it is between batches: starting again at the base would read the same few megabytes. */
#include "../kernel.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define KIB(n) ((uint64_t)(n) << 10)
#define SET(name, bytes, bits) {.label = "set=" name, .value = bytes, .held_bytes = bytes, .flags = bits, .pages = CB_HUGE}
#define BASE(name, bytes) {.label = "set=" name ",pages=base", .value = bytes, .held_bytes = bytes, .pages = CB_BASE}
#define PART(name, cache) {.label = "set=" name "/2", .value = 2, .relative = cache, .pages = CB_HUGE}

static int prepare(struct cb_ctx *ctx) {
    if (ctx->value < 2 * CB_LINE || ctx->value & (ctx->value - 1)) return errno = EINVAL, cb_fail(ctx, "power of two");
    ctx->state = cb_arena(ctx, ctx->value, (enum cb_pages)ctx->param->pages);
    if (!ctx->state) return cb_fail(ctx, ctx->call);
    cb_cycle(ctx->state, ctx->value / CB_LINE, ctx->seed);
    ctx->state = (char *)ctx->state + CB_LINE * cb_cycle_at(ctx->value / CB_LINE, ctx->seed, 0);
    return 0;
}

/* Two laps up to the cursor, in the order of the cycle, leave in the caches what an uninterrupted walk would: after one,
 * a 4 MiB set was not yet in a victim L3 (101 ns a load in place of 29), and sweeps in address order kept the last few
 * megabytes, so that samples of 32 MiB took 118 ns in place of 150. */
static int warm(struct cb_ctx *ctx) {
    if (ctx->value > (ctx->llc_bytes ? ctx->llc_bytes : MIB(32))) return 0; /* it would not stay anyway */
    for (int lap = 0; lap < 2; lap++)
        cb_cycle_lap(ctx->arenas[0].at, ctx->value / CB_LINE, ctx->seed, ctx->counter);
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    void **at = ctx->state;
    uint64_t left = ops;
    for (; left >= 8; left -= 8) at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at;
    while (left--) at = *at;
    ctx->state = at;
    ctx->counter += ops;
    return 0;
}

/* Where the cursor must stand after `counter` loads is known without walking: any load left out is found here. */
static int release(struct cb_ctx *ctx) {
    if (!ctx->narenas) return 0;
    char *base = ctx->arenas[0].at;
    uint64_t due = CB_LINE * cb_cycle_at(ctx->value / CB_LINE, ctx->seed, ctx->counter);
    int lost = ctx->state && (char *)ctx->state != base + due;
    ctx->checksum = due;
    cb_arena_free(ctx);
    return lost ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_mem_chase = {
    .name = "mem_chase",
    .family = "memory",
    .doc = "One load whose address is the value of the load before it, on a random cycle over all 64-byte lines of the set.",
    .unit = "load",
    .version = 2,
    .params = (const struct cb_param[]){
        SET("16K", KIB(16), CB_SCORED), SET("256K", KIB(256), CB_SCORED), SET("4M", MIB(4), CB_SCORED),
        SET("32M", MIB(32), CB_SCORED), SET("256M", MIB(256), CB_SCORED),
        PART("L1", CB_OF_L1), PART("L2", CB_OF_L2), PART("L3", CB_OF_L3),
        BASE("4M", MIB(4)), BASE("32M", MIB(32)), BASE("256M", MIB(256)),
        SET("8K", KIB(8), 0), SET("32K", KIB(32), 0), SET("64K", KIB(64), 0), SET("128K", KIB(128), 0),
        SET("512K", KIB(512), 0), SET("1M", MIB(1), 0), SET("2M", MIB(2), 0), SET("8M", MIB(8), 0), SET("16M", MIB(16), 0),
        SET("64M", MIB(64), 0), SET("128M", MIB(128), 0), SET("512M", MIB(512), 0), {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
