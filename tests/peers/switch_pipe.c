/* OPERATIONS CPU[,CPU]: one byte to a process on the last CPU and one back, through two pipes.
 * Some are not timed, and 200 ms of rest follow: for 50 ms after any process began or ended, waking another core was faster
 * (41 us a round trip, then 60, on a virtual machine), it seems while the kernel frees what is left of it. */
#include "peer.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 200;
    int there[2], back[2];
    char byte = 'p';
    if (pipe(there) || pipe(back)) die("pipe");
    pid_t child = fork();
    if (child < 0) die("fork");
    pin(argv[2], child ? 0 : 1);
    close(there[child ? 0 : 1]);
    close(back[child ? 1 : 0]);
    if (!child) {
        while (read(there[0], &byte, 1) == 1)
            if (write(back[1], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) {
            usleep(200000);
            began = now_ns();
        }
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) die("round trip");
    }
    double took = now_ns() - began;
    close(there[1]);
    int status;
    if (waitpid(child, &status, 0) != child || status) die("the other process");
    printf("%.4f\n", took / (double)ops);
    return 0;
}
