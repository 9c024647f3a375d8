/* wall/cgroup.h: limits on a whole sandbox
 *
 * Three hosts: cgroup v2 with a directory that we may create in (root, or an ordinary user inside a delegated
 * subtree), cgroup v1 as root (also the hybrid layout), or none. The child joins without waiting for an RCU grace
 * period: CLONE_INTO_CGROUP on v2; on v1 it writes "0" to the `tasks` files itself while it is single-threaded,
 * which the kernel lets pass without its global lock (cgroup_procs_write_start).
 *
 * Directories do not vanish with their last process: whoever makes them has a janitor (janitor.h) that calls
 * cgroup_remove, so that even SIGKILL leaves nothing.
 */
#ifndef CLOCHE_WALL_CGROUP_H
#define CLOCHE_WALL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum cgroup_kind {
    CGROUP_NONE,
    CGROUP_V1,
    CGROUP_V2,
    CGROUP_SCOPE,       /* v2, made by systemd's user manager around the running child (scope.h) */
};

struct cgroup_limits {
    uint64_t memory;        /* bytes, hard; 0 = none */
    uint64_t sockets;       /* the part of it that TCP and UDP may hold; 0 = none. Only v1 is told: it does not count
                             * them as memory at all, which v2 does */
    uint64_t cpu_milli;     /* 0 = none */
    uint64_t pids;          /* 0 = none */
    bool pids_counted;      /* RLIMIT_NPROC of an own user namespace counts them exactly: no v1 directory for them */
    bool one_by_one;        /* for want of memory the kernel kills one process, not all: the rest goes on without it */
    bool ask_systemd;       /* where nothing else is there: worth the ten milliseconds */
    bool commands;          /* what runs inside may get cgroups of its own below this one (cgroup_command.h) */
};

#define CGROUP_V1_SOCKETS "memory.kmem.tcp.limit_in_bytes"    /* UDP's too, whatever it is called */
#define CGROUP_HIERARCHIES 3    /* v1: memory, cpu, pids */

struct cgroup {
    enum cgroup_kind kind;
    bool memory, cpu, pids;             /* which limits it enforces */
    int dirs[CGROUP_HIERARCHIES];       /* v1: memory, cpu, pids (-1 where absent); v2: dirs[0], scope: and its slice */
    int tasks[CGROUP_HIERARCHIES];      /* v1: open `tasks` files for the child */
    char paths[CGROUP_HIERARCHIES][512];
    char more[CGROUP_HIERARCHIES][512]; /* v1, with commands: where paths are "", for those alone; made when needed */
    int main;                           /* v2, with commands: below dirs[0], where the child goes; else -1 */
    char unit[64];                      /* a scope's name */
    bool *asking;                       /* until the child is known to be in it; shared with the janitor */
    uint64_t slice_kills;               /* a scope's slice: kills for want of memory before ours */
    char why_not[256];                  /* when something was asked for and is not enforced */
};

#define CGROUP_INIT { .kind = CGROUP_NONE, .dirs = { -1, -1, -1 }, .tasks = { -1, -1, -1 }, .main = -1 }

/* Decide where a cgroup named cloche-@id would be made, without making anything. Never fails for want of cgroups:
 * kind NONE and @why_not say so, and the caller decides by its policy. */
void cgroup_find(struct cgroup *cg, const char *id, const struct cgroup_limits *limits);

/* Make what cgroup_find found, with @limits. A v2 cgroup must be made before the child (CLONE_INTO_CGROUP), the others
 * while the child @pid is busy. -1 with @err on a half-made state (which was undone). Where the kernel refuses a v2
 * cgroup that looked possible, the kind becomes NONE, with @why_not. */
int cgroup_make(struct cgroup *cg, pid_t pid, const struct cgroup_limits *limits, struct err *err);

/* The cgroups in which the process @pid is, made, held to @limits and removed by somebody else: they are only looked
 * at. @cg is CGROUP_INIT. Where they cannot be found it stays so, with @why_not. */
void cgroup_adopt(struct cgroup *cg, pid_t pid, const struct cgroup_limits *limits);

/* For a process that a service manager started in a cgroup of its own to divide (systemd's Delegate=), as an ordinary
 * user: go into one below it, and let it hand its controllers down, so that cgroup_find finds a place there. Nothing
 * where it is not so: other processes are in it, or it is not ours. */
void cgroup_divide(void);

/* Whether memory will be limited, as far as it can be told when the child is about to start: a v2 cgroup was made by
 * then, the others are yet to be. */
bool cgroup_holds_memory(const struct cgroup *cg);

/* In the child: join the v1 cgroups through their open `tasks` files. 0 or -1 with @err. */
int cgroup_join(const int *tasks, size_t n, struct err *err);

struct cgroup_usage {
    uint64_t peak_memory;   /* bytes; 0 unknown */
    uint64_t oom_kills;     /* v1 with commands, and v2: not of those in cgroups of their own */
};

void cgroup_read(const struct cgroup *cg, struct cgroup_usage *out);

/* Whether it is its own limit that memory, or processes, ran into, and none around it. On v1 a limit of memory counts
 * as met as well when files were given up for it. */
struct cgroup_met {
    bool memory, pids;
};

void cgroup_met(const struct cgroup *cg, struct cgroup_met *out);

struct cgroup_now {
    uint64_t memory;        /* bytes, files and tmpfs among them; 0 unknown, so are the next two */
    uint64_t cpu_us;        /* so far */
    uint64_t pids;
};

void cgroup_now(const struct cgroup *cg, struct cgroup_now *out);

/* What is in memory now beside pages of files on a disk, in bytes; 0 unknown. */
struct cgroup_held {
    uint64_t own;           /* of processes, shared with nobody but their children */
    uint64_t shared;        /* MAP_SHARED, memfd_create, System V; and files in a tmpfs: the kernel tells them as one */
    uint64_t sockets;       /* what TCP and UDP hold */
};

/* Costs a flush of the kernel's counters. */
void cgroup_held(const struct cgroup *cg, struct cgroup_held *out);
/* One process is in it, for certain. Of v1 what is in cgroups below does not count. */
bool cgroup_alone(const struct cgroup *cg);
/* Frozen: nothing in it runs any more when this returns 0. What does not come to rest within FREEZE_US is let go on:
 * -1 with @err, wall.cgroup.freeze. cgroup_live.c */
int cgroup_freeze(const struct cgroup *cg, bool frozen, struct err *err);
#define FREEZE_US 500000

/* "cgroup v1", "cgroup v2", "none" */
const char *cgroup_name(const struct cgroup *cg);

/* Remove the directories that cgroup_find named, with what is below them, and in a janitor the scope. True when none is
 * left; false while processes are in them. */
bool cgroup_remove(const struct cgroup *cg);

/* Remove them and close what is open. The same answer. */
bool cgroup_destroy(struct cgroup *cg);

#endif
