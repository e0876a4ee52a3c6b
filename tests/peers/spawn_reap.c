/* OPERATIONS CPU BYTES: children of a small process have touched BYTES of base pages each and read from a pipe; timed is
 * only the byte that lets one end, and the wait for that. At most four live at once. */
#include "peer.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

struct child { pid_t pid; int go; };

static struct child start(uint64_t bytes) {
    int go[2], ready[2];
    char byte;
    if (pipe(go) || pipe(ready)) die("pipe");
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (held == MAP_FAILED || madvise(held, bytes, MADV_NOHUGEPAGE)) _exit(1);
        memset(held, 1, bytes);
        _exit(write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 1 ? 7 : 1);
    }
    close(ready[1]), close(go[0]);
    if (read(ready[0], &byte, 1) != 1) die("child");
    close(ready[0]);
    return (struct child){pid, go[1]};
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), bytes = number(argc, argv, 3);
    pin(argv[2], 0);
    double took = 0;
    for (uint64_t done = 0; done < ops;) {
        struct child children[4];
        uint64_t n = ops - done < 4 ? ops - done : 4;
        for (uint64_t i = 0; i < n; i++) children[i] = start(bytes);
        double began = now_ns();
        for (uint64_t i = 0; i < n; i++) {
            int status;
            if (write(children[i].go, "", 1) != 1) die("write");
            if (waitpid(children[i].pid, &status, 0) < 0) die("waitpid");
            if (status != 7 << 8) return fputs("it did not end as told\n", stderr), 1;
        }
        took += now_ns() - began;
        for (uint64_t i = 0; i < n; i++) close(children[i].go);
        done += n;
    }
    printf("%.4f\n", took / (double)ops);
    return 0;
}
