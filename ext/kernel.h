/* What a kernel is, and what it may use. A kernel reads no clock, allocates nothing of its own, prints nothing.
 * The build defines _GNU_SOURCE. */
#ifndef CB_KERNEL_H
#define CB_KERNEL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CB_LINE 64       /* bytes between two elements that must not share a cache line */
#define CB_MAX_GROUP 512 /* threads of a group, processes of a pair */
#define CB_MAX_ARENAS 4  /* buffers of one prepared variant */

enum cb_flag {                /* of a kernel */
    CB_BLOCKING = 1 << 0,     /* sleeps by design: an involuntary switch is no sign of noise */
    CB_ISOLATE = 1 << 1,      /* leaves state behind: measured at the end of each round, after all others */
    CB_GROUP = 1 << 2,        /* its copies are groups of threads, each thread on a core of its own */
    CB_PAIR = 1 << 3,         /* its copies are pairs of processes */
    CB_PARENT = 1 << 4,       /* runs in a process that has touched `value` bytes of base pages */
    CB_FILES = 1 << 5,        /* works below ctx->dir_fd */
    CB_HIDDEN = 1 << 6,       /* for tests and self-tests: not listed, never planned */
    CB_STORAGE = 1 << 7,      /* works below ctx->dir_fd too, but on the disk of --workdir; shown, never scored */
    CB_LATENCY = 1 << 8,      /* stamps its operations itself: its time is ctx->stamped_ns; shown, never scored */
    CB_OWN = 1 << 9,          /* runs in a process of its own, which no other kernel has made larger, or threaded */
    CB_SHELL = 1 << 10,       /* executes /bin/sh, which the run file names with its hash */
    CB_BY_PAGE = 1 << 11,     /* an operation is a base page: max_ops counts pages of 4 KiB, or as many bytes of larger ones */
};
enum cb_param_flag {
    CB_SCORED = 1 << 0,
    CB_STRICT = 1 << 1, /* measured in `strict` only */
    CB_PAGES = 1 << 2,  /* held_bytes are those of 4 KiB pages, and as many more where base pages are larger */
};
enum cb_pages { CB_BASE, CB_HUGE, CB_SHARED }; /* shared: base pages that processes forked later write to as well */
enum cb_place { CB_ANY, CB_SAME, CB_OTHER, CB_SIBLING }; /* of the second process of a pair */
enum cb_each { CB_ONE, CB_EACH_COUNT, CB_EACH_PAIR }; /* measured for many numbers of threads, or pairs of CPUs */
enum cb_relative { CB_ABSOLUTE, CB_OF_L1, CB_OF_L2, CB_OF_L3 };

/* One value of a kernel's parameter; a list ends with .label = NULL. A kernel without parameters has one, "". */
struct cb_param {
    const char *label;    /* "rss=384M" */
    uint64_t value;       /* bytes, ns or a count, as the kernel says; relative ones: the divisor of the cache */
    uint64_t held_bytes;  /* memory that a copy holds while prepared; relative ones: 0, the plan works it out */
    uint32_t files;       /* of a tmpfs, with content: in held_bytes on 4 KiB pages, on larger base pages they hold more */
    uint8_t flags, pages, place, relative, threads, each;
};

struct cb_ctx {
    const struct cb_kernel *kernel;
    const struct cb_param *param;
    uint64_t value;     /* the parameter, resolved on this host */
    uint64_t llc_bytes; /* last-level cache of this CPU; 0 where it is not known */
    uint64_t seed;
    int cpus[CB_MAX_GROUP]; /* this copy's CPUs; it is pinned to the first */
    int ncpus;
    int dir_fd;          /* a folder of this copy alone */
    uint64_t stamped_ns; /* of a latency kernel: the sum of its differences of cb_stamp() */
    const char *target;  /* the program that spawn kernels execute */
    void *state;         /* the kernel's own, from cb_arena() */
    int fds[4];          /* the kernel's own descriptors */
    pid_t peer;          /* of cb_peer_start() */

    /* told back */
    const char *call;    /* the call that failed */
    uint64_t checksum;   /* proof that the work was done: equal for equal seeds and operation counts */
    uint64_t counter;    /* operations that the kernel itself counted, where its work has a natural counter */
    uint64_t huge_bytes, huge_asked_bytes; /* of the buffers for which huge pages were asked */
    uint64_t thread_ops[CB_MAX_GROUP];     /* fairness: operations of each thread of a group */
    struct { void *at, *map; size_t bytes, mapped; } arenas[CB_MAX_ARENAS];
    int narenas;
};

