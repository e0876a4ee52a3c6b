/* OPERATIONS CPU BYTES PROGRAM: with BYTES of base pages touched, vfork, execute PROGRAM, wait for its end.
 * PROGRAM is the suite's own, which ends with status 200. */
#include "peer.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), bytes = number(argc, argv, 3), warm = 2;
    if (argc != 5) return fputs("no program\n", stderr), 2;
    pin(argv[2], 0);
    volatile char *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED || madvise((void *)held, bytes, MADV_NOHUGEPAGE)) die("memory");
    for (uint64_t at = 0; at < bytes; at += (uint64_t)sysconf(_SC_PAGESIZE)) held[at] = 1;
    char *words[] = {argv[4], NULL}, *none[] = {NULL};
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        pid_t child = vfork();
        if (child < 0) die("vfork");
        if (!child) {
            execve(words[0], words, none);
            _exit(127);
        }
        int status;
        if (waitpid(child, &status, 0) != child) die("waitpid");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 200) return fputs("it did not run\n", stderr), 1;
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    return 0;
}
