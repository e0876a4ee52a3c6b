/* fork() alone, as servers and test runners use it that execute nothing: the price of the parent's page tables.
 * They are copied by fork() and torn down by the child's end, so both grow with what the parent has touched. */
#include "../kernel.h"
#include "../target.h"

#include <sys/wait.h>
#include <unistd.h>

static int prepare(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++) {
        int status;
        pid_t child = fork();
        if (child < 0) return cb_fail(ctx, "fork");
        if (child == 0) _exit(TARGET_STATUS);
        int rc = cb_reap(ctx, child, &status);
        if (rc) return rc;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != TARGET_STATUS) return errno = ECHILD, cb_fail(ctx, "_exit");
        ctx->counter++;
    }
    ctx->checksum = ctx->counter; /* each child told TARGET_STATUS */
    return 0;
}

static int release(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

#define RSS(name, bytes, bits) {.label = "rss=" name, .value = bytes, .held_bytes = bytes, .flags = bits}
const struct cb_kernel cb_kernel_spawn_fork_exit = {
    .name = "spawn_fork_exit",
    .family = "spawn",
    .doc = "fork() from a parent with that much touched memory on base pages, whose child does _exit() at once, and waitpid().",
    .unit = "process",
    .version = 1,
    .flags = CB_BLOCKING | CB_PARENT,
    .params = (const struct cb_param[]){
        RSS("8M", 8 << 20, 0), RSS("64M", 64 << 20, 0), RSS("384M", 384 << 20, CB_SCORED),
        RSS("1G", 1 << 30, CB_STRICT), {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
