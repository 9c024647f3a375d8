/* engine/native/native.h: one sandbox of the native engine, for the engine's files */
#ifndef CLOCHE_ENGINE_NATIVE_NATIVE_H
#define CLOCHE_ENGINE_NATIVE_NATIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "engine/native/launch.h"
#include "engine/native/plan.h"
#include "engine/ops.h"
#include "wall/capture.h"
#include "wall/cgroup.h"
#include "wall/janitor.h"

struct native;

/* How the child of an engine differs that has its walls made by others, in a tree of ours (oci/). */
struct native_way {
    uint64_t flags;             /* its namespaces; no id maps are written for it */
    /* What its cgroup is to be held to beyond native_cgroup_limits(). */
    void (*limits)(const struct native *sb, struct cgroup_limits *limits);
    /* Refuse what of the finished plan it cannot keep, and add to it. */
    int (*check)(struct native *sb, const struct policy *p, struct err *err);
    void (*child)(const struct native *sb, const struct launch *l);     /* never returns */
    /* NULL, both, but where others make what the child goes into: they do it now, and its cgroup too (cgroup_adopt());
     * nothing is left of it. Both find it by the id alone, as the second one is called by the janitor too. */
    int (*begin)(struct native *sb, const struct policy *p, const struct cgroup_limits *limits, struct err *err);
    bool (*tidy)(struct native *sb);
};

struct native {
    struct sandbox base;        /* first */
    const struct native_way *way;       /* NULL: native's own */
    char id[33];                /* 128 random bits: not guessable */
    char note[PATH_MAX];        /* of what may stay of it (leavings.h); "": none */
    struct native_plan plan;
    struct cgroup cgroup;
    struct cgroup net_cgroup;   /* beside it, for the process that carries its network; memory only, or none */
    struct cgroup_limits net_limits;
    struct sandbox_command *commands;   /* with limits of their own */
    unsigned n_commands;        /* so far */
    struct janitor janitor;
    pid_t *earlier;             /* in light mode: the children that this process had before (orphans.h); owned */
    size_t n_earlier;
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
    bool named;                 /* by whoever asked for it: it outlives its commands */
    bool ending;
    bool abandoned;             /* the command never ran: its copy-on-write state is nobody's */
    bool supervise_memory;      /* no cgroup: the guest's watchdog samples */
    struct sandbox_own own[PLAN_OWN_MAX];
    int disk;                   /* the tmpfs that it writes to: how much of its shared memory is files; or -1 */
    int sockmem;                /* to ask what the buffers of its sockets hold (wall/sockmem.h), or -1 */
    unsigned sockmem_blind;     /* how often in a row that had no answer */
};

extern const struct engine engine_native;

/* native.c: what create() has of it: all that is closed is -1. */
void native_init(struct native *sb, const char *id);
/* Build it; @sb is destroyed where that fails. */
int native_build(struct native *sb, const struct policy *p, struct err *err);
/* native.c: operations, as those below */
int native_connect(struct sandbox *base, int *guest_fd, struct err *err);
void native_tend(struct sandbox *base);
int native_setup_failed(struct sandbox *base, struct err *err);
void native_abandon(struct sandbox *base);
void native_end(struct sandbox *base);
void native_kill(struct sandbox *base);
void native_destroy(struct sandbox *base);

static inline struct native *
native_of(struct sandbox *base)
{
    return (struct native *)base;
}

/* native.c: whether RLIMIT_NPROC counts a sandbox's processes exactly, in every mode but light. */
bool native_counts_pids(void);
/* net.c: the cgroup beside it: decided, made. */
void native_net_find(struct native *sb, const struct policy *p);
void native_net_make(struct native *sb);
/* What the cgroup of a sandbox by @p is held to. */
void native_cgroup_limits(const struct policy *p, struct cgroup_limits *out);

/* leavings.c: note what is about to be made for @sb. Where that cannot be written (a full disk) there is the janitor
 * alone. Nothing of it is left. */
void leavings_note(struct native *sb);
void leavings_forget(const struct native *sb);

/* live.c: of one that was made; the others are operations of the engine. */
void native_fill_facts(struct native *sb);
/* What the policy denies commands is in every guest's SETUP, also where the rest of it is another. */
void native_denied(const struct native *sb, struct msg_setup *out);
int native_setup(struct sandbox *base, struct buf *guard, struct msg_setup *out, struct err *err);
void native_usage(struct sandbox *base, struct sandbox_usage *out);
void native_now(struct sandbox *base, struct sandbox_now *out);
bool native_over_memory(struct sandbox *base);
bool native_alone(struct sandbox *base);
int native_limits(struct sandbox *base, const struct policy *from, const struct policy *to, struct err *err);
int native_limits_back(struct sandbox *base, const struct policy *from, const struct policy *to, struct err *err);
/* command.c: operations; remove what has become empty; no more of the processor than that; all are over. */
int native_command_begin(struct sandbox *base, const struct sandbox_command_limits *limits,
                         struct sandbox_command **out, int joins[SANDBOX_JOINS], size_t *n, struct err *err);
void native_command_sent(struct sandbox *base, struct sandbox_command *c);
void native_command_look(struct sandbox *base, struct sandbox_command *c, struct sandbox_command_end *out);
void native_command_end(struct sandbox *base, struct sandbox_command *c);
void native_commands_tend(struct native *sb);
void native_commands_lower(const struct native *sb, uint64_t cpu_milli);
void native_commands_free(struct native *sb);

int native_pause(struct sandbox *base, struct err *err);
int native_resume(struct sandbox *base, struct err *err);

/* report.c, rules.c: operations too */
int native_probe(const char *runtime, struct engine_report *out, struct err *err);
enum lack native_lacks(enum policy_mode mode, const char *code, char text[256]);
int native_rules(const struct policy *p, struct engine_rules **out, struct err *err);

/* Append the name guard's plan, encoded for the guest's SETUP; nothing when no name has to be guarded. */
int native_guard_plan(const struct native *sb, struct buf *out, struct err *err);

#endif
