/* OPERATIONS CPU,CPU: how long a process on the last CPU, which has slept there for 1 ms, takes to run once it is woken.
 * Every wake-up has a place of its own where the sleeper notes the time; the means are worked out when all are done.
 * A rest as in switch_pipe.c comes first; then some are not counted: the first after a longer rest takes 90 us. */
#include "peer.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM 16

static struct post { _Atomic int rung, noted; double woken, ran; } *posts;

static void wait_at(_Atomic int *bell) {
    while (!*bell)
        if (syscall(SYS_futex, bell, FUTEX_WAIT, 0, NULL, NULL, 0) && errno != EAGAIN) die("FUTEX_WAIT");
}

static void ring(_Atomic int *bell) {
    *bell = 1;
    if (syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0) < 0) die("FUTEX_WAKE");
}

int main(int argc, char **argv) {
    uint64_t all = WARM + number(argc, argv, 1);
    posts = mmap(NULL, all * sizeof *posts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (posts == MAP_FAILED) die("mmap");
    pid_t child = fork();
    if (child < 0) die("fork");
    pin(argv[2], child ? 0 : 1);
    if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (struct post *p = posts; p < posts + all; p++) {
        if (child) {
            usleep(p == posts ? 200000 : 1000);
            p->woken = now_ns();
            ring(&p->rung);
            wait_at(&p->noted);
        } else {
            wait_at(&p->rung);
            p->ran = now_ns();
            ring(&p->noted);
        }
    }
    if (!child) _exit(0);
    int status;
    if (waitpid(child, &status, 0) != child || status) die("the other process");
    double sum = 0;
    for (struct post *p = posts + WARM; p < posts + all; p++) sum += p->ran - p->woken;
    printf("%.4f\n", sum / (double)(all - WARM));
    return 0;
}
