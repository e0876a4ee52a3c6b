/* Dependent loads that each need another page: the lines stay in the caches, the translations do not stay in the TLB.
 * 8,192 base pages are more than any core's TLB holds (2,048 to 3,072 entries), their 512 KiB of lines fit a second-level
 * cache of 1 MiB. Of page i of n the line i/n of the way into it is used: line 0 of each would be 1/64 of all sets. */
#include "../kernel.h"

#include <unistd.h>

#define PAGES 8192

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static char *base_of(struct cb_ctx *ctx) { return ctx->arenas[0].at; }
static char *visited(struct cb_ctx *ctx, uint64_t i) {
    return base_of(ctx) + cb_cycle_offset(PAGES, page(), cb_cycle_at(PAGES, ctx->seed, i));
}

static int prepare(struct cb_ctx *ctx) {
    if (!cb_arena(ctx, PAGES * page(), CB_BASE)) return cb_fail(ctx, ctx->call);
    cb_cycle_of(base_of(ctx), PAGES, page(), ctx->seed);
    ctx->state = visited(ctx, 0);
    return 0;
}

/* As in mem_chase: two laps up to the cursor, in the order of the cycle. */
static int warm(struct cb_ctx *ctx) {
    for (int lap = 0; lap < 2; lap++) cb_cycle_lap_of(base_of(ctx), PAGES, page(), ctx->seed, ctx->counter);
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

/* Where the cursor must stand after `counter` loads is known without walking. */
static int release(struct cb_ctx *ctx) {
    if (!ctx->narenas) return 0;
    char *due = visited(ctx, ctx->counter);
    int lost = ctx->state && ctx->state != due;
    ctx->checksum = (uint64_t)(due - base_of(ctx));
    cb_arena_free(ctx);
    return lost ? errno = EBADE, cb_fail(ctx, "checksum") : 0;
}

const struct cb_kernel cb_kernel_mem_tlb = {
    .name = "mem_tlb",
    .family = "memory",
    .doc = "One load whose address is the value of the load before it, on a random cycle with one 64-byte line of each base page.",
    .unit = "load",
    .version = 1,
    .params = (const struct cb_param[]){
        {.label = "pages=8192", .value = PAGES, .held_bytes = PAGES << 12, .flags = CB_SCORED | CB_PAGES, .pages = CB_BASE}, {0}},
    .prepare = prepare,
    .warm = warm,
    .run = run,
    .release = release,
};
