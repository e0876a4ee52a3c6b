/* posix_spawn() of the suite's own static program with an environment of known size, waitpid().
 * glibc's is a vfork() on a stack that it maps and unmaps, with all signals blocked, and its child may read and reset each
 * signal's handler: 2.36 does, by 122 calls of rt_sigaction, 46 of 150 us where vfork() and execve() took 75. Of another
 * libc it is other work: the run file names that of the build. execve() copies the strings. */
#include "../kernel.h"
#include "../target.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRING_BYTES 64 /* "V0000=xx..x" with its NUL */

/* The arena: the strings, then the pointers to them, the last of which is NULL. */
static int prepare(struct cb_ctx *ctx) {
    if (access(ctx->target, X_OK)) return cb_fail(ctx, "access");
    size_t n = ctx->value / STRING_BYTES;
    char *strings = cb_arena(ctx, ctx->value + (n + 1) * sizeof(char *), CB_BASE);
    if (!strings) return cb_fail(ctx, ctx->call);
    char **envp = ctx->state = strings + ctx->value;
    memset(strings, 'x', ctx->value);
    for (size_t i = 0; i < n; i++) {
        char *s = envp[i] = strings + i * STRING_BYTES;
        s[0] = 'V';
        for (size_t digit = 4, left = i; digit > 0; digit--, left /= 10) s[digit] = (char)('0' + left % 10);
        s[5] = '=';
        s[STRING_BYTES - 1] = 0;
    }
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    char *const argv[] = {(char *)ctx->target, NULL};
    for (uint64_t i = 0; i < ops; i++) {
        int status;
        pid_t child;
        errno = posix_spawn(&child, ctx->target, NULL, NULL, argv, ctx->state);
        if (errno) return cb_fail(ctx, "posix_spawn");
        int rc = cb_reap(ctx, child, &status);
        if (rc) return rc;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != TARGET_STATUS) return errno = ECHILD, cb_fail(ctx, "posix_spawn");
        ctx->counter++;
    }
    ctx->checksum = ctx->counter; /* each child told TARGET_STATUS, which nothing else does */
    return 0;
}

static int release(struct cb_ctx *ctx) {
    cb_arena_free(ctx);
    return 0;
}

#define ENV(name, bytes, bits) {.label = "env=" name, .value = bytes, .held_bytes = bytes, .flags = bits}
const struct cb_kernel cb_kernel_spawn_posix = {
    .name = "spawn_posix",
    .family = "spawn",
    .doc = "posix_spawn() of a static program by a small process, with that environment in strings of 64 bytes, and waitpid().",
    .unit = "process",
    .version = 1,
    .flags = CB_BLOCKING | CB_OWN,
    .params = (const struct cb_param[]){
        ENV("1K", 1 << 10, 0), ENV("8K", 8 << 10, CB_SCORED), ENV("64K", 64 << 10, 0), {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
