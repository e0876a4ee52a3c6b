/* Control kernels: known work, the same under another label (A/A), twins that do 2, 5 and 10 % more of it, and none at
 * all (the floor). Not listed. */
#include "../kernel.h"

#define SEED 1

static int prepare(struct cb_ctx *ctx) {
    ctx->checksum = SEED;
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    uint64_t x = ctx->checksum, steps = ctx->value;
    for (uint64_t i = 0; i < ops; i++) {
        x = cb_work(x, steps);
        __asm__ volatile("" : "+r"(x));
    }
    ctx->checksum = x;
    ctx->counter += ops;
    return 0;
}

static int release(struct cb_ctx *ctx) {
    if (ctx->checksum == cb_work_result(SEED, ctx->counter * ctx->value)) return 0;
    return errno = EBADE, cb_fail(ctx, "checksum");
}

#define STEPS(name, n) {.label = "steps=" name, .value = n}
const struct cb_kernel cb_kernel_test_work = {
    .name = "test_work",
    .family = "control",
    .doc = "That many dependent steps of multiply and add.",
    .unit = "call",
    .version = 3,
    .flags = CB_HIDDEN,
    .params = (const struct cb_param[]){
        STEPS("0", 0), STEPS("1000", 1000), STEPS("1000,again", 1000), STEPS("1020", 1020), STEPS("1050", 1050),
        STEPS("1100", 1100), {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
