/* OPERATIONS CPU BYTES PROGRAM: posix_spawn PROGRAM with BYTES of environment in strings of 64 bytes, wait for its end.
 * PROGRAM is the suite's own, which ends with status 200. */
#include "peer.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), strings = number(argc, argv, 3) / 64, warm = 2;
    if (argc != 5) return fputs("no program\n", stderr), 2;
    pin(argv[2], 0);
    char **env = calloc(strings + 1, sizeof *env);
    if (!env) die("memory");
    for (uint64_t i = 0; i < strings; i++) {
        if (!(env[i] = malloc(64))) die("memory");
        int name = snprintf(env[i], 64, "NAME%llu=", (unsigned long long)i);
        memset(env[i] + name, '0', 63 - (size_t)name);
        env[i][63] = 0;
    }
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        pid_t child;
        int status;
        if ((errno = posix_spawn(&child, argv[4], NULL, NULL, (char *[]){argv[4], NULL}, env))) die("posix_spawn");
        if (waitpid(child, &status, 0) != child) die("waitpid");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 200) return fputs("it did not run\n", stderr), 1;
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
