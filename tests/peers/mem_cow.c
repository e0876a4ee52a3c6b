/* OPERATIONS CPU [APART]: after a fork, whose child does nothing, a byte of each of OPERATIONS base pages is written, 32 MiB at a time;
 * then the child must end, and there is another. Only the writes are timed; the first 32 MiB are not.
 * With APART the loop is a function of its own, which the compiler may not put into main(). */
#include "peer.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void apart(char *map, uint64_t n, uint64_t page, char value) {
    for (uint64_t i = 0; i < n; i++) *(volatile char *)(map + i * page) = value;
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), bytes = 32 << 20, page = (uint64_t)sysconf(_SC_PAGESIZE), pages = bytes / page;
    int to_child[2], status;
    pin(argv[2], 0);
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), byte;
    if (map == MAP_FAILED || madvise(map, bytes, MADV_NOHUGEPAGE)) die("memory");
    for (uint64_t i = 0; i < bytes; i++) map[i] = (char)i;
    double took = 0;
    for (uint64_t lap = 0, left = ops; left; lap++) {
        if (pipe(to_child)) die("pipe");
        pid_t child = fork();
        if (child < 0) die("fork");
        if (!child) { /* until the pipe's end; then it looks whether its pages are still the old ones */
            close(to_child[1]);
            if (read(to_child[0], &byte, 1) != 0) _exit(2);
            for (uint64_t i = 0; i < bytes; i += page)
                if (map[i] != (char)lap) _exit(1);
            _exit(0);
        }
        close(to_child[0]);
        usleep(1000); /* it sleeps by then */
        uint64_t n = lap && left < pages ? left : pages;
        double began = now_ns();
        if (argc > 3) apart(map, n, page, (char)(lap + 1));
        else for (uint64_t i = 0; i < n; i++) *(volatile char *)(map + i * page) = (char)(lap + 1);
        if (lap) took += now_ns() - began, left -= n;
        close(to_child[1]);
        if (waitpid(child, &status, 0) != child || status) return fputs("the child saw other values\n", stderr), 1;
    }
    printf("%.4f\n", took / (double)ops);
    return 0;
}
