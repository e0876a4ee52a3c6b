/* A sandbox that serves over stdio: it is made, says so in one line of JSON, runs its command once for each line that
 * it gets, and is taken down at the end of its input. `cpubench-box [-n] [-s] [-o FOLDER] [-g GROUP] -- COMMAND ..`
 *
 * The outer process makes the control group and removes it; the inner one is pid 1 of the namespaces, so that nothing
 * outlives it. The price of the bare rung is this small static program. */
#include "box.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(-error));
    return 1;
}

static int inner(const struct box *box) {
    const char *what = "";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (box->procs >= 0 && write(box->procs, "0", 1) != 1)
        return failed("cgroup.procs", -errno);
    int error = box_rooms(box, &what);
    if (!error && box->filter)
        error = box_filter(&what);
    return error ? failed(what, error) : box_serve(box->command);
}

static int outer(struct box *box) {
    const char *what = "", *kept = "";
    int status = 1;
    int error = box->group ? box_join(box, &what) : 0;
    if (!error)
        error = box_unshare(box, &what);
    pid_t pid = error ? -1 : fork();
    if (pid == 0)
        _exit(inner(box));
    if (pid > 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (!error) {
        error = -errno, what = "fork";
    }
    int left = box_leave(box, &kept);
    if (left)
        status = failed(kept, left);
    return error ? failed(what, error) : status;
}

int main(int count, char **arguments) {
    struct box box = {.groups = -1, .procs = -1};
    for (int option; (option = getopt(count, arguments, "+nso:g:")) != -1;) {
        switch (option) {
        case 'n': box.spaces = 1; break;
        case 's': box.filter = 1; break;
        case 'o': box.overlay = optarg; break;
        case 'g': box.group = optarg; break;
        default: return 2;
        }
    }
    box.command = arguments + optind;
    if (!*box.command)
        return 2;
    signal(SIGTERM, SIG_IGN); /* the end of its input is its end: only so its group is removed */
    return outer(&box);
}
