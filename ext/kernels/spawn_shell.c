/* What system(3) and agents' tools do for the shortest of commands: the host's own /bin/sh, its loader and its libc.
 * Shown, never scored: the figure is of the shell as much as of the CPU; the run file names it with its hash. */
#include "../kernel.h"

#include <sys/wait.h>
#include <unistd.h>

#define SHELL "/bin/sh"

static int prepare(struct cb_ctx *ctx) {
    if (access(SHELL, X_OK)) return cb_fail(ctx, "access");
    return 0;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    char *const argv[] = {"sh", "-c", ":", NULL}, *const envp[] = {NULL};
    for (uint64_t i = 0; i < ops; i++) {
        int status;
        pid_t child = fork();
        if (child < 0) return cb_fail(ctx, "fork");
        if (child == 0) {
            execve(SHELL, argv, envp);
            _exit(errno);
        }
        int rc = cb_reap(ctx, child, &status);
        if (rc) return rc;
        if (!WIFEXITED(status)) return errno = ECHILD, cb_fail(ctx, "sh");
        if (WEXITSTATUS(status)) return errno = WEXITSTATUS(status), cb_fail(ctx, "execve");
        ctx->counter++;
    }
    ctx->checksum = ctx->counter; /* only a shell that ran its command ends with 0 */
    return 0;
}

static int release(struct cb_ctx *ctx) {
    (void)ctx;
    return 0;
}

const struct cb_kernel cb_kernel_spawn_shell = {
    .name = "spawn_shell",
    .family = "spawn",
    .doc = "fork() from a small parent, execve() of `/bin/sh -c :` with an empty environment, waitpid().",
    .unit = "process",
    .version = 1,
    .flags = CB_BLOCKING | CB_OWN | CB_SHELL,
    .params = (const struct cb_param[]){{.label = ""}, {0}},
    .prepare = prepare,
    .run = run,
    .release = release,
};
