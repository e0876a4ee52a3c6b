/* The static program that runs kernels, one process per copy: pinned, with known touched memory, told by the board
 * what to do. `solo` runs one kernel without a block, for sanitizers, valgrind, strace and perf. */
#include "board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct cb_ctx contexts[CB_MAX_VARIANTS];

static void tell(struct cb_answer *a, const struct cb_ctx *ctx) {
    snprintf(a->call, sizeof a->call, "%s", a->rc && ctx->call ? ctx->call : "");
    a->checksum = ctx->checksum;
    a->counter = ctx->counter;
    a->huge_bytes = ctx->huge_bytes;
    a->huge_asked_bytes = ctx->huge_asked_bytes;
    memcpy(a->thread_ops, ctx->thread_ops, sizeof a->thread_ops);
}

/* A folder of this copy alone. */
static int own_folder(const char *dir, uint32_t seat, int disk) {
    char name[32];
    snprintf(name, sizeof name, "copy-%u", seat);
    if (disk) cb_spread(AT_FDCWD, dir);
    int above = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0) return -errno;
    int fd = mkdirat(above, name, 0700) && errno != EEXIST ? -errno
             : (fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ? -errno : fd;
    if (disk) cb_spread(above, name);
    close(above);
    return fd;
}

static int prepare(struct cb_board *board, uint32_t seat, struct cb_ctx *ctx) {
    const struct cb_order *order = &board->seats[seat].order;
    const struct cb_kernel *k = cb_kernels[order->kernel];
    *ctx = (struct cb_ctx){.kernel = k, .param = &k->params[order->param], .value = order->value,
                           .llc_bytes = board->llc_bytes, .seed = board->seed, .ncpus = order->ncpus,
                           .dir_fd = -1, .target = board->target};
    memcpy(ctx->cpus, order->cpus, sizeof ctx->cpus);
    const char *above = k->flags & CB_FILES ? board->dir : k->flags & CB_STORAGE ? board->disk : NULL;
    if (above && (ctx->dir_fd = own_folder(above, seat, k->flags & CB_STORAGE)) < 0)
        return errno = -ctx->dir_fd, cb_fail(ctx, "open");
    return k->prepare(ctx);
}

static int release(struct cb_ctx *ctx) {
    if (!ctx->kernel) return 0;
    int rc = ctx->kernel->release(ctx);
    if (ctx->dir_fd >= 0) close(ctx->dir_fd);
    ctx->dir_fd = -1;
    return rc;
}

static void obey(struct cb_board *board, uint32_t seat) {
    const struct cb_order *order = &board->seats[seat].order;
    struct cb_answer *a = &board->seats[seat].answer;
    struct cb_ctx *ctx = &contexts[order->variant];
    if (order->verb == CB_PREPARE) a->rc = prepare(board, seat, ctx);
    if (order->verb == CB_SAMPLE) {
        cb_measure(ctx, order, board, a);
        a->loose = cb_pinned(board->seats[seat].cpu) == 0;
    }
    if (order->verb == CB_RELEASE) a->rc = release(ctx);
    tell(a, ctx);
}

/* Base pages, written: fork() copies one page-table entry for each. */
static int touch(uint64_t bytes) {
    if (!bytes) return 0;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return -errno;
    madvise(at, bytes, MADV_NOHUGEPAGE);
    for (uint64_t i = 0; i < bytes; i += (uint64_t)sysconf(_SC_PAGESIZE)) ((volatile char *)at)[i] = 1;
    return 0;
}

static int begin(struct cb_seat *seat, struct cb_answer *a) {
    const char *call = "sched_setaffinity";
    struct rusage used;
    int rc = cb_pin(seat->cpu);
    if (!rc && cb_pinned(seat->cpu) == 0) rc = -EXDEV;
    if (!rc && getrusage(RUSAGE_THREAD, &used)) rc = -errno, call = "getrusage"; /* without it there is no evidence */
    uint64_t start = cb_now_ns();
    if (!rc && (rc = touch(seat->touched_bytes))) call = "mmap";
    a->elapsed_ns = cb_now_ns() - start;
    snprintf(a->call, sizeof a->call, "%s", call);
    cb_evidence_open(); /* without it run_delay_ns stays 0 */
    a->cpu_first = sched_getcpu();
    return a->rc = rc;
}

