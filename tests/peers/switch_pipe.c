/* OPERATIONS CPU[,CPU]: one byte to a process on the last CPU and one back, through two pipes.
 * 2000 round trips are not timed: in the first 100 ms of a process, wakes of another core were faster (37 us, then 47 to
 * 51, on a virtual machine; a part of it is that memory of what ran before is still being freed). */
#include "peer.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 2000;
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
        if (i == warm) began = now_ns();
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) die("round trip");
    }
    double took = now_ns() - began;
    close(there[1]);
    int status;
    if (waitpid(child, &status, 0) != child || status) die("the other process");
    printf("%.4f\n", took / (double)ops);
    return 0;
}
