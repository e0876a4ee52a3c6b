/* What the peers share: a pin that is read back, the clock, an end with a reason. Nothing of ext/ is used, on purpose.
 * A peer is called with OPERATIONS CPU[,CPU] and its own values; it prints nanoseconds per operation.
 * The build defines _GNU_SOURCE. */
#ifndef PEER_H
#define PEER_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

static inline double now_ns(void) {
    struct timespec at;
    if (clock_gettime(CLOCK_MONOTONIC, &at)) die("clock_gettime");
    return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

/* Pins the calling thread to the which-th CPU of a comma-separated list; to the last where it has fewer. */
static inline void pin(const char *list, int which) {
    if (!list) die("no CPUs");
    for (const char *next; which-- > 0 && (next = strchr(list, ','));) list = next + 1;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(list), &set);
    if (sched_setaffinity(0, sizeof set, &set) || sched_getcpu() != atoi(list)) die("pin");
}

/* A multiply and an add that wait for the ones before: 4 cycles. The empty assembly keeps each step a step. */
static inline uint64_t step(uint64_t x) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* The number at argv[i]. */
static inline uint64_t number(int argc, char **argv, int i) {
    if (i >= argc) {
        fprintf(stderr, "%s: argument %d is missing\n", argv[0], i);
        exit(2);
    }
    return strtoull(argv[i], NULL, 10);
}
#endif