struct cb_kernel {
    const char *name, *family;
    const char *doc;   /* one sentence: what one operation is */
    const char *unit;  /* its noun: "round trip" */
    const char *instructions; /* with which it moves data, where that could differ between builds; else NULL */
    uint32_t version;  /* raised with every change of the work: different versions are never compared */
    uint32_t flags;
    const struct cb_param *params;
    uint64_t max_ops;  /* of one batch; 0: no limit */
    int (*prepare)(struct cb_ctx *);               /* all return 0 or -errno, and name the call by cb_fail() */
    int (*warm)(struct cb_ctx *);                  /* untimed: bring back what other kernels evicted */
    int (*before)(struct cb_ctx *, uint64_t ops);  /* untimed work for the next batch */
    int (*run)(struct cb_ctx *, uint64_t ops);     /* the only one that is timed */
    int (*after)(struct cb_ctx *);
    int (*release)(struct cb_ctx *);               /* also after a failed prepare; twice is harmless */
};

/* registry.c */
extern const struct cb_kernel *const cb_kernels[];
extern const int cb_kernel_count;
const struct cb_kernel *cb_find(const char *name);

/* arena.c */
void *cb_arena(struct cb_ctx *, size_t bytes, enum cb_pages); /* zeroed, touched; NULL: errno is set, ctx->call too */
void cb_arena_free(struct cb_ctx *);
/* Cycles through n lines, a power of two, one in each stride of `stride` bytes: the i-th of n lies i/n of the way into its
 * stride, so that lines of pages spread over all cache sets, on contiguous memory evenly. */
void cb_cycle_of(void *base, uint64_t n, size_t stride, uint64_t seed); /* each points to the next */
void cb_cycle_lap_of(const void *base, uint64_t n, size_t stride, uint64_t seed, uint64_t from); /* from the from-th on */
uint64_t cb_cycle_at(uint64_t n, uint64_t seed, uint64_t i); /* the one that is visited i-th */

static inline size_t cb_cycle_offset(uint64_t n, size_t stride, uint64_t i) {
    return i * stride + (i * (stride / CB_LINE) >> __builtin_ctzll(n)) * CB_LINE;
}
static inline void cb_cycle(void *base, uint64_t lines, uint64_t seed) { cb_cycle_of(base, lines, CB_LINE, seed); }
static inline void cb_cycle_lap(const void *base, uint64_t lines, uint64_t seed, uint64_t from) {
    cb_cycle_lap_of(base, lines, CB_LINE, seed, from);
}

/* process.c */
int cb_fail(struct cb_ctx *, const char *call);      /* -errno (never 0), with the call's name kept */
int cb_pin(int cpu);                                 /* pins this thread and reads it back; 0 or -errno */
int cb_pinned(int cpu);                              /* 1 if it may run there alone, 0 if not, -1 if that is not told */
int cb_reap(struct cb_ctx *, pid_t, int *status);    /* waitpid through EINTR; 0 or -errno */
int cb_peer_start(struct cb_ctx *, void (*body)(struct cb_ctx *)); /* a process on the last of ctx->cpus, pinned */
int cb_peer_stop(struct cb_ctx *);                   /* killed and reaped; also where none was started */
uint64_t cb_faults(void);                            /* page faults of this thread so far that needed no disk */
void cb_settle(void);                                /* for `warm`: until what other kernels freed is really freed */

/* group.c: threads 1.. of a group wait at a gate on cores of their own; thread 0 is the copy itself */
typedef void cb_body(struct cb_ctx *, int thread);
struct cb_group;
size_t cb_group_bytes(void);
int cb_group_start(struct cb_ctx *, struct cb_group *, cb_body *); /* pins each thread to its CPU and reads it back; beside
 * one alone another sleeps, so that its process is never without threads */
void cb_group_open(struct cb_group *); /* the other threads run the body; a thread may still be in it from before */
void cb_group_run(struct cb_group *, uint64_t ops); /* all threads begin the body together, and have left it on return */
uint64_t cb_group_take(struct cb_group *); /* how many of these ops this thread does next; 0: none is left */
void cb_group_stop(struct cb_group *); /* and all are joined */

/* files.c: small files, the same on every host */
#define CB_SIZES 64
#define CB_PIECE 2048 /* bytes of a write: what agents' tools were seen to use */
#define CB_PATH 60
#define CB_NEW_FILE (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
extern const uint32_t cb_sizes[CB_SIZES];
int cb_write(struct cb_ctx *, int fd, const void *piece, size_t bytes); /* CB_PIECE bytes at a time, over and over */
/* On ext4 each folder that is made in this one gets a group of inodes of its own (FS_TOPDIR_FL, ioctl_iflags(2)). In one of
 * which many were freed ext4 without a journal searches long for a free inode, for minutes: a tree of 3,000 files was made
 * in 1,000 ms in place of 44, and copies of 400 that took each other's place took 12, 55 and 95 ms. Others refuse it. */
