/* The memory that the block shares with its copies: what each is asked to do, and what it answers. */
#ifndef CB_BOARD_H
#define CB_BOARD_H

#include <limits.h>
#include <stdatomic.h>
#include "kernel.h"

#define CB_MAX_VARIANTS 1024
#define CB_CALL_BYTES 32

enum cb_verb { CB_HELLO = 1, CB_PREPARE, CB_SAMPLE, CB_RELEASE, CB_QUIT };

struct cb_order {
    uint32_t verb, variant; /* the variant's slot in every copy; it keeps what was prepared */
    int32_t kernel, param;  /* indexes into the registry; only CB_PREPARE reads these and the next three */
    uint64_t value;
    int32_t ncpus, cpus[CB_MAX_GROUP];
    uint64_t ops;           /* of one batch */
    uint64_t window_ns;     /* 0: exactly one batch */
};

struct cb_answer {
    int32_t rc; /* 0 or -errno */
    char call[CB_CALL_BYTES];
    uint64_t t0_ns, t1_ns; /* CLOCK_MONOTONIC_RAW, the same on all CPUs */
    uint64_t ops, elapsed_ns, hook_ns, cpu_ns, run_delay_ns, nvcsw, nivcsw, minflt, majflt;
    int32_t cpu_first, cpu_last, loose; /* loose: it may run elsewhere too */
    uint64_t checksum, counter, huge_bytes, huge_asked_bytes, thread_ops[CB_MAX_GROUP];
};

struct cb_seat { /* one copy: a process pinned to a CPU, with its touched memory */
    _Alignas(256) _Atomic uint32_t asked; /* futex; grows with each order */
    int32_t cpu;
    uint64_t touched_bytes;
    struct cb_order order;
    _Alignas(256) struct cb_answer answer;
};

struct cb_board {
    _Alignas(256) _Atomic uint32_t finished; /* futex; seats that have answered the order at hand */
    uint32_t expected;
    _Alignas(256) _Atomic uint32_t arrived;
    _Atomic uint32_t failed; /* a seat could not get ready: nobody starts */
    _Alignas(256) _Atomic uint64_t start_ns;
    uint64_t llc_bytes, seed;
    char dir[PATH_MAX], disk[PATH_MAX], target[PATH_MAX]; /* folders of copies: on tmpfs, on a disk */
    uint32_t nseats;
    struct cb_seat seats[];
};

/* measure.c */
uint64_t cb_now_ns(void);
double cb_clock_read_ns(void); /* what one reading of the clock costs */
int cb_evidence_open(void);    /* once a process; 0 or -errno */
void cb_measure(struct cb_ctx *, const struct cb_order *, struct cb_board *, struct cb_answer *);

/* scratch.c: a tmpfs that only this process and its children see; 0 or -errno */
int cb_private_tmpfs(const char *path, uint64_t bytes);

/* pool.c: the block's side */
struct cb_pool {
    struct cb_board *board;
    size_t board_bytes;
    int board_fd, group; /* the process group of all copies and of their children */
    int *pids;
    uint64_t due_ns, deadline_ns;
    int lost_seat, lost_status; /* after -ECHILD: who ended, as waitpid() told; after -ETIMEDOUT: who hangs */
    const char *program;
};
struct cb_pool *cb_pool_new(const char *program, const char *target, const char *dir, const char *disk, int nseats,
                            const int *cpus, const uint64_t *touched_bytes, uint64_t llc_bytes, uint64_t seed);
int cb_pool_fill(struct cb_pool *);                 /* starts every copy; cb_pool_wait() for them */
/* due_ns: how long the answers may take; until then nobody looks whether a copy died. */
void cb_pool_ask(struct cb_pool *, const int *seats, int n, const struct cb_order *orders, uint64_t due_ns,
                 uint64_t deadline_ns);
int cb_pool_wait(struct cb_pool *); /* 0, -EINTR (call again), -ECHILD or -ETIMEDOUT */
void cb_pool_kill(struct cb_pool *); /* every copy and what it started is gone and reaped */
void cb_pool_free(struct cb_pool *);
#endif
