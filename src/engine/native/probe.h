/* engine/native/probe.h: what this host can enforce, found by trying
 *
 * Theory: a version number says what a kernel could do, not what this host lets us do (sysctls, LSMs, an
 * enclosing container's filter, masked /proc). So every feature is tried, in forked children that die with
 * everything they made; the parent then explains each failure from the facts of the host (probe_explain, a
 * pure function). Nothing is left behind: mounts and namespaces end with the child, test cgroups are removed
 * before they are left.
 *
 * Callers: engine_native's probe and lacks. The create path does not call it: there, the attempt itself is the probe.
 */
#ifndef CLOCHE_ENGINE_NATIVE_PROBE_H
#define CLOCHE_ENGINE_NATIVE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "policy/policy.h"

#define PROBE_CHILD_SECONDS 5       /* a child that hangs longer is killed; its features read "not enforced" */

enum feature {
    /* namespaces, each as this user */
    FEATURE_USERNS,
    FEATURE_USERNS_MAP,         /* a uid and gid map can be written and gives capabilities inside */
    FEATURE_OWN_UID,            /* a host uid of its own (as root) */
    FEATURE_MOUNTNS,
    FEATURE_PIDNS,
    FEATURE_NETNS,
    FEATURE_IPCNS,
    FEATURE_UTSNS,
    FEATURE_CGROUPNS,
    /* the root file system, inside the user namespace */
    FEATURE_FSOPEN,
    FEATURE_OPEN_TREE,
    FEATURE_MOVE_MOUNT,
    FEATURE_MOUNT_SETATTR,
    FEATURE_PIVOT_ROOT,
    FEATURE_PROC_MOUNT,
    FEATURE_PROC_SUBSET,        /* subset=pid */
    FEATURE_DEVPTS,
    FEATURE_OVERLAY,
    FEATURE_IDMAP,              /* idmapped binds (as root) */
    /* access control */
    FEATURE_LANDLOCK,
    FEATURE_LANDLOCK_TRUNCATE,  /* ABI 3 */
    FEATURE_LANDLOCK_SCOPE,     /* ABI 6: signals and abstract sockets */
    FEATURE_SECCOMP,
    FEATURE_USER_NOTIFY,
    FEATURE_ADDFD_SEND,
    /* calls that the construction relies on */
    FEATURE_OPENAT2,
    FEATURE_CLONE3,
    FEATURE_START,              /* a process with a pidfd, as the engine starts one */
    FEATURE_PIDFD,
    FEATURE_MEMFD_EXEC,
    FEATURE_CLOSE_RANGE,
    /* limits */
    FEATURE_LIMIT_MEMORY,
    FEATURE_LIMIT_CPU,
    FEATURE_LIMIT_PIDS,
    FEATURE_N
};

extern const struct feature_info feature_info[FEATURE_N];

_Static_assert(FEATURE_N <= ENGINE_FEATURES_MAX && FEATURE_CGROUPNS + 1 == HOST_NAMESPACES, "room for all");

struct host_features {
    struct host_facts facts;
    struct feature_state f[FEATURE_N];
};

/* Try everything. 0, or -1 with @err when not even a child could be started. Takes 5-20 ms. */
int features_probe(struct host_features *out, struct err *err);

/* Fill why_not and remedy of @s (status, sys_errno and call are given). Pure. */
void probe_explain(enum feature which, const struct host_facts *facts, struct feature_state *s);

/* Whether @which is missing because of what this host is: its kernel, its settings, what encloses us. What others can
 * use up (processes, namespaces, memory, room on a disk) or a trial that did not come to its end is no answer. Pure. */
bool feature_lacks(const struct host_features *h, enum feature which);

/* Whether @mode cannot be built here because a feature that it must have is missing that way; @which is the first. */
bool features_lack(const struct host_features *h, enum policy_mode mode, enum feature *which);

/* The same knowledge in the engine's words; fills engine_native's report. Pure. */
void features_to_report(const struct host_features *h, struct engine_report *out);

/* --- between the files of the probe --- */

/* Run in children: fill @f (shared memory) and return. */
void probe_try_namespaces(struct feature_state *f);
void probe_try_root(struct feature_state *f);          /* needs privilege over the host's mounts */
void probe_try_proc_outside(struct feature_state *f);  /* that too; after probe_try_namespaces */
void probe_try_calls(struct feature_state *f);
void probe_try_landlock(struct feature_state *f);
void probe_try_seccomp(struct feature_state *f);
void probe_try_notify(struct feature_state *f);
void probe_try_cgroups(struct feature_state *f);

/* feature_state.call when it is not a call that failed, but Yama that forbids to use what it gives. */
#define YAMA_SIGN "kernel.yama.ptrace_scope"

/* Record the outcome of one attempt: @rc >= 0 is FEATURE_YES, else FEATURE_NO with errno. Returns @rc >= 0. */
bool probe_note(struct feature_state *s, const char *call, long rc);

#endif
