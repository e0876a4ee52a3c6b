/* The end of a process that has used memory: its pages are freed before its parent can reap it.
 * The children are made before the clock starts: each touches its memory and stops itself. Their parent must be small,
 * for what they inherit is torn down with the rest. */
#include "../kernel.h"
#include "../target.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 2
#define BYTES ((uint64_t)64 << 20)

static int prepare(struct cb_ctx *ctx) {
    ctx->state = cb_arena(ctx, CHILDREN * sizeof(pid_t), CB_BASE);
    return ctx->state ? 0 : cb_fail(ctx, ctx->call);
}

/* The kernel counts its page faults: fewer would mean pages that are not there to be freed. */
static void touch_and_stop(struct cb_ctx *ctx) {
    struct rusage used;
    if (!cb_arena(ctx, BYTES, CB_BASE) || getrusage(RUSAGE_SELF, &used)) _exit(errno);
    if ((uint64_t)used.ru_minflt < BYTES / (uint64_t)sysconf(_SC_PAGESIZE)) _exit(EBADE);
    raise(SIGSTOP);
    _exit(TARGET_STATUS);
}

static int none_left(struct cb_ctx *ctx) { /* of a batch that failed, some children are alive */
    int rc = cb_peer_stop(ctx);
    for (int i = 0; rc == 0 && ctx->narenas && i < CHILDREN; i++) {
        ctx->peer = ((pid_t *)ctx->state)[i];
        ((pid_t *)ctx->state)[i] = 0;
        rc = cb_peer_stop(ctx);
    }
    return rc;
}

static int before(struct cb_ctx *ctx, uint64_t ops) {
    int status, rc = none_left(ctx);
    if (ops > CHILDREN) return errno = E2BIG, cb_fail(ctx, "before");
    for (uint64_t i = 0; i < ops && rc == 0; i++) {
        if ((rc = cb_peer_start(ctx, touch_and_stop))) return rc;
        while ((rc = waitpid(ctx->peer, &status, WUNTRACED)) < 0 && errno == EINTR) {}
        if (rc < 0) return cb_fail(ctx, "waitpid");
        ((pid_t *)ctx->state)[i] = WIFSTOPPED(status) ? ctx->peer : 0;
        ctx->peer = 0;
        rc = WIFSTOPPED(status) ? 0 : (errno = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD, cb_fail(ctx, "child"));
    }
    return rc;
}

static int run(struct cb_ctx *ctx, uint64_t ops) {
    for (uint64_t i = 0; i < ops; i++) {
        pid_t *child = (pid_t *)ctx->state + i;
        int status, rc = kill(*child, SIGCONT) ? cb_fail(ctx, "kill") : cb_reap(ctx, *child, &status);
        if (rc) return rc;
        *child = 0;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != TARGET_STATUS) return errno = ECHILD, cb_fail(ctx, "child");
        ctx->counter++;
    }
    ctx->checksum = ctx->counter; /* each child told TARGET_STATUS, after it had touched its pages */
    return 0;
}

static int release(struct cb_ctx *ctx) {
    int rc = none_left(ctx);
    cb_arena_free(ctx);
    return rc;
}

const struct cb_kernel cb_kernel_spawn_reap = {
    .name = "spawn_reap", .family = "spawn", .unit = "process", .version = 1, .flags = CB_BLOCKING | CB_OWN,
    .doc = "The _exit() of a stopped child, by SIGCONT, that has privately touched 64 MiB of base pages, and waitpid().",
    .params = (const struct cb_param[]){
        {.label = "child=64M", .value = BYTES, .held_bytes = CHILDREN * BYTES, .flags = CB_SCORED}, {0}},
    .max_ops = CHILDREN,
    .prepare = prepare, .before = before, .run = run, .after = none_left, .release = release,
};
