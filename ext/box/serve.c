/* The requests of a sandbox: the command is run for each, and the answer has its output and what it used. */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096 };

static void add(long used[6], const struct rusage *one, int sign) {
    used[0] += sign * (one->ru_utime.tv_sec * 1000000L + one->ru_utime.tv_usec);
    used[1] += sign * (one->ru_stime.tv_sec * 1000000L + one->ru_stime.tv_usec);
    used[2] += sign * one->ru_minflt;
    used[3] += sign * one->ru_majflt;
    used[4] += sign * one->ru_nvcsw;
    used[5] += sign * one->ru_nivcsw;
}

static void tell_used(const long used[6]) {
    printf("\"usage\": [%ld, %ld, %ld, %ld, %ld, %ld]}\n", used[0], used[1], used[2], used[3], used[4], used[5]);
    fflush(stdout);
}

static void tell_text(const char *text, long length) {
    for (long i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 32 || c > 126)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
}

/* Runs the command; its output, of which the first MOST bytes are kept, and its status as waitpid(2) has it. */
static long run(char **command, char *text, int *status, long used[6]) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, 0), dup2(ends[1], 1), dup2(ends[1], 2);
        signal(SIGTERM, SIG_DFL);
        execv(command[0], command);
        dprintf(2, "%s: %s", command[0], strerror(errno));
        _exit(127);
    }
    int error = errno;
    close(ends[1]);
    long length = pid < 0 ? -error : 0;
    char rest[MOST];
    for (long got; pid > 0 && (got = read(ends[0], length < MOST ? text + length : rest,
                                          length < MOST ? MOST - length : MOST)) > 0;)
        length += length < MOST ? got : 0;
    close(ends[0]);
    struct rusage one;
    if (pid > 0 && wait4(pid, status, 0, &one) == pid)
        add(used, &one, 1);
    return length;
}

int box_serve(char **command) {
    static char line[65536], text[MOST];
    struct rusage before, after;
    long used[6] = {0};
    getrusage(RUSAGE_SELF, &before);
    add(used, &before, 1);
    printf("{\"ready\": \"box\", "), tell_used(used);
    while (fgets(line, sizeof line, stdin)) {
        const char *id = strstr(line, "\"id\": ");
        int status = 0;
        memset(used, 0, sizeof used);
        long length = run(command, text, &status, used);
        getrusage(RUSAGE_SELF, &after);
        add(used, &after, 1), add(used, &before, -1);
        before = after;
        printf("{\"jsonrpc\": \"2.0\", \"id\": %d, ", id ? atoi(id + 6) : -1);
        if (length < 0)
            printf("\"error\": \"%s\", ", strerror((int)-length));
        else if (status) {
            printf("\"error\": \""), tell_text(text, length), printf("\", ");
        } else {
            printf("\"result\": \""), tell_text(text, length), printf("\", ");
        }
        tell_used(used);
    }
    return 0;
}
