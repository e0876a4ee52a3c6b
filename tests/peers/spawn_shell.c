/* OPERATIONS CPU: fork from this small process, execute `/bin/sh -c :` without an environment, wait for its end. */
#include "peer.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 2;
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        pid_t child = fork();
        if (child < 0) die("fork");
        if (!child) {
            execle("/bin/sh", "sh", "-c", ":", (char *)NULL, (char *[]){NULL});
            _exit(127);
        }
        int status;
        if (waitpid(child, &status, 0) != child) die("waitpid");
        if (status) return fputs("the shell failed\n", stderr), 1;
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
