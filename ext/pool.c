/* The block's side of the pool: start the copies, ask them, notice who is lost, and leave nothing behind. */
#include "board.h"

#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* After the answer was due, how often somebody looks whether a copy died. Before, nobody does: waking every 10 ms, on a
 * CPU that is measured, cost a switch between cores 5 to 10 %. */
#define SLICE_NS 10000000

extern char **environ;

struct cb_pool *cb_pool_new(const char *program, const char *target, const char *dir, const char *disk, int nseats,
                            const int *cpus, const uint64_t *touched_bytes, uint64_t llc_bytes, uint64_t seed) {
    struct cb_pool *p = calloc(1, sizeof *p);
    int *pids = calloc((size_t)nseats, sizeof *pids);
    if (!p || !pids) return free(p), free(pids), NULL;
    *p = (struct cb_pool){.program = program, .pids = pids, .lost_seat = -1, .board = MAP_FAILED,
                          .board_bytes = sizeof *p->board + (size_t)nseats * sizeof *p->board->seats};
    p->board_fd = memfd_create("cpubench-board", MFD_CLOEXEC);
    if (p->board_fd >= 0 && ftruncate(p->board_fd, (off_t)p->board_bytes) == 0)
        p->board = mmap(NULL, p->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->board_fd, 0);
    if (p->board == MAP_FAILED) {
        int saved = errno;
        if (p->board_fd >= 0) close(p->board_fd);
        free(pids), free(p);
        return errno = saved, NULL;
    }
    struct cb_board *b = p->board;
    b->nseats = (uint32_t)nseats;
    b->llc_bytes = llc_bytes;
    b->seed = seed;
    snprintf(b->dir, sizeof b->dir, "%s", dir);
    snprintf(b->disk, sizeof b->disk, "%s", disk);
    snprintf(b->target, sizeof b->target, "%s", target);
    for (int i = 0; i < nseats; i++) {
        b->seats[i].cpu = cpus[i];
        b->seats[i].touched_bytes = touched_bytes[i];
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a killed copy had started comes to us, to be reaped */
    return p;
}

/* All copies are one process group, so that one kill reaches them and their children. */
static int start(struct cb_pool *p, int seat) {
    char fd[16], index[16], block[16];
    int given = p->board_fd == 3 ? 4 : 3; /* dup2 to itself keeps close-on-exec before glibc 2.29 */
    snprintf(fd, sizeof fd, "%d", given);
    snprintf(index, sizeof index, "%d", seat);
    snprintf(block, sizeof block, "%d", getpid());
    char *argv[] = {"cpubench-copy", "seat", fd, index, block, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, p->board_fd, given);
    posix_spawnattr_setpgroup(&how, p->group);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all); /* faulthandler of a host Python must not print for us */
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn(&p->pids[seat], p->program, &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    if (rc) return p->pids[seat] = 0, -rc;
    if (!p->group) p->group = p->pids[seat];
    return 0;
}

int cb_pool_fill(struct cb_pool *p) {
    struct cb_order hello = {.verb = CB_HELLO};
    uint32_t n = p->board->nseats;
    int rc = 0;
    for (uint32_t i = 0; i < n; i++) atomic_store(&p->board->seats[i].asked, 0);
    for (uint32_t i = 0; i < n && !rc; i++) rc = start(p, (int)i);
    if (rc) return cb_pool_kill(p), rc;
    struct cb_order *orders = calloc(n, sizeof *orders);
    int *seats = calloc(n, sizeof *seats);
    for (uint32_t i = 0; orders && seats && i < n; i++) orders[i] = hello, seats[i] = (int)i;
    if (orders && seats) cb_pool_ask(p, seats, (int)n, orders, 0, 60000000000u); /* touching 1 GiB may take seconds */
    else rc = -ENOMEM;
    free(orders), free(seats);
    return rc;
}

void cb_pool_ask(struct cb_pool *p, const int *seats, int n, const struct cb_order *orders, uint64_t due_ns,
                 uint64_t deadline_ns) {
    struct cb_board *b = p->board;
    b->expected = (uint32_t)n;
    atomic_store(&b->arrived, 0);
    atomic_store(&b->failed, 0);
    atomic_store(&b->start_ns, 0);
    atomic_store(&b->finished, 0);
    uint64_t now_ns = cb_now_ns();
    p->due_ns = now_ns + due_ns;
    p->deadline_ns = now_ns + deadline_ns;
    p->lost_seat = -1;
    for (int i = 0; i < n; i++) b->seats[seats[i]].order = orders[i];
    for (int i = 0; i < n; i++) {
        struct cb_seat *seat = &b->seats[seats[i]];
        atomic_fetch_add(&seat->asked, 1);
        syscall(SYS_futex, &seat->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static int seat_of(const struct cb_pool *p, int pid) {
    for (uint32_t i = 0; i < p->board->nseats; i++)
        if (p->pids[i] == pid) return (int)i;
    return -1;
}

int cb_pool_wait(struct cb_pool *p) {
    struct cb_board *b = p->board;
    for (;;) {
        uint32_t finished = atomic_load(&b->finished);
        if (finished == b->expected) return 0;
        int status, pid = waitpid(-p->group, &status, WNOHANG);
        int seat = pid > 0 ? seat_of(p, pid) : -1;
        if (seat >= 0) {
            p->pids[seat] = 0;
            p->lost_seat = seat;
            p->lost_status = status;
            return -ECHILD;
        }
        uint64_t now_ns = cb_now_ns(), end_ns = now_ns < p->due_ns ? p->due_ns : now_ns + SLICE_NS;
        if (now_ns > p->deadline_ns) return -ETIMEDOUT;
        if (end_ns > p->deadline_ns) end_ns = p->deadline_ns + 1;
        struct timespec slice = {(time_t)((end_ns - now_ns) / 1000000000u), (long)((end_ns - now_ns) % 1000000000u)};
        long woken = syscall(SYS_futex, &b->finished, FUTEX_WAIT, finished, &slice, NULL, 0);
        /* A signal may also have come just before the wait: the caller looks for it after every slice. */
        if (woken && (errno == EINTR || errno == ETIMEDOUT)) return -EINTR;
    }
}

void cb_pool_kill(struct cb_pool *p) {
    int status;
    if (!p->group) return;
    kill(-p->group, SIGKILL);
    while (waitpid(-p->group, &status, 0) > 0 || errno == EINTR) {}
    memset(p->pids, 0, p->board->nseats * sizeof *p->pids);
    p->group = 0;
}

void cb_pool_free(struct cb_pool *p) {
    cb_pool_kill(p);
    munmap(p->board, p->board_bytes);
    close(p->board_fd);
    free(p->pids);
    free(p);
}