static int sit(int fd, uint32_t index, pid_t block) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != block) return 1; /* it died before the line above */
    signal(SIGINT, SIG_IGN);          /* the terminal's Ctrl-C is for the command, which stops us in order */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    struct stat st;
    if (fstat(fd, &st)) return 1;
    struct cb_board *board = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED) return 1;
    close(fd);
    struct cb_seat *seat = &board->seats[index];
    for (uint32_t seen = 0;; seen++) {
        while (atomic_load(&seat->asked) == seen) syscall(SYS_futex, &seat->asked, FUTEX_WAIT, seen, NULL, NULL, 0);
        seat->answer = (struct cb_answer){0};
        uint32_t verb = seat->order.verb;
        if (verb == CB_HELLO) begin(seat, &seat->answer);
        else if (verb != CB_QUIT) obey(board, index);
        if (atomic_fetch_add(&board->finished, 1) + 1 == board->expected)
            syscall(SYS_futex, &board->finished, FUTEX_WAKE, 1, NULL, NULL, 0);
        if (verb == CB_QUIT) return 0;
    }
}

/* Prepare, one batch, release, release: the whole life of a variant, where tools can look at it. */
static int solo(int argc, char **argv) {
    static struct { struct cb_board board; struct cb_seat seat; } memory;
    struct cb_board *board = &memory.board;
    struct cb_seat *seat = &memory.seat;
    const struct cb_kernel *k = cb_find(argv[2]);
    int param = 0;
    while (k && k->params[param].label && strcmp(k->params[param].label, argv[3])) param++;
    if (!k || !k->params[param].label) return fprintf(stderr, "no such variant: %s[%s]\n", argv[2], argv[3]), 2;
    if (k->params[param].relative) return fprintf(stderr, "%s[%s]: relative to a cache: not alone\n", argv[2], argv[3]), 2;
    snprintf(board->dir, sizeof board->dir, "%s", argv[5]);
    snprintf(board->disk, sizeof board->disk, "%s", argv[5]);
    snprintf(board->target, sizeof board->target, "%s", argv[6]);
    board->expected = 1;
    for (int i = 0; i < CB_MAX_GROUP; i++) seat->order.cpus[i] = argc > 7 + i ? atoi(argv[7 + i]) : 0;
    seat->order.ncpus = argc > 7 ? argc - 7 : 1;
    for (int i = 0; k != cb_kernels[i]; i++) seat->order.kernel = i + 1;
    seat->order.param = param;
    seat->order.value = k->params[param].value;
    seat->order.ops = strtoull(argv[4], NULL, 10);
    seat->cpu = seat->order.cpus[0];
    seat->touched_bytes = k->flags & CB_PARENT ? seat->order.value : 0;
    struct cb_answer *a = &seat->answer;
    struct cb_ctx *ctx = &contexts[0];
    if (begin(seat, a) == 0) *a = (struct cb_answer){0};
    if (a->rc == 0 && (a->rc = prepare(board, 0, ctx)) == 0) cb_measure(ctx, &seat->order, board, a);
    int rc = release(ctx), again = release(ctx);
    a->rc = a->rc ? a->rc : rc ? rc : again;
    if (k->flags & (CB_FILES | CB_STORAGE) && chdir(argv[5]) == 0) rmdir("copy-0");
    tell(a, ctx);
    printf("ops %llu elapsed_ns %llu checksum %llx counter %llu\n", (unsigned long long)a->ops,
           (unsigned long long)a->elapsed_ns, (unsigned long long)a->checksum, (unsigned long long)a->counter);
    if (a->rc) fprintf(stderr, "%s: %s: %s\n", k->name, a->call, strerror(-a->rc));
    return a->rc != 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "seat") == 0) return sit(atoi(argv[2]), (uint32_t)atoi(argv[3]), atoi(argv[4]));
    if (argc >= 7 && argc <= 7 + CB_MAX_GROUP && strcmp(argv[1], "solo") == 0) return solo(argc, argv);
    fprintf(stderr, "usage: %s solo KERNEL PARAMETER OPS FOLDER TARGET [CPU..]\n", argv[0]);
    return 2;
}
