/* The sandbox of task T3: what it is made of. Each function returns 0, or -errno with `*what` set to what failed. */
#ifndef BOX_H
#define BOX_H

struct box {
    int spaces;          /* namespaces of its own: mounts, pids, network, IPC, host name, control groups */
    int filter;          /* a seccomp filter */
    const char *overlay; /* an empty folder, where its root is mounted; NULL: the host's root */
    const char *group;   /* the control group below which it makes its own; NULL: none */
    char **command;      /* what it runs on request, ended by NULL */
    int groups, procs;   /* open files: that group, and cgroup.procs of the own one; -1: none */
    char name[32];       /* of the own group, which outlives a change of root only below an open folder */
};

int box_unshare(const struct box *box, const char **what);
int box_rooms(const struct box *box, const char **what);
int box_filter(const char **what);
int box_join(struct box *box, const char **what);
int box_leave(struct box *box, const char **what);
int box_serve(char **command);

#endif