void cb_spread(int above, const char *name);
int cb_close(struct cb_ctx *, int fd, int rc);                          /* rc, or -errno where only closing failed */

/* files.c: trees of them. Folder i lies in folder (i - 1) / 3, file i in folder i / 10: 400 files lie in 40 folders on 4
 * levels, 3,000 in 300 on 6, the first of which is the tree's root. */
#define CB_TREE_FILES 10 /* in a folder */
uint32_t cb_tree_size(uint64_t file);
void cb_tree_path(char out[CB_PATH], const char *root, uint64_t file, const char *kind);
int cb_tree_make(struct cb_ctx *, const char *root, uint64_t files, int filled); /* or holes of the same sizes */
uint64_t cb_tree_bytes(uint64_t files);
uint64_t cb_tree_held(uint64_t files, uint64_t page); /* bytes of memory on a tmpfs: each file in whole pages */
struct cb_name { char path[CB_PATH]; uint32_t file; }; /* one cache line */
void cb_tree_names(struct cb_name *out, const char *root, uint64_t files); /* in a random order that is always the same */
static inline uint64_t cb_tree_word(uint64_t file, uint64_t word) { /* the content, as 64-bit words */
    return (file << 32) + word % (CB_PIECE / sizeof(uint64_t));
}

/* tree.c: a variant's own folder, and what is done to the trees in it */
#define CB_TREE_DEPTH 9 /* folders inside each other */
enum cb_tree_job { CB_WALK, CB_COPY, CB_DELETE };
struct cb_tree {
    char root[28];                  /* the variant's folder, below dir_fd */
    uint64_t files, folders, bytes; /* that the last job met */
    _Alignas(CB_LINE) char data[64 << 10], entries[CB_TREE_DEPTH][32 << 10]; /* 32 KiB: as readdir() of glibc has */
};
static inline struct cb_tree *cb_tree(struct cb_ctx *ctx) { return ctx->arenas[0].at; }
int cb_tree_start(struct cb_ctx *); /* the first arena, and an empty folder */
int cb_tree_job(struct cb_ctx *, enum cb_tree_job, const char *from, const char *to, uint64_t files); /* a whole tree */
int cb_tree_end(struct cb_ctx *);   /* the folder and all that is in it are gone; the arenas too */

/* measure.c: nanoseconds, for latency kernels alone */
uint64_t cb_stamp(void);

/* A kernel of small files twice: on tmpfs, and as storage_NAME on the disk. The rest of the record follows. */
#define CB_FILE_KERNEL(NAME, ...) \
    const struct cb_kernel cb_kernel_file_##NAME = { \
        .name = "file_" #NAME, .family = "file", .flags = CB_BLOCKING | CB_FILES, __VA_ARGS__}; \
    const struct cb_kernel cb_kernel_storage_##NAME = { \
        .name = "storage_" #NAME, .family = "storage", .flags = CB_BLOCKING | CB_STORAGE | CB_ISOLATE, __VA_ARGS__}

/* work.c: dependent multiply and add, 4 cycles a step on current cores, which no compiler shortens */
static inline uint64_t cb_work(uint64_t x, uint64_t steps) {
    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}
uint64_t cb_work_result(uint64_t x, uint64_t steps); /* what cb_work() must return, in log(steps) time */

/* 16 bytes, the widest that every x86-64 and every arm64 has: the same instructions on all hosts of an architecture,
 * whatever the compiler would choose. */
typedef uint64_t cb_vector __attribute__((vector_size(16), may_alias));
#if defined(__x86_64__)
#define CB_VECTOR "16-byte vectors (SSE2)"
#elif defined(__aarch64__)
#define CB_VECTOR "16-byte vectors (NEON)"
#else
#define CB_VECTOR "16-byte vectors, as the compiler makes them"
#endif

/* A byte of each of n pages is written; returns their bytes. */
static inline size_t cb_write_pages(char *at, uint64_t n, size_t page) {
    for (volatile char *to = at, *end = at + n * page; to < end; to += page) *to = 1;
    return n * page;
}

/* For `warm` of a set that is used in address order and fits the last-level cache. */
static inline void cb_sweep(const void *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CB_LINE) __builtin_prefetch((const char *)at + i);
}

static inline void cb_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}
#endif
