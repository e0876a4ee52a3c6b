/* vfork(), execve() of the suite's own static program, waitpid(): no page table is copied, whatever the parent's size,
 * and the parent sleeps until the child has executed. So do Go and the subprocess module of CPython since 3.10. */
#include "../kernel.h"
#include "../target.h"

#include <sys/wait.h>
#include <unistd.h>

static int prepare(struct cb_ctx *ctx) {
    if (access(ctx->target, X_OK)) return cb_fail(ctx, "access");
    return 0;
}

/* The child shares the parent's memory and this very frame, and may only execute or end (vfork(2)): nothing is written
 * between, and a frame that is left at once has nothing that a compiler could keep in a clobbered register. */
__attribute__((noinline)) static pid_t start(const char *program, char *const argv[], char *const envp[]) {
    pid_t child = vfork();
    if (child == 0) {
        execve(program, argv, envp);
        _exit(errno); /* below TARGET_STATUS */
    }
    return child;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    char *const argv[] = {(char *)ctx->target, NULL}, *const envp[] = {NULL};
    for (uint64_t i = 0; i < ops; i++) {
        int status;
        pid_t child = start(ctx->target, argv, envp);
        if (child < 0) return cb_fail(ctx, "vfork");
        int rc = cb_reap(ctx, child, &status);
        if (rc) return rc;
        if (!WIFEXITED(status)) return errno = ECHILD, cb_fail(ctx, "execve");
        if (WEXITSTATUS(status) != TARGET_STATUS) return errno = WEXITSTATUS(status), cb_fail(ctx, "execve");
        ctx->counter++;
    }
    ctx->checksum = ctx->counter; /* each child told TARGET_STATUS, which nothing else does */
    return 0;
}

static int release(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

#define RSS(name, bytes, bits) {.label = "rss=" name, .value = bytes, .held_bytes = bytes, .flags = bits}
const struct cb_kernel cb_kernel_spawn_vfork_exec = {
    .name = "spawn_vfork_exec",
    .family = "spawn",
    .doc = "vfork() from a parent with that much touched memory on base pages, execve() of a static program, waitpid().",
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
