/* engine/native/native.h: one sandbox of the native engine, for the engine's files and the CLI's supervisor */
#ifndef CLOCHE_ENGINE_NATIVE_NATIVE_H
#define CLOCHE_ENGINE_NATIVE_NATIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/native/plan.h"
#include "wall/capture.h"
#include "wall/cgroup.h"
#include "wall/janitor.h"

struct sandbox {
    char id[33];                /* 128 random bits: not guessable */
    char note[PATH_MAX];        /* of what may stay of it (leavings.h); "": none */
    struct native_plan plan;
    struct cgroup cgroup;
    struct cgroup net_cgroup;   /* beside it, for the process that carries its network; memory only, or none */
    struct cgroup_limits net_limits;
    struct janitor janitor;
    pid_t pid;
    int pidfd;
    int go;                     /* kept open: its end tells a child that waits that we are gone */
    int status;
    int transport;
    int listeners[CAPTURE_LISTENERS];   /* with a captured network: egress accepts on them; else -1 */
    uint64_t memory_limit;
    uint64_t nproc;             /* RLIMIT_NPROC that the guest was given; 0 none */
    uint64_t cpu_us;            /* after native_kill */
    struct cgroup_usage last;   /* before native_end: a scope goes with its last process */
    bool ending;
    bool abandoned;             /* the command never ran: its copy-on-write state is nobody's */
    bool supervise_memory;      /* no cgroup: the guest's watchdog samples */
    int sockmem;                /* to ask what the buffers of its sockets hold (wall/sockmem.h), where that is ours to
                                 * count; or -1 */
    unsigned sockmem_blind;     /* how often in a row that had no answer */
};

int native_probe(struct engine_report *out, struct err *err);

/* Append the name guard's plan, encoded for the guest's SETUP; nothing when no name has to be guarded. */
int native_guard_plan(const struct sandbox *sb, struct buf *out, struct err *err);

/* The guest's transport closed early: did the wall's construction fail? -1 with @err when it did, 0 otherwise. */
int native_setup_failed(struct sandbox *sb, struct err *err);

/* The guest went away on its own: say how. Always -1. */
int native_gone(struct sandbox *sb, struct err *err);

/* While it lives: hold it to the limits of memory, processors and processes in @to, in the place of those in @from. 0;
 * or -1 with @err, and nothing is changed (limits.rlimit; limits.in-use and others as cgroup_change() has them). */
int native_limits(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err);

/* Memory that is not files is above the limit; without a cgroup, what its sockets hold, since the guest looks at the
 * rest. Call every 100 ms or so. */
bool native_over_memory(struct sandbox *sb);

/* Who tidies up after this process has a successor when it was killed. Call now and then. */
void native_keep_janitor(struct sandbox *sb);

/* Nothing of the command ran: destroy leaves no copy-on-write state behind. */
void native_abandon(struct sandbox *sb);

/* Kill everything inside (but in light mode, where it needs time to end itself). Namespaces take a while to go: what
 * the caller has still to do can be done meanwhile, then native_kill() waits. */
void native_end(struct sandbox *sb);

/* Kill everything inside and wait until it is gone; usage stays readable until destroy. */
void native_kill(struct sandbox *sb);

#endif
