/* OPERATIONS CPU[,CPU]: 512 bytes to a process on the last CPU and 512 back, through a pair of Unix stream sockets.
 * Rest as in switch_pipe.c, which says why. */
#include "peer.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char bytes[512];

static int all(int fd, int writes) { /* 0: the other end is closed */
    size_t done = 0;
    while (done < sizeof bytes) {
        ssize_t n = writes ? write(fd, bytes + done, sizeof bytes - done) : read(fd, bytes + done, sizeof bytes - done);
        if (n < 0) die("socket");
        if (n == 0) return 0;
        done += (size_t)n;
    }
    return 1;
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 200;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("socketpair");
    pid_t child = fork();
    if (child < 0) die("fork");
    pin(argv[2], child ? 0 : 1);
    close(ends[child ? 1 : 0]);
    if (!child) {
        while (all(ends[1], 0) && all(ends[1], 1)) {}
        _exit(0);
    }
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) {
            usleep(200000);
            began = now_ns();
        }
        if (!all(ends[0], 1) || !all(ends[0], 0)) die("round trip");
    }
    double took = now_ns() - began;
    close(ends[0]);
    int status;
    if (waitpid(child, &status, 0) != child || status) die("the other process");
    printf("%.4f\n", took / (double)ops);
    return 0;
}
