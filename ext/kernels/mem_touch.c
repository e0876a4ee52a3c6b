/* First touch: the page fault, the page found and zeroed, its entry in the page table; and every 512th a page for the table.
 * 32 MiB are used up before they are had anew, whatever the size of a batch: the pages freed last are handed out first, and
 * small batches would get pages that are still in the caches. In a virtual machine a page that the guest itself never had
 * costs the host's work besides: prepare() touches as many as run() will, and they stay held between samples, since a guest
 * may give pages back to the host that are free for 2 s (balloon's free page reporting). */
#include "../kernel.h"

#include <sys/mman.h>
#include <unistd.h>

#define SET ((size_t)32 << 20)
enum { FRESH, REUSED };

struct touch { char *map; size_t at, due; uint64_t faults; };

/* Reused: the mapping stays, its pages are given back, and with Linux 6.14 and later the emptied page tables too. */
static int renew(struct cb_ctx *ctx, struct touch *t) {
    t->at = 0;
    if (t->map && ctx->value == REUSED) return madvise(t->map, SET, MADV_DONTNEED) ? cb_fail(ctx, "madvise") : 0;
    if (t->map && munmap(t->map, SET)) return cb_fail(ctx, "munmap");
    t->map = mmap(NULL, SET, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t->map == MAP_FAILED) return t->map = NULL, cb_fail(ctx, "mmap");
    return madvise(t->map, SET, MADV_NOHUGEPAGE) && errno != EINVAL ? cb_fail(ctx, "madvise") : 0; /* EINVAL: it has none */
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    struct touch *t = ctx->state;
    t->at += cb_write_pages(t->map + t->at, ops, (size_t)sysconf(_SC_PAGESIZE));
    ctx->checksum = ctx->counter += ops;
    return 0;
}

static int prepare(struct cb_ctx *ctx) {
    struct touch *t = ctx->state = cb_arena(ctx, sizeof *t, CB_BASE);
    if (!t) return cb_fail(ctx, ctx->call);
    int rc = renew(ctx, t);
    if (!rc) rc = run(ctx, SET / (size_t)sysconf(_SC_PAGESIZE));
    ctx->checksum = ctx->counter = 0;
    return rc;
}

static int before(struct cb_ctx *ctx, uint64_t ops) {
    struct touch *t = ctx->state;
    size_t bytes = ops * (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > SET) return errno = E2BIG, cb_fail(ctx, "batch");
    int rc = t->at + bytes > SET ? renew(ctx, t) : 0;
    t->due = ops;
    t->faults = cb_faults();
    return rc;
}

static int after(struct cb_ctx *ctx) { /* fewer faults: some page was there already, or one fault brought several */
    struct touch *t = ctx->state;
    return cb_faults() - t->faults < t->due ? errno = EBADE, cb_fail(ctx, "faults") : 0;
}

static int release(struct cb_ctx *ctx) {
    struct touch *t = ctx->state;
    int rc = ctx->narenas && t->map && munmap(t->map, SET) ? cb_fail(ctx, "munmap") : 0;
    cb_arena_free(ctx);
    return rc;
}

#define MEMORY(name, what, bits) {.label = "memory=" name, .value = what, .held_bytes = SET, .flags = bits}
const struct cb_kernel cb_kernel_mem_touch = {
    .name = "mem_touch", .family = "memory", .unit = "page", .version = 1, .flags = CB_BY_PAGE, .max_ops = SET >> 12,
    .doc = "The first write to a base page of private anonymous memory: a fresh mapping's, or one's whose pages were given back.",
    .params = (const struct cb_param[]){MEMORY("fresh", FRESH, CB_SCORED), MEMORY("reused", REUSED, 0), {0}},
    .prepare = prepare, .before = before, .run = run, .after = after, .release = release,
};
