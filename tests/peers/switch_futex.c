/* OPERATIONS CPU[,CPU]: a word shared with a process on the last CPU, which each sets in turn, wakes the other and waits.
 * The word says whose turn it is, by name and not by number. Rest as in switch_pipe.c, which says why. */
#include "peer.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int *whose; /* 'p' or 'c': parent, child */

static void wait_for(int turn) {
    int other = turn == 'p' ? 'c' : 'p';
    for (;;) {
        if (syscall(SYS_futex, whose, FUTEX_WAIT, other, NULL, NULL, 0) && errno != EAGAIN) die("FUTEX_WAIT");
        if (atomic_load(whose) == turn) return;
    }
}

static void give(int turn) {
    atomic_store(whose, turn);
    if (syscall(SYS_futex, whose, FUTEX_WAKE, 1, NULL, NULL, 0) < 0) die("FUTEX_WAKE");
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 200;
    whose = mmap(NULL, sizeof *whose, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (whose == MAP_FAILED) die("mmap");
    *whose = 'p';
    pid_t child = fork();
    if (child < 0) die("fork");
    pin(argv[2], child ? 0 : 1);
    if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!child) wait_for('c'), give('p');
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) {
            usleep(200000);
            began = now_ns();
        }
        give('c');
        wait_for('p');
    }
    double took = now_ns() - began;
    kill(child, SIGKILL);
    if (waitpid(child, NULL, 0) != child) die("the other process");
    printf("%.4f\n", took / (double)ops);
    return 0;
}
