/* OPERATIONS CPU: two processes on one CPU yield it to each other; a round trip is two yields. Nothing is handed over:
 * the kernel's count of involuntary switches tells whether each yield was one. */
#include "peer.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 200;
    int gate[2];
    if (pipe(gate)) die("pipe");
    pin(argv[2], 0);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (!child) {
        char byte;
        if (read(gate[0], &byte, 1) != 1) die("gate");
        for (uint64_t i = 0; i < warm + ops + warm; i++) /* longer than the parent, which is never alone */
            if (sched_yield()) die("sched_yield");
        _exit(0);
    }
    if (write(gate[1], "g", 1) != 1) die("gate");
    struct rusage before, after;
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) {
            getrusage(RUSAGE_SELF, &before);
            began = now_ns();
        }
        if (sched_yield()) die("sched_yield");
    }
    double took = now_ns() - began;
    getrusage(RUSAGE_SELF, &after);
    int status;
    if (waitpid(child, &status, 0) != child || status) die("the other process");
    if ((uint64_t)(after.ru_nivcsw - before.ru_nivcsw) < ops) {
        fprintf(stderr, "%ld switches for %lu yields\n", after.ru_nivcsw - before.ru_nivcsw, (unsigned long)ops);
        return 1;
    }
    printf("%.4f\n", took / (double)ops);
    return 0;
}
