/* A large block as malloc() has it and gives it back: 128 KiB are the size from which glibc asks the kernel (malloc(3)).
 * Nothing is touched: what the pages cost is mem_touch. */
#include "../kernel.h"

#include <sys/mman.h>

#define BYTES ((size_t)128 << 10)

static int prepare(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++) {
        void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return cb_fail(ctx, "mmap");
        if (munmap(at, BYTES)) return cb_fail(ctx, "munmap");
    }
    ctx->checksum = ctx->counter += ops;
    return 0;
}

static int release(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

const struct cb_kernel cb_kernel_mem_map = {
    .name = "mem_map",
    .family = "memory",
    .doc = "mmap() of 128 KiB of private anonymous memory and munmap() of it, with no page touched.",
    .unit = "mapping",
    .version = 1,
    .params = (const struct cb_param[]){{.label = "", .held_bytes = BYTES, .flags = CB_SCORED}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
